#include "coders/huffman/huffman_stage.h"

namespace fz {

template <class T>
const ParamTable& HuffmanStage<T>::paramTable() const {
  static const ParamTable kTable({
      intParam<HuffmanStage>(
          "bklen", kDefaultBklen, {1, kMaxBklen},
          "number of possible symbols; every value must be below it", &HuffmanStage::getBklen,
          [](HuffmanStage& s, std::int64_t v) { s.setBklen(static_cast<std::uint32_t>(v)); }),
      choiceParam<HuffmanStage>(
          "encode_mode", "Coarse", {"Coarse", "Fine"},
          "values per independently decoded partition: 768 (Coarse) or 1024 (Fine)",
          [](const HuffmanStage& s) {
            return s.mode_ == HuffmanEncodeMode::Fine ? "Fine" : "Coarse";
          },
          [](HuffmanStage& s, const std::string& v) {
            s.setEncodeMode(v == "Fine" ? HuffmanEncodeMode::Fine : HuffmanEncodeMode::Coarse);
          }),
  });
  return kTable;
}

template const ParamTable& HuffmanStage<std::uint8_t>::paramTable() const;
template const ParamTable& HuffmanStage<std::uint16_t>::paramTable() const;
template const ParamTable& HuffmanStage<std::uint32_t>::paramTable() const;

namespace huffman {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

using Types = TypeList<std::uint8_t, std::uint16_t, std::uint32_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<HuffmanStage>(types, Types{});
}

StageTypes typesFromConfig(ByteView config) {
  return {config.empty() ? DataType::UINT16 : static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const HuffmanStage<std::uint16_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 6,
      .name = "Huffman",
      .category = "coder",
      .summary = "canonical Huffman codes in independently decodable partitions",
      .type_keys = {{"input_type", DataType::UINT16}},
      .type_combinations = combinationsOf(Types{}),
      .aliases = {"huf"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
      .graph_compatible_forward = false,  // the host builds the book
  };
  return kDescriptor;
}

}  // namespace huffman
}  // namespace fz
