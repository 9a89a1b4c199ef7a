#include "fused/bitplane_rze/bitplane_rze_cuda.h"

#include <algorithm>
#include <array>

#include "core/require.h"
#include "fused/bitplane_rze/bitplane_rze_codec.h"
#include "fused/bitplane_rze/bitplane_rze_op.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"

namespace fz {

namespace bp = bitplane_rze;

namespace {

/// Blocks for n_bytes of symbols, at least one, so that sizes are published for empty inputs too.
std::uint32_t blocksFor(std::uint64_t n_bytes) {
  const std::uint64_t n_symbols = std::clamp<std::uint64_t>(n_bytes / 2, 1, bp::kMaxSymbols);
  return static_cast<std::uint32_t>(
      bits::ceilDiv(bp::layoutOf(n_symbols).n_chunks, std::uint64_t{bp::kChunksPerBlock}));
}

}  // namespace

bool BitplaneRZEStage::hasCuda() const {
  return true;
}

/// CudaArgs::states; to be cleared behind the encode.
std::uint64_t* BitplaneRZEStage::encodeStates(const CudaRun& run, std::uint32_t n_blocks) {
  const std::size_t n_bytes = n_blocks * sizeof(std::uint64_t);
  return reinterpret_cast<std::uint64_t*>(look_back_.get(run, n_bytes));
}

void BitplaneRZEStage::encodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  if (size.isExact()) {
    checkInput(size.n_bytes);
  }
  const std::uint32_t n_blocks = blocksFor(size.n_bytes);
  bp::launchEncode(
      {run.inputs[0], run.outputs[0], run.record, encodeStates(run, n_blocks), n_blocks},
      run.stream);
  look_back_.clear(run);
}

void BitplaneRZEStage::finishEncodeCuda(const StageRecord& record) {
  n_symbols_ = record.value[bp::kSymbolsSlot];
}

void BitplaneRZEStage::decodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  if (size.isExact()) {
    decodedBytes(std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
  }
  bp::launchDecode({run.inputs[0], run.outputs[0], run.record, nullptr,
                    blocksFor(run.outputs[0].capacity_bytes)},
                   run.stream);
}

TileOp BitplaneRZEStage::cudaTileOp() const {
  return CoderOp{.tile_bytes = bp::kChunkBytes,
                 .value_bytes = 2,
                 .warp_bytes = bp::kChunkBytes,
                 .takes_lines = true,
                 .gives_runs = true};
}

std::string BitplaneRZEStage::tileOpType() const {
  return "fz::bitplane_rze::BitplaneRzeOp";
}

std::string BitplaneRZEStage::tileOpHeader() const {
  return "fused/bitplane_rze/bitplane_rze_op.cuh";
}

void BitplaneRZEStage::beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) {
  const DeviceSize& size = run.inputs[0].size;
  std::uint64_t* states = nullptr;
  if (isInverse()) {
    if (size.isExact()) {
      decodedBytes(std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
    }
  } else {
    if (size.isExact()) {
      checkInput(size.n_bytes);
    }
    states = encodeStates(run, group.n_blocks);
  }
  args.add(bp::BitplaneArgs{run.inputs[0], run.outputs[0], run.record, states, group.n_blocks});
}

void BitplaneRZEStage::endGroupCuda(const CudaRun& run, const GroupRun& /*group*/) {
  if (!isInverse()) {
    // Blocks that counted themselves, for the last one to do this, took 32 of 270 microseconds more
    // on 512 MiB.
    look_back_.clear(run);
  }
}

void BitplaneRZEStage::throwDeviceError(const StageRecord& record) const {
  if (!isInverse()) {
    checkInput(record.error_index);
  }
  if (record.error_value == bp::kHeaderIsWrong) {
    detail::throwError(
        ErrorCode::kCorrupt,
        fmt::format("{}: the header contradicts the size or the config, which has {} symbols",
                    getName(), record.value[bp::kSymbolsSlot]));
  }
  detail::throwError(ErrorCode::kCorrupt, fmt::format("{}: chunk {} needs words outside the stream",
                                                      getName(), record.error_index));
}

}  // namespace fz
