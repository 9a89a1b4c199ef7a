#include "shufflers/bitshuffle/bitshuffle_stage.h"
#include "shufflers/bitshuffle/codec.h"

namespace fz {

const ParamTable& BitshuffleStage::paramTable() const {
  return descriptor().params();
}

namespace bitshuffle {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return types.empty() ? std::make_unique<BitshuffleStage>() : nullptr;
}

const ParamTable& params() {
  static const ParamTable kTable = [] {
    Param width = intParam<BitshuffleStage>(
        "element_width", 4, {1, 8}, "bytes of an element", &BitshuffleStage::getElementWidth,
        [](BitshuffleStage& s, std::int64_t v) { s.setElementWidth(static_cast<std::size_t>(v)); });
    width.choices = {"1", "2", "4", "8"};
    return ParamTable({intParam<BitshuffleStage>("block_size", 16384, {1024, kMaxBlockBytes},
                                                 "bytes of a block, a multiple of 1024 elements",
                                                 &BitshuffleStage::getBlockSize,
                                                 [](BitshuffleStage& s, std::int64_t v) {
                                                   s.setBlockSize(static_cast<std::size_t>(v));
                                                 }),
                       std::move(width)});
  }();
  return kTable;
}

StageTypes typesFromConfig(ByteView /*config*/) {
  return {};
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 17,
      .name = "Bitshuffle",
      .category = "shuffler",
      .summary = "equal bits of the elements of a block side by side, highest bits first",
      .type_keys = {},
      .type_combinations = {},
      .aliases = {"bshuf"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace bitshuffle
}  // namespace fz
