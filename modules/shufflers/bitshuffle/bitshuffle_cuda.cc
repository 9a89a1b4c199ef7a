#include "shufflers/bitshuffle/bitshuffle_cuda.h"

#include <fmt/format.h>

#include "shufflers/bitshuffle/bitshuffle_op.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"

namespace fz {

namespace {

bitshuffle::DeviceJob jobOf(const CudaRun& run,
                            std::size_t block_bytes,
                            std::size_t element_bytes) {
  return {run.inputs[0].data,
          run.inputs[0].size,
          run.outputs[0].data,
          run.outputs[0].capacity_bytes,
          static_cast<std::uint32_t>(block_bytes),
          static_cast<std::uint32_t>(element_bytes),
          !run.outputs[0].size_known,
          run.record};
}

}  // namespace

bool BitshuffleStage::hasCuda() const {
  return true;
}

void BitshuffleStage::encodeCuda(const CudaRun& run) {
  requireWholeUnits();
  bitshuffle::launchEncode(jobOf(run, block_bytes_, element_bytes_), run.stream);
}

void BitshuffleStage::decodeCuda(const CudaRun& run) {
  requireWholeUnits();
  bitshuffle::launchDecode(jobOf(run, block_bytes_, element_bytes_), run.stream);
}

TileOp BitshuffleStage::cudaTileOp() const {
  if (!hasWholeUnits()) {
    return NoOp{"its settings exclude each other"};
  }
  return PlanesOp{.block_bytes = static_cast<std::uint32_t>(block_bytes_),
                  .value_bytes = static_cast<std::uint32_t>(element_bytes_),
                  .warp_bytes = bitshuffle::kWarpBytes};
}

std::string BitshuffleStage::tileOpType() const {
  return fmt::format("fz::bitshuffle::BitshuffleOp<{}>", element_bytes_);
}

std::string BitshuffleStage::tileOpHeader() const {
  return "shufflers/bitshuffle/bitshuffle_op.cuh";
}

void BitshuffleStage::beginGroupCuda(const CudaRun& /*run*/,
                                     const GroupRun& /*group*/,
                                     GroupArgs& args) {
  args.add(bitshuffle::BitshuffleArgs{static_cast<std::uint32_t>(block_bytes_)});
}

}  // namespace fz
