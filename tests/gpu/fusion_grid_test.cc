// LorenzoQuant of grids at the front of a fused encoder: the bytes of the stages, whatever the
// extents; fusion_grid_decode_test.cc has the decoders.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "backends/cuda/rtc/compiler.h"
#include "fzgpumodules.h"
#include "gpu/device_pipeline.h"
#include "pipeline/dag.h"

namespace fz::test {
namespace {

using Dims = std::array<std::size_t, 3>;

struct GridChain {
  std::string name;
  DataType type;
  std::string toml;
  bool is_built_in = true;  ///< else compiled at run time
};

std::string lorenzoQuant(const std::string& type,
                         const std::string& code,
                         const std::string& settings) {
  return "[[stage]]\nname = \"q\"\ntype = \"LorenzoQuant\"\ninput_type = \"" + type +
         "\"\ncode_type = \"" + code + "\"\nerror_bound = 1e-3\n" + settings;
}
std::string after(const std::string& from, const std::string& name, const std::string& type) {
  return "[[stage]]\nname = \"" + name + "\"\ntype = \"" + type + "\"\ninputs = [{ from = \"" +
         from + "\"" + (from == "q" ? ", port = \"codes\"" : "") + " }]\n";
}
std::string planesAndRze(int width, const std::string& from = "q") {
  return after(from, "s", "Bitshuffle") + "element_width = " + std::to_string(width) + "\n" +
         after("s", "c", "RZE");
}

std::vector<GridChain> gridChains() {
  std::vector<GridChain> all;
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const std::string full = type == DataType::FLOAT32 ? "float32" : "float64";
    all.push_back(
        {"Bitplanes_" + full, type,
         lorenzoQuant(full, "uint16", "quant_radius = 500\n") + after("q", "c", "BitplaneRZE")});
    all.push_back(
        {"BitplanesOfZigzag_" + full, type,
         lorenzoQuant(full, "uint16", "zigzag_codes = true\n") + after("q", "c", "BitplaneRZE")});
    all.push_back(
        {"Shuffled_" + full, type,
         lorenzoQuant(full, "uint16", "error_bound_mode = \"NOA\"\nzigzag_codes = true\n") +
             planesAndRze(2)});
    const std::string code = type == DataType::FLOAT32 ? "uint8" : "uint32";
    all.push_back({"ShuffledOther_" + full, type,
                   lorenzoQuant(full, code, "quant_radius = 100\n") +
                       planesAndRze(type == DataType::FLOAT32 ? 1 : 4),
                   false});
  }
  all.push_back({"DifferencesOfCodes", DataType::FLOAT32,
                 lorenzoQuant("float32", "uint16", "") + after("q", "d", "Difference") +
                     "input_type = \"uint16\"\noutput_type = \"uint16\"\nchunk_size = 4096\n" +
                     planesAndRze(2, "d"),
                 false});
  return all;
}

/// Waves with a little noise; every 97th value is one that no bin reproduces, or far off.
template <class T>
std::vector<std::uint8_t> gridValues(const Dims& dims, bool has_odd) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise;
  std::vector<T> values;
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      for (std::size_t x = 0; x < dims[0]; ++x) {
        const double wave = std::sin(static_cast<double>(x) * 0.01) *
                            std::cos(static_cast<double>(y) * 0.02 + static_cast<double>(z) * 0.3);
        values.push_back(static_cast<T>(5.0 * wave + 0.01 * noise(random)));
      }
    }
  }
  const T odd[] = {std::numeric_limits<T>::quiet_NaN(),
                   std::numeric_limits<T>::infinity(),
                   T(7e4),
                   -std::numeric_limits<T>::max(),
                   std::numeric_limits<T>::denorm_min(),
                   T(2.1e3),
                   T(0.001) * T(4194303)};
  for (std::size_t i = 3; has_odd && i < values.size(); i += 97) {
    values[i] = odd[i / 97 % std::size(odd)];
  }
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class DeviceGridFusion : public OnDevice<testing::TestWithParam<GridChain>> {
 protected:
  static void build(Pipeline& pipeline,
                    const Dims& dims,
                    Fusion fusion,
                    Backend backend = Backend::CUDA) {
    pipeline.setBackend(backend);
    pipeline.setFusion(fusion);
    ConfigOverrides overrides;
    overrides.input_type = GetParam().type;
    overrides.dims = dims;
    pipeline.loadConfigText(GetParam().toml, GetParam().name, overrides, false);
    pipeline.finalize();
  }
  static std::size_t stageCount(Pipeline& pipeline) {
    std::size_t n = 0;
    for (const FusedGroup& group : pipeline.getFusedGroups()) {
      n += group.stages.size();
    }
    return n;
  }

  /// Where a group is faster than the stages.
  static bool isFusedFor(const Dims& dims) {
    const std::size_t nx = dims[0];
    const bool is_float = GetParam().type == DataType::FLOAT32;
    if (dims[2] == 1) {
      return is_float || nx % 2 == 0;
    }
    return is_float ? nx % 8 == 0 : nx == 128 || nx == 256 || nx == 512 || nx == 1024;
  }

  static void expectSameBytes(const Dims& dims, bool has_odd) {
    SCOPED_TRACE(std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " x " +
                 std::to_string(dims[2]) + (has_odd ? ", odd values" : ""));
    const std::vector<std::uint8_t> bytes = GetParam().type == DataType::FLOAT32
                                                ? gridValues<float>(dims, has_odd)
                                                : gridValues<double>(dims, has_odd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size(), MemoryStrategy::MINIMAL);
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(fused, dims, Fusion::Auto);
    const FrameBytes expected = frameOnDevice(staged, input, bytes.size());
    for (int round = 0; round < 2; ++round) {  // memory of the first round is not clean any more
      const FrameBytes frame = frameOnDevice(fused, input, bytes.size());
      ASSERT_EQ(frame.size(), expected.size()) << fused.explain();
      ASSERT_TRUE(frame == expected) << fused.explain();
    }
    if (isFusedFor(dims) && (GetParam().is_built_in || !cuda::rtc::compilerVersion().empty())) {
      EXPECT_EQ(stageCount(fused), fused.getDAG()->getNodes().size()) << fused.explain();
    } else if (!isFusedFor(dims)) {
      EXPECT_NE(fused.explain().find("reads the rows above"), std::string::npos) << fused.explain();
    }
    const DeviceBytesBuffer stored{ByteView(expected)};
    std::vector<std::uint8_t> values[2];
    Pipeline* pipelines[2] = {&staged, &fused};
    for (int side = 0; side < 2; ++side) {
      const DeviceBytesBuffer out(bytes.size());
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xC3 + side, out.size()));
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      std::size_t n_bytes = 0;
      pipelines[side]->decompress(stored.data(), stored.size(), out.data(), out.size(), &n_bytes);
      ASSERT_EQ(n_bytes, out.size());
      values[side] = out.get(n_bytes);
    }
    ASSERT_TRUE(values[0] == values[1]);
  }
};

TEST_P(DeviceGridFusion, BytesAreThoseOfTheStages) {
  std::vector<Dims> all = {{67, 43, 29}, {311, 203, 1}};
  if (!isSmallRun()) {
    // Rows of whole runs and others, shorter than a run, than a line, than a chunk, and longer;
    // extents of 1; ends inside a tile, a line and a chunk; several blocks of chunks.
    const Dims more[] = {{64, 48, 1},  {5, 700, 1},   {1, 3000, 1},  {3600, 41, 1}, {2048, 70, 1},
                         {8191, 9, 1}, {32, 16, 24},  {2048, 9, 11}, {512, 64, 19}, {8, 8, 8},
                         {3, 5, 700},  {1, 1, 5000},  {4, 1, 900},   {260, 1, 33},  {1004, 37, 5},
                         {7, 2, 1},    {40000, 2, 3}, {128, 21, 20}, {256, 19, 17}, {1024, 11, 9},
                         {504, 20, 11}};
    all.insert(all.end(), std::begin(more), std::end(more));
  }
  for (const Dims& dims : all) {
    for (const bool has_odd : {false, true}) {
      expectSameBytes(dims, has_odd);
      if (HasFailure()) {
        return;
      }
    }
  }
}

/// Rows of one value: so many segments that their entries are placed by a scan.
TEST_P(DeviceGridFusion, ListsOfManyChunksAreThoseOfTheCpu) {
  if (GetParam().name != "Bitplanes_float32" || isSmallRun()) {
    return;
  }
  const Dims dims = {1, 1'100'000, 1};
  const std::vector<std::uint8_t> bytes = gridValues<float>(dims, true);
  const DeviceBytesBuffer input{ByteView(bytes)};
  Pipeline fused(bytes.size(), MemoryStrategy::PREALLOCATE);
  build(fused, dims, Fusion::Auto);
  Pipeline on_cpu(bytes.size(), MemoryStrategy::MINIMAL);
  build(on_cpu, dims, Fusion::Auto, Backend::CPU);
  const CompressedView view = on_cpu.compress(bytes.data(), bytes.size());
  const auto* begin = static_cast<const std::uint8_t*>(view.data);
  EXPECT_TRUE(frameOnDevice(fused, input, bytes.size()) == FrameBytes(begin, begin + view.n_bytes));
}

INSTANTIATE_TEST_SUITE_P(Chains,
                         DeviceGridFusion,
                         testing::ValuesIn(gridChains()),
                         [](const auto& chain) { return chain.param.name; });

using DeviceGridRows = OnDevice<>;

/// Where x follows from the data nobody knows how long rows are when groups are planned.
TEST_F(DeviceGridRows, OfUnknownLengthAreRightInAGroup) {
  for (const Dims& dims : {Dims{67, 43, 29}, Dims{501, 20, 9}, Dims{2, 3, 900}, Dims{512, 9, 10}}) {
    SCOPED_TRACE(std::to_string(dims[0]));
    const std::vector<std::uint8_t> bytes = gridValues<float>(dims, true);
    const DeviceBytesBuffer input{ByteView(bytes)};
    FrameBytes frames[2];
    for (int side = 0; side < 2; ++side) {
      Pipeline pipeline(bytes.size(), MemoryStrategy::MINIMAL);
      pipeline.setBackend(Backend::CUDA);
      pipeline.setFusion(side == 0 ? Fusion::Off : Fusion::Auto);
      auto* predict = pipeline.addStage<LorenzoQuantStage<float, std::uint16_t>>();
      predict->setErrorBound(1e-3);
      predict->setDims({0, dims[1], dims[2]});
      auto* coder = pipeline.addStage<BitplaneRZEStage>();
      pipeline.connect(coder, predict, "codes");
      pipeline.finalize();
      EXPECT_EQ(pipeline.getFusedGroups().size(), side == 0 ? 0u : 1u) << pipeline.explain();
      frames[side] = frameOnDevice(pipeline, input, bytes.size());
    }
    ASSERT_TRUE(frames[0] == frames[1]);
  }
}

/// Before RZE the codes come in chunks, and a tile's rows lie in many: the prediction is undone by
/// a stage of its own, and planes and coder are a group.
TEST_F(DeviceGridRows, OfOtherCodersAreDecodedByAStageThatNamesTheObstacle) {
  const Dims dims = {256, 40, 1};
  const std::vector<std::uint8_t> bytes = gridValues<float>(dims, true);
  const DeviceBytesBuffer input{ByteView(bytes)};
  Pipeline pipeline(bytes.size(), MemoryStrategy::MINIMAL);
  pipeline.setBackend(Backend::CUDA);
  pipeline.enableProfiling(true);
  ConfigOverrides overrides;
  overrides.dims = dims;
  pipeline.loadConfigText(
      lorenzoQuant("float32", "uint16", "zigzag_codes = true\n") + planesAndRze(2), "grid",
      overrides, false);
  pipeline.finalize();
  const FrameBytes frame = frameOnDevice(pipeline, input, bytes.size());
  const DeviceBytesBuffer stored{ByteView(frame)};
  const DeviceBytesBuffer out(bytes.size());
  std::size_t n_bytes = 0;
  pipeline.decompress(stored.data(), stored.size(), out.data(), out.size(), &n_bytes);
  EXPECT_EQ(pipeline.getLastPerfResult().stages.size(), 2u);
  EXPECT_NE(pipeline.explain().find("takes values from all over the stream"), std::string::npos)
      << pipeline.explain();
}

}  // namespace
}  // namespace fz::test
