#include "bench_stage_runs.h"

#include <fmt/format.h>

#include "fz/stage_descriptor.h"

namespace fz::bench {

namespace {

constexpr DataType kF32 = DataType::FLOAT32;
constexpr DataType kF64 = DataType::FLOAT64;
constexpr DataType kU16 = DataType::UINT16;
constexpr DataType kU32 = DataType::UINT32;
constexpr DataType kI32 = DataType::INT32;

}  // namespace

std::vector<StageRun> stageRuns() {
  return {
      {"Quantizer", {kF32, kU16}, {{"error_bound", "0.01"}}},
      {"Quantizer", {kF32, kU32}, {{"error_bound", "0.01"}}},
      {"Quantizer",
       {kF32, kU32},
       {{"error_bound", "0.01"}, {"linear_mode", "true"}, {"linear_policy", "Guarantee"}}},
      {"Quantizer", {kF64, kU32}, {{"error_bound", "0.01"}}},
      {"Quantizer", {kF32, kU32}, {{"error_bound", "0.001"}, {"error_bound_mode", "REL"}}},
      {"Quantizer",
       {kF32, kU32},
       {{"error_bound", "0.0001"}, {"error_bound_mode", "NOA"}},
       {0, 1, 1},
       {},
       2},
      {"Lorenzo", {kI32}, {{"block_size", "32"}}},
      {"Lorenzo", {kI32}, {}, {4096, 4096, 1}},
      {"Lorenzo", {kI32}, {}, {256, 256, 256}},
      {"Lorenzo", {kI32}, {{"axes", "xz"}}, {256, 256, 256}},
      {"TiledLorenzo", {kI32}, {}, {4096, 4096, 1}},
      {"TiledLorenzo", {kI32}, {}, {256, 256, 256}},
      {"Difference", {kI32, kU32}, {{"chunk_size", "16384"}}},
      {"Difference", {kI32, kI32}, {}},
      {"Zigzag", {kI32, kU32}, {}},
      {"Negabinary", {kI32, kU32}, {}},
      {"LorenzoQuant", {kF32, kU16}, {{"error_bound", "0.01"}}},
      {"LorenzoQuant", {kF32, kU16}, {{"error_bound", "0.01"}}, {4096, 4096, 1}},
      {"LorenzoQuant", {kF32, kU16}, {{"error_bound", "0.01"}}, {256, 256, 256}},
      {"Interp", {kF32, DataType::INT16}, {{"error_bound", "0.01"}}, {256, 256, 256}, {}, 2},
      {"Interp", {kF32, kI32}, {{"error_bound", "0.01"}}, {256, 256, 256}, {}, 2},
      {"Interp", {kF32, DataType::INT16}, {{"error_bound", "0.01"}}, {4096, 4096, 1}, {}, 2},
      {"Interp", {kF64, kI32}, {{"error_bound", "0.01"}}, {256, 256, 256}, {}, 2},
      {"Interp",
       {kF32, kI32},
       {{"error_bound", "0.01"}, {"plan", "lorenzo"}},
       {256, 256, 256},
       {},
       2},
      {"Interp",
       {kF32, DataType::INT16},
       {{"error_bound", "0.01"}, {"plan", "lorenzo"}},
       {256, 256, 256},
       {},
       2},
      {"Interp",
       {kF32, kI32},
       {{"error_bound", "0.01"}, {"plan", "lorenzo:xyz z z xy xyz"}},
       {256, 256, 256},
       {},
       2},
      {"Interp",
       {kF32, kI32},
       {{"error_bound", "0.01"}, {"plan", "lorenzo:xyz Nz(xy xy) Nz(xy xy xy)"}},
       {256, 256, 256},
       {},
       2},
      {"Bitshuffle", {}, {{"element_width", "4"}}, {0, 1, 1}, {"Zigzag:int32,uint32"}},
      {"Bitshuffle", {}, {{"element_width", "2"}}, {0, 1, 1}, {"Zigzag:int16,uint16"}},
      {"AdaptiveBitpack", {kI32}, {{"block_size", "32"}}},
      {"AdaptiveBitpack", {kI32}, {{"block_size", "32"}, {"outlier_selection", "true"}}},
      {"AdaptiveBitpack", {DataType::INT16}, {{"block_size", "64"}}},
      {"Bitpack", {kU16}, {{"nbits", "8"}}, {0, 1, 1}, {"Zigzag:int16,uint16"}},
      {"Bitpack", {kU32}, {{"auto_detect", "true"}}, {0, 1, 1}, {"Zigzag:int32,uint32"}, 2},
      {"RZE", {}, {}, {0, 1, 1}, {"Zigzag:int32,uint32", "Bitshuffle"}},
      {"BitplaneRZE", {}, {}, {0, 1, 1}, {"Zigzag:int16,uint16"}},
      {"RLE", {kU16}, {}, {0, 1, 1}, {"Zigzag:int16,uint16"}},
      {"Huffman", {kU16}, {}, {0, 1, 1}, {"Zigzag:int16,uint16"}},
      {"BlockANS", {kI32}, {}, {0, 1, 1}, {"Difference:int32,int32"}, 2},
      {"BlockANS", {kI32}, {{"chunk", "65536"}}, {0, 1, 1}, {"Difference:int32,int32"}, 2},
      {"BlockANS", {kI32}, {{"tables", "fixed"}}, {0, 1, 1}, {"Difference:int32,int32"}},
      {"BlockANS", {kU16}, {}, {0, 1, 1}, {"Difference:int16,int16"}, 2},
  };
}

std::unique_ptr<Stage> makeStage(const std::string& name, std::vector<DataType> types) {
  const StageDescriptor* descriptor = findStage(std::string_view(name));
  return descriptor == nullptr ? nullptr : descriptor->make(types);
}

std::vector<DataType> parseTypes(const std::string& text) {
  std::vector<DataType> types;
  for (std::size_t at = text.find(':'); at != std::string::npos;) {
    const std::size_t end = text.find(',', at + 1);
    types.push_back(dataTypeFromString(text.substr(at + 1, end - at - 1)).value());
    at = end;
  }
  return types;
}

std::string labelOf(const StageRun& run) {
  std::string label = run.stage;
  for (std::size_t i = 0; i < run.types.size(); ++i) {
    label += fmt::format("{}{}", i == 0 ? " " : "/", dataTypeToString(run.types[i]));
  }
  for (const auto& [key, value] : run.params) {
    label += fmt::format(" {}={}", key, value);
  }
  if (run.dims[0] > 0) {
    label += fmt::format(" {}x{}x{}", run.dims[0], run.dims[1], run.dims[2]);
  }
  return label;
}

}  // namespace fz::bench
