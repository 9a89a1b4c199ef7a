#include "shufflers/bitshuffle/bitshuffle_cuda.h"

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

}  // namespace fz
