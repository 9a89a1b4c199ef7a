#include <fmt/format.h>

#include "transforms/signed_map/codec.h"
#include "transforms/signed_map/cuda/kernels.h"
#include "transforms/signed_map/signed_map_stage.h"

namespace fz {

namespace signed_map {

class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(SignedMapStage& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override {
    const DeviceSize& size = call.inputs[0].size;
    if (size.isExact()) {
      stage_.requireWholeValues(size.n_bytes);
    }
    launchEncode(stage_.kind_, valueBytes(), call);
  }
  void decode(const cuda::Call& call) override { launchDecode(stage_.kind_, valueBytes(), call); }
  TileOp tileOp() const override { return MapOp{valueBytes()}; }
  std::string tileOpType() const override {
    return fmt::format("fz::signed_map::SignedMapOp<std::{}_t, fz::signed_map::{}>",
                       dataTypeToString(stage_.signed_type_),
                       stage_.kind_ == Kind::kZigzag ? "ZigzagMap" : "NegabinaryMap");
  }
  std::string tileOpHeader() const override { return "transforms/signed_map/cuda/op/op.cuh"; }
  void beginGroup(const cuda::Call& call, const GroupRun& /*group*/, GroupArgs& args) override {
    stage_.requireWholeValues(call.inputs[0].size.n_bytes);
    stage_.kind_ == Kind::kZigzag ? args.add(ZigzagMap{}) : args.add(NegabinaryMap{});
  }

 private:
  std::size_t valueBytes() const { return getDataTypeSize(stage_.signed_type_); }

  SignedMapStage& stage_;
};

namespace {

std::unique_ptr<CudaPart> makePart(SimpleStage& stage) {
  return std::make_unique<CudaSide>(static_cast<SignedMapStage&>(stage));
}

}  // namespace
}  // namespace signed_map

namespace zigzag {
MakeCudaPart cudaPartMaker() {
  return &signed_map::makePart;
}
}  // namespace zigzag

namespace negabinary {
MakeCudaPart cudaPartMaker() {
  return &signed_map::makePart;
}
}  // namespace negabinary

}  // namespace fz
