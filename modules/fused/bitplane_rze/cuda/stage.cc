// BitplaneRZE on a device: alone, and as the coder of a fused group.
#include <algorithm>
#include <array>

#include "backends/cuda/zeroed_scratch.h"
#include "core/require.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "fused/bitplane_rze/codec.h"
#include "fused/bitplane_rze/cuda/kernels.h"

namespace fz::bitplane_rze {

namespace {

/// Blocks for n_bytes of symbols, at least one, so that sizes are published for empty inputs too.
std::uint32_t blocksFor(std::uint64_t n_bytes) {
  const std::uint64_t n_symbols = std::clamp<std::uint64_t>(n_bytes / 2, 1, kMaxSymbols);
  return static_cast<std::uint32_t>(
      bits::ceilDiv(layoutOf(n_symbols).n_chunks, std::uint64_t{kChunksPerBlock}));
}

}  // namespace

class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(BitplaneRZEStage& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override { return {{0, 8, kSymbolsSlot}}; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;
  void endGroup(const cuda::Call& call, const GroupRun& group) override;

 private:
  std::uint64_t* encodeStates(const cuda::Call& call, std::uint32_t n_blocks);

  BitplaneRZEStage& stage_;
  ZeroedScratch look_back_;
};

/// BitplaneArgs::states; to be cleared behind the encode.
std::uint64_t* CudaSide::encodeStates(const cuda::Call& call, std::uint32_t n_blocks) {
  const std::size_t n_bytes = n_blocks * sizeof(std::uint64_t);
  return reinterpret_cast<std::uint64_t*>(look_back_.get(call, n_bytes));
}

void CudaSide::encode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  if (size.isExact()) {
    stage_.checkInput(size.n_bytes);
  }
  const std::uint32_t n_blocks = blocksFor(size.n_bytes);
  launchEncode(
      {call.inputs[0], call.outputs[0], call.record, encodeStates(call, n_blocks), n_blocks}, call);
  call.clearAtEnd(look_back_);
}

void CudaSide::finishEncode(const StageRecord& record) {
  stage_.n_symbols_ = record.value[kSymbolsSlot];
}

void CudaSide::decode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  if (size.isExact()) {
    stage_.decodedBytes(
        std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
  }
  launchDecode({call.inputs[0], call.outputs[0], call.record, nullptr,
                blocksFor(call.outputs[0].capacity_bytes)},
               call);
}

TileOp CudaSide::tileOp() const {
  return CoderOp{.tile_bytes = kChunkBytes,
                 .value_bytes = 2,
                 .warp_bytes = kChunkBytes,
                 .takes_lines = true,
                 .gives_runs = true};
}

std::string CudaSide::tileOpType() const {
  return "fz::bitplane_rze::BitplaneRzeOp";
}

std::string CudaSide::tileOpHeader() const {
  return "fused/bitplane_rze/cuda/op/op.cuh";
}

void CudaSide::beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  const DeviceSize& size = call.inputs[0].size;
  std::uint64_t* states = nullptr;
  if (stage_.isInverse()) {
    if (size.isExact()) {
      stage_.decodedBytes(
          std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
    }
  } else {
    if (size.isExact()) {
      stage_.checkInput(size.n_bytes);
    }
    states = encodeStates(call, group.n_blocks);
  }
  args.add(BitplaneArgs{call.inputs[0], call.outputs[0], call.record, states, group.n_blocks});
}

void CudaSide::endGroup(const cuda::Call& call, const GroupRun& /*group*/) {
  if (!stage_.isInverse()) {
    // Blocks that counted themselves, for the last one to do this, took 32 of 270 microseconds more
    // on 512 MiB.
    call.clearAtEnd(look_back_);
  }
}

void CudaSide::throwError(const StageRecord& record) const {
  if (!stage_.isInverse()) {
    stage_.checkInput(record.error_index);
  }
  if (record.error_value == kHeaderIsWrong) {
    detail::throwError(
        ErrorCode::kCorrupt,
        fmt::format("{}: the header contradicts the size or the config, which has {} symbols",
                    stage_.getName(), record.value[kSymbolsSlot]));
  }
  detail::throwError(ErrorCode::kCorrupt, fmt::format("{}: chunk {} needs words outside the stream",
                                                      stage_.getName(), record.error_index));
}

MakeCudaPart cudaPartMaker() {
  return [](SimpleStage& stage) -> std::unique_ptr<CudaPart> {
    return std::make_unique<CudaSide>(static_cast<BitplaneRZEStage&>(stage));
  };
}

}  // namespace fz::bitplane_rze
