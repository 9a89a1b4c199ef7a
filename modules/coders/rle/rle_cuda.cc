#include "coders/rle/rle_cuda.h"

#include <algorithm>
#include <array>

#include <cuda_runtime_api.h>

#include "coders/rle/rle.h"
#include "coders/rle/rle_codec.h"
#include "core/require.h"
#include "cuda_check.h"

namespace fz {

namespace {

/// Blocks for n items, at least one, so that sizes are published for empty inputs too.
std::uint32_t tilesFor(std::uint64_t n, std::uint64_t per_tile) {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, bits::ceilDiv(n, per_tile)));
}

/// Look-back states of n tiles, all unknown, and a word behind them.
std::span<std::uint64_t> clearedStates(Scratch& scratch, const CudaRun& run, std::size_t n_tiles) {
  const auto states = scratch.get<std::uint64_t>(run.pool, n_tiles + 1);
  FZ_CUDA_CHECK(cudaMemsetAsync(states.data(), 0, states.size_bytes(), run.stream));
  return states;
}

}  // namespace

template <class T>
bool RLEStage<T>::hasCuda() const {
  return true;
}

template <class T>
void RLEStage<T>::encodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  if (size.isExact()) {
    checkInput(size.n_bytes);
  }
  const std::uint64_t n_bytes = std::min(size.n_bytes, rle::kMaxValues * sizeof(T));
  const std::uint32_t n_tiles = tilesFor(n_bytes, rle::kTileBytes);
  rle::launchEncode(
      {.in = run.inputs[0],
       .out = run.outputs[0],
       .record = run.record,
       .states = clearedStates(look_back_, run, n_tiles).data(),
       .first_run = tile_starts_.get<std::uint32_t>(run.pool, std::size_t{n_tiles} + 1).data(),
       .last_head = next_starts_.get<std::uint32_t>(run.pool, n_tiles).data(),
       .marks = marks_
                    .get<std::uint8_t>(run.pool,
                                       std::size_t{n_tiles} * rle::kTileBytes / (8 * sizeof(T)))
                    .data(),
       .n_tiles = n_tiles},
      sizeof(T), run.stream);
}

template <class T>
void RLEStage<T>::finishEncodeCuda(const StageRecord& record) {
  n_values_ = static_cast<std::uint32_t>(record.value[rle::kValuesSlot]);
}

template <class T>
void RLEStage<T>::decodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  if (size.isExact()) {
    decodedBytes(std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
  }
  const std::uint64_t n_runs = size.n_bytes / (sizeof(T) + sizeof(std::uint32_t));
  constexpr std::uint64_t kTileRuns = rle::kTileGroups * rle::kGroupRuns;
  const std::uint32_t n_run_tiles =
      tilesFor(std::min<std::uint64_t>(n_runs, rle::kMaxValues), kTileRuns);
  const std::uint64_t n_output =
      std::min<std::uint64_t>(run.outputs[0].capacity_bytes, rle::kMaxValues * sizeof(T));
  const auto states = clearedStates(look_back_, run, n_run_tiles);
  rle::launchDecode(
      {.in = run.inputs[0],
       .out = run.outputs[0],
       .record = run.record,
       .states = states.data(),
       .confirmed = states.data() + n_run_tiles,
       .group_start =
           tile_starts_.get<std::uint32_t>(run.pool, std::size_t{n_run_tiles} * rle::kTileGroups)
               .data(),
       .n_run_tiles = n_run_tiles,
       .n_fill_tiles = tilesFor(n_output, rle::kTileBytes)},
      sizeof(T), run.stream);
}

template <class T>
void RLEStage<T>::throwDeviceError(const StageRecord& record) const {
  if (!isInverse()) {
    checkInput(record.error_index);
  }
  if (record.error_value == rle::kLengthsAreWrong) {
    detail::throwError(ErrorCode::kCorrupt,
                       fmt::format("{}: lengths that add up to {} needed, {} came", getName(),
                                   record.value[rle::kValuesSlot], record.error_index));
  }
  detail::throwError(
      ErrorCode::kCorrupt,
      fmt::format("{}: {} runs do not fit the size of the stream", getName(), record.error_index));
}

// Only what is defined here; rle_stage.cc has the other members.
template class RLEStage<std::uint8_t>;
template class RLEStage<std::uint16_t>;
template class RLEStage<std::uint32_t>;
template class RLEStage<std::int32_t>;

}  // namespace fz
