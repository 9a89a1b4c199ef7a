// Codes to values, then the outliers.
#include "backends/cuda/each_field.cuh"
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/readback.cuh"
#include "backends/cuda/unaligned_load.cuh"
#include "fz/cuda_part.h"
#include "quantizers/quantizer/cuda/op/decode.cuh"

namespace fz::quantizer::device {

namespace {

/// Blocks of the scattering that are done; decoders have no rung.
constexpr unsigned kSlotBlocksDone = kSlotRung;

template <class T, class C>
inline constexpr unsigned kDecodeVecs = decodeVecs(sizeof(C), Vec16<T>::kCount);

template <class T, class C, DecodeForm kForm>
__global__ void __launch_bounds__(kThreads) decodeKernel(const DecodeJob job) {
  constexpr unsigned kPieces = kDecodeVecs<T, C>;
  using Shape = TileShape<T, kPieces>;
  using Codes = CodeVec<C, Shape::kCount>;
  using U = BitsOf<T>;
  const Head head = readHead(job);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if (!job.output.size_known) {
      cuda::publishSize(job.record, 0, head.ok ? head.n_values * sizeof(T) : 0,
                        job.output.capacity_bytes);
    }
    if (!head.ok) {
      cuda::recordError(job.record, DeviceError::kCorrupt, 0);
      job.record->error_value = static_cast<std::uint64_t>(head.failure);
    }
  }
  const std::uint64_t begin = firstTile() * Shape::kValues;
  if (!head.ok || !fitsOutput<T>(job, head) || begin >= head.n_values) {
    return;
  }
  const std::uint64_t n_left = head.n_values - begin;
  const C* in = reinterpret_cast<const C*>(job.codes.data) + begin;
  U* out = reinterpret_cast<U*>(job.output.data) + begin;
  const T half = static_cast<T>(head.bound);
  const Decoder<T, C, kForm> decode{fp::mul(T{2}, half), job.log_step, job.log_step_v1, job.radius};
  if (n_left >= Shape::kValues) {
    Codes codes[kPieces];
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
      codes[j] = *reinterpret_cast<const Codes*>(in + Shape::at(j));
    }
    const double root = kForm == DecodeForm::kRel ? relRoot(cuda::laneId()) : 0.0;
    const auto roots = [=](std::uint32_t i) {
      return __shfl_sync(cuda::kAllLanes, root, static_cast<int>(i));
    };
#pragma unroll
    for (unsigned j = 0; j < kPieces; ++j) {
      Vec16<U> values;
      decode.piece(codes[j].v, roots, values.v);
      cuda::storeStream(out + Shape::at(j), values.raw);
    }
    return;
  }
  for (unsigned i = cuda::laneId(); i < n_left; i += cuda::kWarp) {
    out[i] = decode(in[i]);
  }
}

/// The lists, which may stand anywhere.
template <class U>
struct Lists {
  const DecodeJob& job;
  __device__ __forceinline__ std::uint32_t index(std::uint64_t j) const {
    return cuda::loadUnaligned<std::uint32_t>(job.outlier_indices.data, j);
  }
  __device__ __forceinline__ U value(std::uint64_t j) const {
    return cuda::loadUnaligned<U>(job.outlier_values.data, j);
  }
};

/// Where outliers go. In a group ops nearer the field may have put other values into places of it,
/// which stand.
template <class U>
struct Target {
  U* out;
  group::Holes holes;

  explicit __device__ __forceinline__ Target(const DecodeJob& job)
      : out(reinterpret_cast<U*>(job.output.data)), holes{} {
    if (job.is_group && job.record->value[kSlotField] != 0) {
      out = reinterpret_cast<U*>(job.record->value[kSlotField]);
      holes.words = reinterpret_cast<const std::uint32_t*>(job.record->value[kSlotHoles]);
    }
  }
  __device__ __forceinline__ bool takes(std::uint64_t index) const { return !holes.isHole(index); }
};

/// One block. Lists in any order, as archives of the existing system have them: of entries with
/// the same index the last wins. Batches of entries follow each other; inside a batch the output
/// itself serves to find the last entry for a place.
template <class U>
__device__ void placeInOrder(const DecodeJob& job, const Head& head) {
  const Lists<U> lists{job};
  const Target<U> target(job);
  U* const out = target.out;
  const unsigned ticket = threadIdx.x + 1;
  for (std::uint64_t begin = 0; begin < head.n_outliers; begin += kScatterThreads) {
    const std::uint64_t j = begin + threadIdx.x;
    const bool is_there = j < head.n_outliers;
    const std::uint64_t index = is_there ? lists.index(j) : 0;
    const bool has_entry = is_there && target.takes(index);
    auto* place = reinterpret_cast<unsigned*>(out + index);
    if (has_entry) {
      __stcg(place, 0u);
    }
    __syncthreads();
    if (has_entry) {
      atomicMax(place, ticket);
    }
    __syncthreads();
    const bool is_last = has_entry && __ldcg(place) == ticket;
    __syncthreads();
    if (is_last) {
      out[index] = lists.value(j);
    }
    __syncthreads();
  }
}

/// All outliers at once. That is final when the indices ascend; else the last block goes through
/// them once more. It also ends the run where it has taken the readback.
template <class U>
__device__ __forceinline__ void scatter(const DecodeJob& job, const cuda::HostReadback& readback) {
  const Head head = readHead(job);
  const std::uint64_t j = std::uint64_t{blockIdx.x} * kScatterThreads + threadIdx.x;
  const Target<U> target(job);
  const bool is_open = head.ok && fitsOutput<U>(job, head) && target.out != nullptr;
  StageRecord& record = *job.record;
  if (is_open && j < head.n_outliers) {
    const Lists<U> lists{job};
    const std::uint32_t index = lists.index(j);
    if (index >= head.n_values) {
      cuda::recordError(job.record, DeviceError::kCorrupt, j << 32 | index);
    } else {
      if (j > 0 && index <= lists.index(j - 1)) {
        record.value[kSlotUnordered] = 1;
      }
      if (target.takes(index)) {
        target.out[index] = lists.value(j);
      }
    }
  }
  if (!cuda::isLastBlock(&record.value[kSlotBlocksDone])) {
    return;
  }
  if (is_open && *const_cast<const volatile std::uint64_t*>(&record.value[kSlotUnordered]) != 0 &&
      *const_cast<const volatile std::uint64_t*>(&record.error) == 0) {
    placeInOrder<U>(job, head);
  }
  if (readback.is_done != nullptr) {
    cuda::bringToHost(readback);
  }
}

template <class U>
__global__ void __launch_bounds__(kScatterThreads)
    scatterKernel(const DecodeJob job, const cuda::HostReadback readback) {
  scatter<U>(job, readback);
}

struct ScatterJob {
  alignas(16) DecodeJob job;
  alignas(16) cuda::HostReadback readback;
};
template <class U>
__global__ void __launch_bounds__(kScatterThreads) scatterEachKernel(const EachField fields) {
  const auto& all = cuda::argumentsOf<ScatterJob>(fields);
  scatter<U>(all.job, all.readback);
}

template <class T, class C, DecodeForm kForm>
void launchForm(const DecodeJob& job, const cuda::Call& call) {
  const std::size_t n = job.codes.size.n_bytes / sizeof(C);
  const unsigned n_blocks = cuda::gridFor(n, TileShape<T, kDecodeVecs<T, C>>::kValues * kWarps);
  decodeKernel<T, C, kForm><<<n_blocks, kThreads, 0, call.stream>>>(job);
  cuda::checkLaunch("quantizer decodeKernel");
}

template <class T, class C>
void launchFor(const DecodeJob& job, const cuda::Call& call) {
  switch (job.form) {
    case DecodeForm::kTwosComplement:
      return launchForm<T, C, DecodeForm::kTwosComplement>(job, call);
    case DecodeForm::kZigzag:
      return launchForm<T, C, DecodeForm::kZigzag>(job, call);
    case DecodeForm::kRel:
      return launchForm<T, C, DecodeForm::kRel>(job, call);
    case DecodeForm::kRelV1:
      return launchForm<T, C, DecodeForm::kRelV1>(job, call);
    case DecodeForm::kInplace:
      if constexpr (sizeof(T) == 4 && sizeof(C) == 4) {
        launchForm<T, C, DecodeForm::kInplace>(job, call);
      }
      return;
  }
}

}  // namespace

void launchDecode(const DecodeJob& job, const cuda::Call& call) {
  if (job.value_bytes == 4) {
    job.code_bytes == 2 ? launchFor<float, std::uint16_t>(job, call)
                        : launchFor<float, std::uint32_t>(job, call);
  } else {
    job.code_bytes == 2 ? launchFor<double, std::uint16_t>(job, call)
                        : launchFor<double, std::uint32_t>(job, call);
  }
}

void launchScatter(const DecodeJob& job, const cuda::Call& call) {
  const std::size_t most = job.outlier_indices.size.n_bytes / sizeof(std::uint32_t);
  if (most == 0) {
    return;
  }
  call.launch("quantizer scatterKernel",
              job.value_bytes == 4
                  ? cuda::withEach(scatterKernel<std::uint32_t>, scatterEachKernel<std::uint32_t>)
                  : cuda::withEach(scatterKernel<std::uint64_t>, scatterEachKernel<std::uint64_t>),
              cuda::gridFor(most, kScatterThreads), kScatterThreads, 0, job, call.takeReadback());
}

}  // namespace fz::quantizer::device
