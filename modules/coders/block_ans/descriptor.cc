#include "coders/block_ans/block_ans_stage.h"

namespace fz::block_ans {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using Types = TypeList<std::int16_t, std::int32_t, std::uint16_t, std::uint32_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<BlockAnsStage>(types, Types{});
}

StageTypes typesFromConfig(ByteView config) {
  if (config.empty()) {
    return {};
  }
  return {static_cast<DataType>(config[0])};
}

const ParamTable& table() {
  static const ParamTable kTable = [] {
    Param chunk = intParam<BlockAnsBase>(
        "chunk", 0, {0, 262144},
        "weight of what is coded on its own: longer chunks are smaller and slower; 0: by the size "
        "of the data",
        &BlockAnsBase::getChunk,
        [](BlockAnsBase& s, std::int64_t v) { s.setChunk(static_cast<std::uint32_t>(v)); });
    chunk.choices = {"0", "12288", "16384", "32768", "65536", "262144"};
    return ParamTable(
        {choiceParam<BlockAnsBase>(
             "map", "zigzag", {"zigzag", "none"},
             "zigzag for signed values and two's complement codes, none for values that are small "
             "without a sign",
             [](const BlockAnsBase& s) {
               return s.getMap() == BlockAnsMap::None ? "none" : "zigzag";
             },
             [](BlockAnsBase& s, const std::string& v) {
               s.setMap(v == "none" ? BlockAnsMap::None : BlockAnsMap::Zigzag);
             }),
         choiceParam<BlockAnsBase>(
             "tables", "counted", {"counted", "fixed"},
             "counted: made for the data, in two passes; fixed: a bank of tables, in one pass",
             [](const BlockAnsBase& s) {
               return s.getTables() == BlockAnsTables::Fixed ? "fixed" : "counted";
             },
             [](BlockAnsBase& s, const std::string& v) {
               s.setTables(v == "fixed" ? BlockAnsTables::Fixed : BlockAnsTables::Counted);
             }),
         std::move(chunk)});
  }();
  return kTable;
}

}  // namespace

const ParamTable& BlockAnsBase::paramTable() const {
  return table();
}

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 20482,
      .name = "BlockANS",
      .category = "coder",
      .summary = "asymmetric numeral systems with a table for each class of blocks of 64 residuals",
      .type_keys = {{"input_type", DataType::UINT16}},
      .type_combinations = combinationsOf(Types{}),
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &table,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace fz::block_ans
