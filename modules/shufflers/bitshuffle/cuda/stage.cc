#include <fmt/format.h>

#include "backends/cuda/padding.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "shufflers/bitshuffle/cuda/kernels.h"

namespace fz::bitshuffle {

class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(BitshuffleStage& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override { launchEncode(checkedJob(call), call); }
  void decode(const cuda::Call& call) override { launchDecode(checkedJob(call), call); }
  std::optional<std::uint32_t> quietValues() const override { return 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override { return "shufflers/bitshuffle/cuda/op/op.cuh"; }
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;

 private:
  DeviceJob checkedJob(const cuda::Call& call) const;

  BitshuffleStage& stage_;
};

DeviceJob CudaSide::checkedJob(const cuda::Call& call) const {
  stage_.requireWholeUnits();
  return {call.inputs[0].data,
          call.inputs[0].size,
          call.outputs[0].data,
          call.outputs[0].capacity_bytes,
          static_cast<std::uint32_t>(stage_.block_bytes_),
          static_cast<std::uint32_t>(stage_.element_bytes_),
          !call.outputs[0].size_known,
          call.record};
}

TileOp CudaSide::tileOp() const {
  if (!stage_.hasWholeUnits()) {
    return NoOp{"its settings contradict each other"};
  }
  return PlanesOp{.block_bytes = static_cast<std::uint32_t>(stage_.block_bytes_),
                  .value_bytes = static_cast<std::uint32_t>(stage_.element_bytes_),
                  .warp_bytes = kWarpBytes};
}

std::string CudaSide::tileOpType() const {
  return fmt::format("fz::bitshuffle::BitshuffleOp<{}>", stage_.element_bytes_);
}

void CudaSide::beginGroup(const cuda::Call& /*call*/, const GroupRun& /*group*/, GroupArgs& args) {
  BitshuffleArgs own = {static_cast<std::uint32_t>(stage_.block_bytes_)};
  cuda::clearPadding(own);
  args.add(own);
}

MakeCudaPart cudaPartMaker() {
  return [](SimpleStage& stage) -> std::unique_ptr<CudaPart> {
    return std::make_unique<CudaSide>(static_cast<BitshuffleStage&>(stage));
  };
}

}  // namespace fz::bitshuffle
