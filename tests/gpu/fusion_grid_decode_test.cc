// LorenzoQuant of grids and BitplaneRZE decoded as one kernel: values, errors and memory against
// those of the stages, and that it is one kernel at all.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "backends/cuda/rtc/compiler.h"
#include "format/crc32.h"
#include "fzgpumodules.h"
#include "gpu/device_pipeline.h"
#include "pipeline/dag.h"

namespace fz::test {
namespace {

using Dims = std::array<std::size_t, 3>;

struct GridCase {
  std::string name;
  DataType type;
  std::string settings;
};

std::string nameOf(const Dims& dims) {
  return std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " x " +
         std::to_string(dims[2]);
}

std::string tomlOf(const GridCase& which) {
  const std::string type = which.type == DataType::FLOAT32 ? "float32" : "float64";
  return "[[stage]]\nname = \"predict\"\ntype = \"LorenzoQuant\"\ninput_type = \"" + type +
         "\"\ncode_type = \"uint16\"\nerror_bound = 0.5\n" + which.settings +
         "[[stage]]\nname = \"coder\"\ntype = \"BitplaneRZE\"\n"
         "inputs = [{ from = \"predict\", port = \"codes\" }]\n";
}

std::vector<GridCase> gridCases() {
  std::vector<GridCase> all;
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const std::string end = type == DataType::FLOAT32 ? "_float32" : "_float64";
    all.push_back({"Zigzag" + end, type, "quant_radius = 32768\nzigzag_codes = true\n"});
    all.push_back({"Signed" + end, type, "quant_radius = 500\n"});
  }
  return all;
}

/// One unit is a bin.
enum class Data {
  kSmooth,  ///< sums of 16 bits do
  kSteep,   ///< deltas of all sizes that have codes
  kOdd,     ///< list entries of both kinds, at ends of tiles too
};

/// The first value of odd data, and its delta: beyond all codes.
template <class T>
constexpr T kFirstOdd = T(4e4);

template <class T>
std::vector<std::uint8_t> valuesOf(const Dims& dims, Data data) {
  std::mt19937 random(5);
  std::vector<T> values;
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      for (std::size_t x = 0; x < dims[0]; ++x) {
        double value = 90 * std::sin(0.02 * static_cast<double>(x + 3 * z)) +
                       40 * std::cos(0.1 * static_cast<double>(y)) +
                       static_cast<double>(random() % 5);
        if (data == Data::kSteep) {
          value += static_cast<double>(random() % 30'000) - 15'000;
        }
        values.push_back(static_cast<T>(value));
      }
    }
  }
  const T odd[] = {kFirstOdd<T>, std::numeric_limits<T>::quiet_NaN(),
                   -std::numeric_limits<T>::max(), T(-7e4), T(3e5)};
  for (std::size_t i = 0; data == Data::kOdd && i < values.size(); i += 31) {
    values[i] = odd[i / 31 % std::size(odd)];
  }
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Makes the checksums fit, so that the decoders see the damage.
void seal(FrameBytes& frame, std::size_t header_bytes) {
  constexpr std::size_t kDataCrcOffset = 72;
  constexpr std::size_t kHeaderCrcOffset = 76;
  const auto put = [&](std::size_t at, std::uint32_t crc) {
    std::memcpy(frame.data() + at, &crc, sizeof(crc));
  };
  put(kDataCrcOffset, crc32(ByteView(frame).subspan(header_bytes)));
  put(kHeaderCrcOffset, 0);
  put(kHeaderCrcOffset, crc32(ByteView(frame).first(header_bytes)));
}

/// Of two entries for one value, either may be called the second.
std::string withoutNumbers(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }),
             text.end());
  return text;
}

/// Puts `entry` in place of some of the first range entries of a frame of odd data.
template <class T>
bool replaceEntries(FrameBytes& frame, std::size_t header_bytes, T entry) {
  for (std::size_t at = header_bytes; at + 16 * sizeof(T) <= frame.size(); at += 4) {
    if (std::memcmp(frame.data() + at, &kFirstOdd<T>, sizeof(T)) == 0) {
      for (const std::size_t i : {0u, 3u, 4u, 9u}) {
        std::memcpy(frame.data() + at + i * sizeof(T), &entry, sizeof(T));
      }
      return true;
    }
  }
  return false;
}

class DeviceGridDecoding : public OnDevice<testing::TestWithParam<GridCase>> {
 protected:
  static void build(Pipeline& pipeline, const Dims& dims, Fusion fusion) {
    pipeline.setBackend(Backend::CUDA);
    pipeline.setFusion(fusion);
    pipeline.enableProfiling(true);
    ConfigOverrides overrides;
    overrides.input_type = GetParam().type;
    overrides.dims = dims;
    pipeline.loadConfigText(tomlOf(GetParam()), GetParam().name, overrides, false);
    pipeline.finalize();
  }
  static std::vector<std::uint8_t> fieldOf(const Dims& dims, Data data) {
    return GetParam().type == DataType::FLOAT32 ? valuesOf<float>(dims, data)
                                                : valuesOf<double>(dims, data);
  }
  /// What decompress leaves in memory that was full of something else, or its message.
  struct Outcome {
    std::string message;
    std::vector<std::uint8_t> values;
    bool operator==(const Outcome&) const = default;
  };
  static Outcome decode(Pipeline& pipeline,
                        const FrameBytes& frame,
                        std::size_t n_bytes,
                        std::uint8_t before) {
    const DeviceBytesBuffer stored{ByteView(frame)};
    const DeviceBytesBuffer out(n_bytes);
    FZ_CUDA_CHECK(cudaMemset(out.data(), before, out.size()));
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    std::size_t n_out = 0;
    const Failure failure = failureOf(
        [&] { pipeline.decompress(stored.data(), stored.size(), out.data(), out.size(), &n_out); });
    return failure.code ? Outcome{failure.message, {}} : Outcome{"", out.get(n_out)};
  }
  /// A row of the profile is a kernel of a group, or a stage.
  static std::vector<std::string> rowsOf(const Pipeline& pipeline) {
    std::vector<std::string> names;
    for (const StageTimingResult& row : pipeline.getLastPerfResult().stages) {
      names.push_back(row.name);
    }
    return names;
  }

  static void expectSameValues(const Dims& dims, Data data) {
    SCOPED_TRACE(nameOf(dims) + ", data " + std::to_string(static_cast<int>(data)));
    const std::vector<std::uint8_t> bytes = fieldOf(dims, data);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size(), MemoryStrategy::MINIMAL);
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(fused, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const Outcome expected = decode(staged, frame, bytes.size(), 0xC3);
    ASSERT_EQ(expected.values.size(), bytes.size()) << expected.message;
    EXPECT_EQ(rowsOf(staged).size(), 2u);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(decode(fused, frame, bytes.size(), static_cast<std::uint8_t>(0x5A + round)) ==
                  expected);
      const std::vector<std::string> rows = rowsOf(fused);
      ASSERT_EQ(rows.size(), 1u) << rows[0];
    }
  }
};

TEST_P(DeviceGridDecoding, ValuesAreThoseOfTheStages) {
  // Rows of whole runs of 64, and others, which begin anywhere in a run. Tiles that end early in
  // all directions; columns that go on in another band of tiles than they begin in; runs of one
  // chunk and of several; fields of less than a block; rows of less than a run, and of one value.
  std::vector<Dims> all = {{192, 35, 1}, {64, 9, 11}, {131, 35, 1}, {67, 9, 11}};
  if (!isSmallRun()) {
    const Dims more[] = {{64, 2, 1},    {64, 32, 1},   {64, 33, 1},   {128, 31, 1},   {512, 64, 1},
                         {576, 70, 1},  {2048, 65, 1}, {8192, 40, 1}, {1344, 100, 1}, {64, 4000, 1},
                         {64, 8, 8},    {64, 2, 2},    {64, 1, 3},    {256, 5, 3},    {320, 17, 20},
                         {512, 16, 16}, {448, 40, 9},  {2112, 3, 9},  {128, 128, 40}, {100, 50, 1},
                         {449, 64, 1},  {3600, 41, 1}, {8191, 35, 1}, {1, 300, 1},    {5, 70, 1},
                         {898, 33, 1},  {500, 20, 11}, {193, 17, 9},  {3, 5, 70},     {1, 1, 500},
                         {65, 9, 9},    {386, 9, 17}};
    all.insert(all.end(), std::begin(more), std::end(more));
  }
  for (const Dims& dims : all) {
    for (const Data data : {Data::kSmooth, Data::kSteep, Data::kOdd}) {
      expectSameValues(dims, data);
      if (HasFailure()) {
        return;
      }
    }
  }
}

TEST_P(DeviceGridDecoding, DamageEndsInTheSameErrors) {
  for (const Dims& dims : {Dims{192, 100, 1}, Dims{128, 20, 11}, Dims{201, 70, 1}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size());
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size());
    build(fused, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const std::size_t header = staged.buildHeader().core.header_size;
    std::size_t n_refused = 0;
    std::size_t n_taken = 0;
    const std::size_t step = isSmallRun() ? 4000 : 397;
    for (std::size_t at = header; at < frame.size(); at += at - header < 40 ? 7 : step) {
      FrameBytes damaged = frame;
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ (at % 2 == 0 ? 0xFFu : 0x41u));
      seal(damaged, header);
      const Outcome expected = decode(staged, damaged, bytes.size(), 0);
      const Outcome outcome = decode(fused, damaged, bytes.size(), 0);
      ASSERT_EQ(withoutNumbers(outcome.message), withoutNumbers(expected.message))
          << nameOf(dims) << ", byte " << at;
      ASSERT_TRUE(outcome.values == expected.values) << nameOf(dims) << ", byte " << at;
      ++(expected.message.empty() ? n_taken : n_refused);
    }
    EXPECT_GT(n_refused, 0u);
    EXPECT_GT(n_taken, 0u);
  }
}

/// Deltas that no integer holds are summed up in double, in a given order.
TEST_P(DeviceGridDecoding, EntriesBeyondTheIntegersAreSummedUpAsByTheStages) {
  for (const Dims& dims :
       {Dims{128, 70, 1}, Dims{64, 19, 11}, Dims{101, 70, 1}, Dims{69, 19, 11}}) {
    for (const double huge : {1e30, -4e19}) {
      const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
      const DeviceBytesBuffer input{ByteView(bytes)};
      Pipeline staged(bytes.size());
      build(staged, dims, Fusion::Off);
      Pipeline fused(bytes.size());
      build(fused, dims, Fusion::Auto);
      FrameBytes frame = frameOnDevice(staged, input, bytes.size());
      const std::size_t header = staged.buildHeader().core.header_size;
      ASSERT_TRUE(GetParam().type == DataType::FLOAT32
                      ? replaceEntries(frame, header, static_cast<float>(huge))
                      : replaceEntries(frame, header, huge));
      seal(frame, header);
      const Outcome expected = decode(staged, frame, bytes.size(), 0x11);
      ASSERT_EQ(expected.message, "");
      ASSERT_TRUE(decode(fused, frame, bytes.size(), 0x22) == expected) << nameOf(dims);
      EXPECT_EQ(rowsOf(fused).size(), 1u);
    }
  }
}

/// Streams of the original system may have more values than their dims hold; those are zero.
TEST_P(DeviceGridDecoding, ValuesBeyondTheDimsAreThoseOfTheStages) {
  for (const Dims& dims : {Dims{320, 70, 1}, Dims{131, 75, 1}, Dims{64, 19, 11}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size());
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size());
    build(fused, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const std::size_t header = staged.buildHeader().core.header_size;
    // The extents stand next to each other in the config, but not only there.
    const auto nx = static_cast<std::uint32_t>(dims[0]);
    const auto ny = static_cast<std::uint32_t>(dims[1]);
    const std::uint32_t stored[3] = {nx, ny, static_cast<std::uint32_t>(dims[2])};
    const std::uint32_t fewer[3] = {nx, ny - 9, stored[2]};
    const Outcome whole = decode(staged, frame, bytes.size(), 0x11);
    std::size_t n_shorter = 0;
    for (std::size_t at = 0; at + sizeof(stored) <= header; ++at) {
      if (std::memcmp(frame.data() + at, stored, sizeof(stored)) != 0) {
        continue;
      }
      FrameBytes changed = frame;
      std::memcpy(changed.data() + at, fewer, sizeof(fewer));
      seal(changed, header);
      const Outcome expected = decode(staged, changed, bytes.size(), 0x11);
      ASSERT_TRUE(decode(fused, changed, bytes.size(), 0x22) == expected) << nameOf(dims);
      n_shorter += expected.message.empty() && expected.values != whole.values ? 1 : 0;
    }
    EXPECT_GT(n_shorter, 0u);
  }
}

TEST_P(DeviceGridDecoding, CodesTakeNoMemory) {
  for (const Dims& dims : {Dims{1024, 1024, 1}, Dims{128, 128, 64}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kSmooth);
    const std::size_t n_code_bytes = dims[0] * dims[1] * dims[2] * 2;
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline maker(bytes.size());
    build(maker, dims, Fusion::Off);
    const FrameBytes frame = frameOnDevice(maker, input, bytes.size());
    std::size_t peaks[2] = {};
    for (int side = 0; side < 2; ++side) {
      Pipeline pipeline(0, MemoryStrategy::MINIMAL);
      build(pipeline, dims, side == 0 ? Fusion::Off : Fusion::Auto);
      const Outcome outcome = decode(pipeline, frame, bytes.size(), 0);
      ASSERT_EQ(outcome.message, "");
      peaks[side] = pipeline.getMemoryPool().getPeakUsage();
    }
    EXPECT_LE(peaks[1] + n_code_bytes, peaks[0]) << nameOf(dims);
  }
}

TEST_P(DeviceGridDecoding, AsynchronousCallsGiveTheValuesOfTheStages) {
  const DeviceStream stream;
  for (const Dims& dims : {Dims{320, 77, 1}, Dims{64, 30, 20}, Dims{77, 30, 20}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(staged, dims, Fusion::Off);
    Pipeline async(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(async, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const Outcome expected = decode(staged, frame, bytes.size(), 0x77);
    const DeviceBytesBuffer stored{ByteView(frame)};
    ASSERT_TRUE(decode(async, frame, bytes.size(), 0x78) == expected);  // what is a frame like?
    const DeviceBytesBuffer out(bytes.size());
    for (int i = 0; i < 3; ++i) {
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, out.size()));
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      async.decompressAsync(stored.data(), stored.size(), out.data(), out.size(), nullptr, stream);
      ASSERT_EQ(async.finishAsync(stream), bytes.size());
      ASSERT_TRUE(out.get(bytes.size()) == expected.values) << nameOf(dims);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         DeviceGridDecoding,
                         testing::ValuesIn(gridCases()),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace fz::test
