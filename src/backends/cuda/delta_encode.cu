#include "backends/cuda/delta_args.cuh"

namespace fz::delta {

namespace {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

/// Where blocks start.
struct Starts {
  std::uint64_t length;

  __device__ __forceinline__ bool isPowerOfTwo() const { return (length & (length - 1)) == 0; }
  /// Values between the start of the block and value `at`.
  __device__ __forceinline__ std::uint64_t placeOf(std::uint64_t at) const {
    return isPowerOfTwo() ? at & (length - 1) : at % length;
  }
  /// The same for a value `offset` (below 2^20) after one at `place`.
  __device__ __forceinline__ std::uint64_t placeAfter(std::uint64_t place, unsigned offset) const {
    if (isPowerOfTwo()) {
      return (place + offset) & (length - 1);
    }
    return (static_cast<unsigned>(place) + offset) % static_cast<unsigned>(length);
  }
};

/// How many values of this lane did not come back, and the first of them.
struct Losses {
  unsigned n_values = 0;
  std::uint64_t first = ~std::uint64_t{0};
};

__device__ __forceinline__ void recordLosses(StageRecord* record, Losses losses) {
  if (!__any_sync(kAllLanes, losses.n_values != 0)) {
    return;
  }
#pragma unroll
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const std::uint64_t other = __shfl_xor_sync(kAllLanes, losses.first, step);
    losses.first = other < losses.first ? other : losses.first;
  }
  const unsigned n_values = cuda::warpSum(losses.n_values);
  if (laneId() == 0) {
    cuda::recordError(record, DeviceError::kBound, losses.first, n_values);
  }
}

/// Clears the left neighbours of values that start a block; `place` is that of the first value.
template <class U, class P, class Word>
__device__ __forceinline__ Word withoutStarts(Word left, unsigned length, unsigned& place) {
#pragma unroll
  for (unsigned i = 0; i < P::kPack; ++i) {
    if constexpr (P::kPack > 1) {
      constexpr Word kValue = (Word{1} << P::kValueBits) - 1;
      left &= place == 0 ? ~(kValue << (i * P::kValueBits)) : ~Word{0};
    } else {
      left = place == 0 ? Word{0} : left;
    }
    place = place + 1 == length ? 0 : place + 1;
  }
  return left;
}

/// Each lane takes 16 bytes of each of kRows rows; what is left of them comes from the lane before.
/// kAnyStart: blocks may start inside a lane's values.
template <class U, Code kCode, bool kAnyStart>
__global__ __launch_bounds__(kThreads) void encodeKernel(CudaValues values, Starts starts) {
  using P = cuda::Packed<U, true>;
  using Word = typename P::Word;
  constexpr std::uint64_t kTileValues = kTileBytes / sizeof(U);
  const std::uint64_t n = valueCount<U>(values);
  const auto* in = static_cast<const U*>(values.in);
  auto* out = static_cast<U*>(values.out);
  const std::uint64_t tile = blockIdx.x * kTileValues;
  const std::uint64_t begin = tile + warpId() * kRows * P::kRowValues;
  if (begin >= n) {
    return;
  }
  Word rows[kRows][P::kWords];
  P::loadRows(in, begin, n, rows);
  Word row_before = 0;  // the last word before a row, for its first lane
  if (laneId() == 0 && begin > 0) {
    row_before = P::asLast(static_cast<Word>(in[begin - 1]));
  }
  const std::uint64_t warp_place = starts.placeOf(begin);
  [[maybe_unused]] Losses losses;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    const unsigned offset = r * P::kRowValues + laneId() * P::kLaneValues;
    const std::uint64_t place = starts.placeAfter(warp_place, offset);
    const Word row_end = __shfl_sync(kAllLanes, rows[r][P::kWords - 1], kWarp - 1);
    const Word lane_before = __shfl_up_sync(kAllLanes, rows[r][P::kWords - 1], 1);
    Word before = laneId() == 0 ? row_before : lane_before;
    row_before = row_end;
    if constexpr (std::is_floating_point_v<U>) {
      auto at = static_cast<unsigned>(kAnyStart ? place : place != 0 ? 1 : 0);
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        const Word value = rows[r][w];
        if (at != 0) {
          rows[r][w] = minus(value, before);
          if (begin + offset + w < n && !isRestored(before, rows[r][w], value)) {
            losses.first = losses.n_values == 0 ? begin + offset + w : losses.first;
            ++losses.n_values;
          }
        }
        before = value;
        at = kAnyStart && at + 1 == starts.length ? 0 : at + 1;
      }
    } else {
      auto at = static_cast<unsigned>(place);
      before = !kAnyStart && place == 0 ? Word{0} : before;
#pragma unroll
      for (unsigned w = 0; w < P::kWords; ++w) {
        Word left = P::leftOf(rows[r][w], before);
        if constexpr (kAnyStart) {
          left = withoutStarts<U, P>(left, static_cast<unsigned>(starts.length), at);
        }
        before = rows[r][w];
        rows[r][w] = toCodes<kCode, P>(P::sub(rows[r][w], left));
      }
    }
  }
  P::storeRows(out, begin, n, rows);
  if constexpr (std::is_floating_point_v<U>) {
    recordLosses(values.record, losses);
  }
}

template <class U, Code kCode>
void launch(const CudaBlocks& run) {
  const std::uint64_t length = blockLength(run.block);
  const unsigned n_blocks = cuda::gridFor(run.input.size.n_bytes, kTileBytes);
  const CudaValues values = cudaValues(run);
  if (length % (16 / sizeof(U)) == 0) {
    encodeKernel<U, kCode, false><<<n_blocks, kThreads, 0, run.stream>>>(values, {length});
  } else {
    encodeKernel<U, kCode, true><<<n_blocks, kThreads, 0, run.stream>>>(values, {length});
  }
  cuda::checkLaunch("delta encode");
}

}  // namespace

CudaBlocks cudaBlocks(const cuda::Call& call, std::uint64_t block, std::uint64_t expected_bytes) {
  return {call.inputs[0], call.outputs[0], block, expected_bytes, call.record, call.stream};
}

template <class U>
void encodeBlocks(const CudaBlocks& run, Code code) {
  if (code == Code::kNegabinary) {
    launch<U, Code::kNegabinary>(run);
  } else {
    launch<U, Code::kPlain>(run);
  }
}

template <class T>
void encodeFloats(const CudaBlocks& run) {
  launch<T, Code::kPlain>(run);
}

template void encodeBlocks<std::uint8_t>(const CudaBlocks&, Code);
template void encodeBlocks<std::uint16_t>(const CudaBlocks&, Code);
template void encodeBlocks<std::uint32_t>(const CudaBlocks&, Code);
template void encodeBlocks<std::uint64_t>(const CudaBlocks&, Code);
template void encodeFloats<float>(const CudaBlocks&);
template void encodeFloats<double>(const CudaBlocks&);

}  // namespace fz::delta
