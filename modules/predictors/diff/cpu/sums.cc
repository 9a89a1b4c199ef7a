#include "predictors/diff/cpu/sums.h"

#include <algorithm>
#include <atomic>

#include "backends/cpu/parallel_for.h"
#include "shared/bits.h"
#include "shared/delta.h"
#include "shared/team.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "predictors/diff/cpu/sums.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::diff::HWY_NAMESPACE {  // NOLINT

/// Differences of in[0] .. in[n-1] to in[-1] .. in[n-2]; false when a sum does not give the value
/// back. As long as every sum does, in[i-1] is what the decoder has at i.
template <class T>
bool encodeRun(const T* HWY_RESTRICT in, std::size_t n_values, T* HWY_RESTRICT out) {
  std::uint32_t n_lost = 0;
  for (std::size_t i = 0; i < n_values; ++i) {
    const T left = *(in + i - 1);
    out[i] = delta::minus(in[i], left);
    n_lost += delta::isRestored(left, out[i], in[i]) ? 0u : 1u;
  }
  return n_lost == 0;
}

bool encodeRun32(const float* in, std::size_t n_values, float* out) {
  return encodeRun(in, n_values, out);
}
bool encodeRun64(const double* in, std::size_t n_values, double* out) {
  return encodeRun(in, n_values, out);
}

}  // namespace fz::diff::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::diff {

HWY_EXPORT(encodeRun32);
HWY_EXPORT(encodeRun64);

namespace {

constexpr std::size_t kTileValues = 16384;  // work per task only; not part of the format
constexpr std::size_t kLanes = 4;  // chunks summed side by side, to hide the time of an addition

bool encodeRun(const float* in, std::size_t n_values, float* out) {
  return HWY_DYNAMIC_DISPATCH(encodeRun32)(in, n_values, out);
}
bool encodeRun(const double* in, std::size_t n_values, double* out) {
  return HWY_DYNAMIC_DISPATCH(encodeRun64)(in, n_values, out);
}

/// Runs the decoder's sums over the encoded chunks and compares. Only for data that fails.
template <class T>
Losses countLosses(std::span<const T> in, std::size_t chunk, const T* encoded) {
  Losses losses;
  T sum = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool starts = i % chunk == 0;
    const bool kept = starts || delta::isRestored(sum, encoded[i], in[i]);
    sum = starts ? in[i] : delta::plus(sum, encoded[i]);
    if (!kept) {
      losses.first_index = losses.n_values == 0 ? i : losses.first_index;
      ++losses.n_values;
    }
  }
  return losses;
}

/// Decodes kLanes whole chunks of `chunk` values each.
template <class T>
void decodeLanes(const T* in, std::size_t chunk, T* out) {
  T sums[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums[lane] = in[lane * chunk];
    out[lane * chunk] = sums[lane];
  }
  for (std::size_t i = 1; i < chunk; ++i) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] = delta::plus(sums[lane], in[lane * chunk + i]);
      out[lane * chunk + i] = sums[lane];
    }
  }
}

std::size_t chunkLength(std::size_t n_values, std::size_t chunk) {
  return chunk == 0 ? std::max<std::size_t>(n_values, 1) : chunk;
}

}  // namespace

template <class T>
Losses encodeFloats(const CpuExecutor& executor, std::span<const T> in, std::size_t chunk, T* out) {
  const std::size_t length = chunkLength(in.size(), chunk);
  const std::size_t step = std::min(length, kTileValues);
  std::atomic<bool> has_losses = false;
  parallelFor(executor, bits::ceilDiv(in.size(), kTileValues), [&](std::size_t tile) {
    const std::size_t tile_end = std::min(in.size(), (tile + 1) * kTileValues);
    for (std::size_t begin = tile * kTileValues; begin < tile_end; begin += step) {
      const std::size_t end = std::min(begin + step, tile_end);
      const std::size_t first = begin % length == 0 ? begin + 1 : begin;
      out[begin] = in[begin];  // the start of a chunk; otherwise overwritten below
      if (!encodeRun(in.data() + first, end - first, out + first)) {
        has_losses.store(true, std::memory_order_relaxed);
      }
    }
  });
  return has_losses.load() ? countLosses(in, length, out) : Losses{};
}

template <class T>
void decodeFloats(const CpuExecutor& executor, std::span<const T> in, std::size_t chunk, T* out) {
  const std::size_t length = chunkLength(in.size(), chunk);
  const std::size_t group = length > in.size() / kLanes ? length : kLanes * length;
  const std::size_t n_groups = bits::ceilDiv(in.size(), group);
  const std::size_t per_task = std::max<std::size_t>(1, kTileValues / group);
  parallelFor(executor, bits::ceilDiv(n_groups, per_task), [&](std::size_t task) {
    const std::size_t task_end = std::min(in.size(), (task + 1) * per_task * group);
    for (std::size_t begin = task * per_task * group; begin < task_end;) {
      if (task_end - begin >= kLanes * length) {
        decodeLanes(in.data() + begin, length, out + begin);
        begin += kLanes * length;
        continue;
      }
      const std::size_t n = std::min(length, task_end - begin);
      delta::decodeFloatBlock(SerialTeam{}, in.data() + begin, n, out + begin);
      begin += n;
    }
  });
}

template Losses encodeFloats(const CpuExecutor&, std::span<const float>, std::size_t, float*);
template Losses encodeFloats(const CpuExecutor&, std::span<const double>, std::size_t, double*);
template void decodeFloats(const CpuExecutor&, std::span<const float>, std::size_t, float*);
template void decodeFloats(const CpuExecutor&, std::span<const double>, std::size_t, double*);

}  // namespace fz::diff
#endif
