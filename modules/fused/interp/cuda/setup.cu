// What the bound needs, found out on the device: range, scale, bins.
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

using Word = unsigned long long;

/// Bits as unsigned integers in the order of the values; 0 and all ones are no finite ones.
__device__ __forceinline__ std::uint32_t ordered(float x) {
  const std::uint32_t bits = fp::bits(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ std::uint64_t ordered(double x) {
  const std::uint64_t bits = fp::bits(x);
  return bits >> 63 != 0 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ double valueOf(std::uint32_t key) {
  const std::uint32_t bits = key >> 31 != 0 ? key & 0x7fffffffu : ~key;
  return static_cast<double>(fp::bitCast<float>(bits));
}
__device__ __forceinline__ double valueOf(std::uint64_t key) {
  const std::uint64_t bits = key >> 63 != 0 ? key & 0x7fffffffffffffffull : ~key;
  return fp::bitCast<double>(bits);
}

template <class T>
using Key = decltype(ordered(T{}));

template <class T>
struct Extremes {
  Key<T> low = 0;  ///< complement of the smallest
  Key<T> high = 0;
  bool has_others = false;

  __device__ __forceinline__ void add(T x) {
    if (fp::isFinite(x)) {
      const Key<T> key = ordered(x);
      high = high < key ? key : high;
      low = low < static_cast<Key<T>>(~key) ? static_cast<Key<T>>(~key) : low;
    } else {
      has_others = true;
    }
  }
};

template <class K>
__device__ __forceinline__ K warpMax(K value) {
#pragma unroll
  for (unsigned step = cuda::kWarp / 2; step > 0; step /= 2) {
    const K other = __shfl_xor_sync(cuda::kAllLanes, value, step);
    value = value < other ? other : value;
  }
  return value;
}

__device__ void makeBins(Setup& setup, std::uint32_t n_axes, bool has_alpha) {
  for (std::uint32_t h = 0; h <= kMaxHalvings; ++h) {
    setup.bins[h] = makeBin(binUnits(h, n_axes, setup.scale.sub_bits, has_alpha));
  }
}

__device__ void publish(Setup& setup, const Fixing& fixing, const RangeJob& job) {
  setup.scale = fixing.scale;
  setup.is_tested = fixing.is_proved ? 0 : 1;
  setup.has_gaps = setup.range.has_others || !fixing.is_complete ? 1 : 0;
  setup.is_ok = 1;
  makeBins(setup, job.n_axes, job.has_alpha);
  job.record->value[kSlotSubBits] = fixing.scale.sub_bits;
  job.record->value[kSlotBound] = fp::bits(setup.bound);
  job.record->value[kSlotFrameBound] = fp::bits(setup.bound);
  job.record->value[kSlotUnits] = fp::bits(fixing.scale.units_per_value);
  job.record->value[kSlotOrigin] = fp::bits(fixing.scale.origin);
}

/// By one thread, when the extremes are known.
template <class T>
__device__ void decide(const RangeJob& job) {
  Setup& setup = *job.setup;
  ValueRange range;
  range.has_finite = setup.high != 0;
  range.has_others = setup.has_others != 0;
  if (range.has_finite) {
    range.min = valueOf(static_cast<Key<T>>(~static_cast<Key<T>>(setup.low)));
    range.max = valueOf(static_cast<Key<T>>(setup.high));
  }
  setup.range = range;
  const double base = job.value_base > 0.0 ? job.value_base : fp::sub(range.max, range.min);
  setup.bound = resolveBound(job.error_bound, job.mode, base);
  const Fixing fixing = makeScale(setup.bound, range, job.type);
  setup.is_counted = fixing.is_complete ? 0 : 1;
  publish(setup, fixing, job);
}

template <class T>
__global__ void __launch_bounds__(kThreads) rangeKernel(const __grid_constant__ RangeJob job) {
  const T* const values = static_cast<const T*>(job.values);
  constexpr unsigned kCount = cuda::Vec16<T>::kCount;
  constexpr unsigned kAtOnce = 4;
  const std::uint64_t n_vecs = job.n_values / kCount;
  Extremes<T> found;
  const std::uint64_t stride = threadCount();
  // The end first: what stays in the cache is the beginning, which is read next.
  for (std::uint64_t i = threadIndex(); i < n_vecs; i += kAtOnce * stride) {
    cuda::Vec16<T> x[kAtOnce];
#pragma unroll
    for (unsigned u = 0; u < kAtOnce; ++u) {
      const std::uint64_t at = i + u * stride < n_vecs ? i + u * stride : i;
      x[u].raw = *reinterpret_cast<const uint4*>(values + (n_vecs - 1 - at) * kCount);
    }
#pragma unroll
    for (unsigned e = 0; e < kAtOnce * kCount; ++e) {
      found.add(x[e / kCount].v[e % kCount]);
    }
  }
  for (std::uint64_t i = n_vecs * kCount + threadIndex(); i < job.n_values; i += stride) {
    found.add(values[i]);
  }
  const Key<T> low = warpMax(found.low);
  const Key<T> high = warpMax(found.high);
  const bool has_others = __any_sync(cuda::kAllLanes, found.has_others) != 0;
  Setup& setup = *job.setup;
  if (cuda::laneId() == 0) {
    if (high != 0) {
      atomicMax(&setup.low, static_cast<Word>(low));
      atomicMax(&setup.high, static_cast<Word>(high));
    }
    if (has_others) {
      atomicMax(&setup.has_others, Word{1});
    }
  }
  if (cuda::isLastBlock(&setup.n_range_blocks) && threadIdx.x == 0) {
    decide<T>(job);
  }
}

/// Where not all values fit, for how many each number of sub-bin bits gives a fixed point.
template <class T>
__global__ void __launch_bounds__(kThreads) countKernel(const __grid_constant__ RangeJob job) {
  Setup& setup = *job.setup;
  if (setup.is_counted == 0) {
    return;
  }
  const T* const values = static_cast<const T*>(job.values);
  __shared__ Scale scales[kMaxSubBits + 1];
  if (threadIdx.x <= kMaxSubBits) {
    scales[threadIdx.x] = scaleOf(setup.bound, setup.range, job.type, threadIdx.x).scale;
  }
  __syncthreads();
  std::uint32_t counts[kMaxSubBits + 1] = {};
  for (std::uint64_t i = threadIndex(); i < job.n_values; i += threadCount()) {
    const T x = values[i];
#pragma unroll
    for (std::uint32_t bits = 0; bits <= kMaxSubBits; ++bits) {
      counts[bits] += isCodable(scaled(x, scales[bits])) ? 1u : 0u;
    }
  }
#pragma unroll
  for (std::uint32_t bits = 0; bits <= kMaxSubBits; ++bits) {
    const Word sum = cuda::warpSum(static_cast<Word>(counts[bits]));
    if (cuda::laneId() == 0) {
      atomicAdd(&setup.counts[bits], sum);  // order-free: only a sum
    }
  }
  if (cuda::isLastBlock(&setup.n_count_blocks) && threadIdx.x == 0) {
    std::uint64_t all[kMaxSubBits + 1];
    for (std::uint32_t bits = 0; bits <= kMaxSubBits; ++bits) {
      all[bits] = setup.counts[bits];
    }
    publish(setup, scaleOf(setup.bound, setup.range, job.type, bestSubBits(all)), job);
  }
}

/// A warp makes a word of marks.
template <class T>
__global__ void __launch_bounds__(kThreads) uncodedKernel(const __grid_constant__ RangeJob job) {
  const Setup& setup = *job.setup;
  if (setup.has_gaps == 0) {
    return;
  }
  const T* const values = static_cast<const T*>(job.values);
  const Scale scale = setup.scale;
  const std::uint64_t n_words = bits::ceilDiv<std::uint64_t>(job.n_values, 32);
  for (std::uint64_t w = threadIndex() / cuda::kWarp; w < n_words;
       w += threadCount() / cuda::kWarp) {
    const std::uint64_t i = w * 32 + cuda::laneId();
    bool is_listed = false;
    if (i < job.n_values) {
      const T x = values[i];
      is_listed = !isCodable(scaled(x, scale)) && !(x != x && job.skips_missing);
    }
    const unsigned word = __ballot_sync(cuda::kAllLanes, is_listed);
    if (cuda::laneId() == 0) {
      job.outliers[w] = word;
    }
  }
}

template <class T>
void launchSetupOf(const RangeJob& job, const cuda::Call& call) {
  const unsigned n_processors = cuda::multiprocessorCount();
  const unsigned n_blocks = strideBlocks(job.n_values / cuda::Vec16<T>::kCount + 1, n_processors);
  call.launch("interp range", rangeKernel<T>, n_blocks, kThreads, 0, job);
  if (job.n_values != 0) {
    const unsigned n_all = strideBlocks(job.n_values, n_processors);
    call.launch("interp counts", countKernel<T>, n_all, kThreads, 0, job);
    call.launch("interp uncoded", uncodedKernel<T>, n_all, kThreads, 0, job);
  }
}

__global__ void binsKernel(Setup* setup, std::uint32_t n_axes, bool has_alpha) {
  makeBins(*setup, n_axes, has_alpha);
}

__device__ __forceinline__ bool isNormal(double x) {
  const std::uint64_t exponent = fp::bits(x) >> 52 & 0x7ff;
  return exponent != 0 && exponent != 0x7ff;
}

__global__ void decodeSetupKernel(const __grid_constant__ DecodeSetupJob job) {
  Setup& setup = *job.setup;
  Scale scale;
  scale.units_per_value = fp::bitCast<double>(job.record->value[kSlotUnits]);
  scale.value_per_unit = fp::div(1.0, scale.units_per_value);
  scale.origin = fp::bitCast<double>(job.record->value[kSlotOrigin]);
  const std::uint64_t sub_bits = job.record->value[kSlotSubBits];
  const std::uint64_t codes_bytes = cuda::load(job.codes_size);
  const std::uint64_t outlier_bytes = cuda::load(job.outliers_size);
  const std::uint32_t entry_bytes = sizeof(std::uint32_t) + job.value_bytes;
  const bool is_ok = sub_bits <= kMaxSubBits && isNormal(scale.units_per_value) &&
                     scale.units_per_value > 0.0 && isNormal(scale.value_per_unit) &&
                     fp::isFinite(scale.origin) && codes_bytes == job.codes_bytes &&
                     outlier_bytes % entry_bytes == 0 &&
                     outlier_bytes / entry_bytes <= job.n_values;
  if (!is_ok) {
    job.record->value[kSlotCodesOff] = 1;
    cuda::recordError(job.record, DeviceError::kCorrupt, 0);
    return;  // the setup says that nothing is to be done
  }
  scale.sub_bits = static_cast<std::uint32_t>(sub_bits);
  setup.scale = scale;
  setup.n_outliers = outlier_bytes / entry_bytes;
  makeBins(setup, job.n_axes, job.has_alpha);
  setup.is_ok = 1;
}

__global__ void publishKernel(StageRecord* record,
                              unsigned port,
                              std::uint64_t needed,
                              std::uint64_t capacity) {
  cuda::publishSize(record, port, needed, capacity);
}

}  // namespace

void launchSetup(const RangeJob& job, const cuda::Call& call) {
  job.type == DataType::FLOAT32 ? launchSetupOf<float>(job, call)
                                : launchSetupOf<double>(job, call);
}

void launchBins(Setup* setup, std::uint32_t n_axes, bool has_alpha, const cuda::Call& call) {
  call.launch("interp bins", binsKernel, 1, 1, 0, setup, n_axes, has_alpha);
}

void launchDecodeSetup(const DecodeSetupJob& job, const cuda::Call& call) {
  call.launch("interp decode setup", decodeSetupKernel, 1, 1, 0, job);
}

void launchPublish(StageRecord* record,
                   unsigned port,
                   std::uint64_t needed,
                   std::uint64_t capacity,
                   const cuda::Call& call) {
  call.launch("interp publish", publishKernel, 1, 1, 0, record, port, needed, capacity);
}

}  // namespace fz::interp::device
