#include "coders/bitpack/bitpack_stage.h"
#include "coders/bitpack/codec.h"

namespace fz {

template <class T>
const ParamTable& BitpackStage<T>::params() {
  using Self = BitpackStage<T>;
  static const ParamTable kTable = [] {
    Param n_bits = intParam<Self>(
        "nbits", bitpack::kWidth<T>, {1, bitpack::kWidth<T>},
        "bits per value, a power of two; values that need more are an error",
        [](const Self& s) { return s.n_bits_; },
        [](Self& s, std::int64_t v) { s.setNBits(static_cast<std::uint32_t>(v)); });
    n_bits.choices = {"1", "2", "4", "8"};
    if (sizeof(T) >= 2) {
      n_bits.choices.push_back("16");
    }
    if (sizeof(T) >= 4) {
      n_bits.choices.push_back("32");
    }
    return ParamTable({std::move(n_bits),
                       boolParam<Self>("auto_detect", false,
                                       "take the smallest nbits that holds all values of a run",
                                       &Self::isAutoDetect, &Self::setAutoDetect)});
  }();
  return kTable;
}

template const ParamTable& BitpackStage<std::uint8_t>::params();
template const ParamTable& BitpackStage<std::uint16_t>::params();
template const ParamTable& BitpackStage<std::uint32_t>::params();

namespace bitpack {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<BitpackStage>(types, BitpackTypes{});
}

StageTypes typesFromConfig(ByteView config) {
  return {config.empty() ? DataType::UINT16 : static_cast<DataType>(config[0])};
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 7,
      .name = "Bitpack",
      .category = "coder",
      .summary = "the low bits of every value, the same number for all",
      .type_keys = {{"input_type", DataType::UINT16}},
      .type_combinations = combinationsOf(BitpackTypes{}),
      .aliases = {"bpack"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &BitpackStage<std::uint16_t>::params,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
  };
  return kDescriptor;
}

}  // namespace bitpack
}  // namespace fz
