// RLE on a device.
#include <algorithm>
#include <array>

#include <cuda_runtime_api.h>

#include "backends/cuda/launch.h"
#include "coders/rle/codec.h"
#include "coders/rle/cuda/kernels.h"
#include "coders/rle/cuda/policy.h"
#include "coders/rle/rle.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "cuda_check.h"
#include "mem/scratch.h"

namespace fz::rle {

namespace {

/// Look-back states of n tiles, all unknown, and a word behind them.
std::span<std::uint64_t> clearedStates(Scratch& scratch,
                                       const cuda::Call& call,
                                       std::size_t n_tiles) {
  const auto states = scratch.get<std::uint64_t>(call.pool, n_tiles + 1);
  FZ_CUDA_CHECK(cudaMemsetAsync(states.data(), 0, states.size_bytes(), call.stream));
  return states;
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(RLEStage<T>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override { return {{1, 4, kValuesSlot}}; }

 private:
  RLEStage<T>& stage_;
  Scratch look_back_;
  Scratch starts_;  ///< encoding: the first run of each tile; decoding: where batches of runs begin
  Scratch last_heads_;
  Scratch marks_;
};

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  if (size.isExact()) {
    stage_.checkInput(size.n_bytes);
  }
  const std::uint64_t n_bytes = std::min(size.n_bytes, kMaxValues * sizeof(T));
  const std::uint32_t n_tiles = cuda::gridFor(n_bytes, kTileBytes);
  launchEncode(
      {.in = call.inputs[0],
       .out = call.outputs[0],
       .record = call.record,
       .states = clearedStates(look_back_, call, n_tiles).data(),
       .first_run = starts_.get<std::uint32_t>(call.pool, std::size_t{n_tiles} + 1).data(),
       .last_head = last_heads_.get<std::uint32_t>(call.pool, n_tiles).data(),
       .marks =
           marks_.get<std::uint8_t>(call.pool, std::size_t{n_tiles} * kTileBytes / (8 * sizeof(T)))
               .data(),
       .n_tiles = n_tiles},
      sizeof(T), call);
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  stage_.n_values_ = static_cast<std::uint32_t>(record.value[kValuesSlot]);
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  if (size.isExact()) {
    stage_.decodedBytes(
        std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
  }
  const std::uint64_t n_runs = size.n_bytes / (sizeof(T) + sizeof(std::uint32_t));
  constexpr std::uint64_t kRunsPerTile = kTileBatches * kBatchRuns;
  const std::uint32_t n_run_tiles =
      cuda::gridFor(std::min<std::uint64_t>(n_runs, kMaxValues), kRunsPerTile);
  const std::uint64_t n_output =
      std::min<std::uint64_t>(call.outputs[0].capacity_bytes, kMaxValues * sizeof(T));
  const auto states = clearedStates(look_back_, call, n_run_tiles);
  launchDecode(
      {.in = call.inputs[0],
       .out = call.outputs[0],
       .record = call.record,
       .states = states.data(),
       .confirmed = states.data() + n_run_tiles,
       .batch_start =
           starts_.get<std::uint32_t>(call.pool, std::size_t{n_run_tiles} * kTileBatches).data(),
       .n_run_tiles = n_run_tiles,
       .n_fill_tiles = cuda::gridFor(n_output, kTileBytes)},
      sizeof(T), call);
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  if (!stage_.isInverse()) {
    stage_.checkInput(record.error_index);
  }
  if (record.error_value == kLengthsAreWrong) {
    detail::throwError(ErrorCode::kCorrupt,
                       fmt::format("{}: run lengths must add up to {}, got {}", stage_.getName(),
                                   record.value[kValuesSlot], record.error_index));
  }
  detail::throwError(ErrorCode::kCorrupt,
                     fmt::format("{}: {} runs do not fit the size of the stream", stage_.getName(),
                                 record.error_index));
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, RLEStage<std::uint8_t>, RLEStage<std::uint16_t>,
                       RLEStage<std::uint32_t>, RLEStage<std::int32_t>>;
}

}  // namespace fz::rle
