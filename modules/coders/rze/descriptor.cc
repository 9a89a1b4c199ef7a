#include "coders/rze/codec.h"
#include "coders/rze/rze_stage.h"

namespace fz {

const ParamTable& RZEStage::paramTable() const {
  return descriptor().params();
}

namespace rze {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return types.empty() ? std::make_unique<RZEStage>() : nullptr;
}

const ParamTable& params() {
  static const ParamTable kTable = [] {
    Param chunk = intParam<RZEStage>(
        "chunk_size", 16384, {4096, 16384}, "bytes that are coded on their own",
        &RZEStage::getChunkSize,
        [](RZEStage& s, std::int64_t v) { s.setChunkSize(static_cast<std::size_t>(v)); });
    chunk.choices = {"4096", "8192", "16384"};
    return ParamTable({std::move(chunk),
                       intParam<RZEStage>(
                           "levels", 4, {1, kMaxLevels},
                           "bitmaps per chunk, each over the one before", &RZEStage::getLevels,
                           [](RZEStage& s, std::int64_t v) { s.setLevels(static_cast<int>(v)); })});
  }();
  return kTable;
}

StageTypes typesFromConfig(ByteView /*config*/) {
  return {};
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 18,
      .name = "RZE",
      .category = "coder",
      .summary = "removes zero bytes, and repeats from the bitmaps of where they were",
      .type_keys = {},
      .type_combinations = {},
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace rze
}  // namespace fz
