#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "api/missing_values.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "gpu/device_pipeline.h"
#include "gpu/device_stage.h"
#include "pipeline/compressor.h"
#include "transforms/mask/mask_stage.h"

// Masks on a device: every way to fill, masks of many shapes, and masks that lie, beside the CPU.

namespace fz::test {
namespace {

constexpr std::uint16_t kMaskId = 20481;

struct MaskShape {
  const char* name;
  bool (*is_missing)(std::size_t x, std::size_t y, std::size_t z, std::size_t i);
  unsigned n_patterns;
};

bool isLand(std::size_t x, std::size_t y, std::size_t z, std::size_t /*i*/) {
  const auto wave = [](std::size_t at, double step) {
    return std::sin(step * static_cast<double>(at));
  };
  return wave(x, 0.07) + wave(y, 0.11) + wave(z, 0.3) + 0.3 * wave(x + 3 * y, 0.53) > 0.35;
}
bool isRare(std::size_t /*x*/, std::size_t /*y*/, std::size_t /*z*/, std::size_t i) {
  return i * 2654435761u % 4096 < 40;
}
bool isOdd(std::size_t x, std::size_t y, std::size_t z, std::size_t /*i*/) {
  return (x + y + z) % 2 == 1;
}
bool isNearlyAll(std::size_t /*x*/, std::size_t /*y*/, std::size_t /*z*/, std::size_t i) {
  return i % 9000 != 8500;
}

constexpr MaskShape kShapes[] = {{"land", isLand, 1},
                                 {"land, patterns", isLand, 3},
                                 {"rare", isRare, 200},
                                 {"rare, too many", isRare, 1000},
                                 {"odd", isOdd, 2},
                                 {"odd, too many", isOdd, 400},
                                 {"nearly all", isNearlyAll, 1}};

template <class T>
T patternOf(unsigned k) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if (k == 1) {
    return static_cast<T>(-9999);
  }
  const auto quiet = std::bit_cast<Bits>(std::numeric_limits<T>::quiet_NaN());
  return std::bit_cast<T>(static_cast<Bits>(quiet | k));
}

template <class T>
Bytes maskedField(const std::array<std::size_t, 3>& dims, const MaskShape& shape) {
  std::vector<T> values(dims[0] * dims[1] * dims[2]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_missing =
        shape.is_missing(i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1], i);
    values[i] = is_missing ? patternOf<T>(static_cast<unsigned>(i * 7919 / 3 % shape.n_patterns))
                           : static_cast<T>(std::cos(0.01 * static_cast<double>(i)));
  }
  return toBytes(values);
}

template <class T>
Encoded encodeMask(const Bytes& field,
                   const std::array<std::size_t, 3>& dims,
                   const std::string& hold,
                   bool on_device) {
  MaskStage<T> stage;
  stage.setFill({-9999.0, 1e30});
  stage.setDims(dims);
  stage.setHoldText(hold);
  return on_device ? encodeOnDevice(stage, field) : encode(stage, field);
}

template <class T>
class DeviceMask : public OnDevice<> {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(DeviceMask, Floats);

TYPED_TEST(DeviceMask, FillsAndCodesAsTheCpu) {
  using Dims = std::array<std::size_t, 3>;
  std::vector<Dims> grids = {{30'011, 1, 1}, {130, 177, 1}, {64, 64, 5}, {33, 35, 37}};
  std::vector<std::string> holds = {"",    "32",   "8",   "1",     "48",    "100",
                                    "512", "5000", "8x8", "4x4x4", "5x1x2", "nan"};
  if (isSmallRun()) {
    grids = {{130, 37, 2}};
    holds = {"", "32", "48", "8x8x2"};
  }
  for (const Dims& dims : grids) {
    for (const MaskShape& shape : kShapes) {
      const Bytes field = maskedField<TypeParam>(dims, shape);
      for (const std::string& hold : holds) {
        SCOPED_TRACE(std::string(shape.name) + ", hold '" + hold + "', " + std::to_string(dims[0]) +
                     " x " + std::to_string(dims[1]));
        const Encoded cpu = encodeMask<TypeParam>(field, dims, hold, false);
        const Encoded gpu = encodeMask<TypeParam>(field, dims, hold, true);
        EXPECT_TRUE(gpu.config == cpu.config);
        EXPECT_TRUE(gpu.streams[0] == cpu.streams[0]) << "filled field";
        EXPECT_EQ(gpu.streams[1].size(), cpu.streams[1].size());
        EXPECT_TRUE(gpu.streams[1] == cpu.streams[1]) << "mask";
        EXPECT_TRUE(decodeOnDevice(kMaskId, cpu) == field) << "decoded";
        if (testing::Test::HasFailure()) {
          return;
        }
      }
    }
  }
}

TYPED_TEST(DeviceMask, ManyBlocksOfBricksHaveTheBytesOfTheCpu) {
  using Dims = std::array<std::size_t, 3>;
  std::vector<std::pair<Dims, std::string>> fields = {{{2048, 1500, 1}, "16x16"},
                                                      {{1001, 3001, 1}, "nan"},
                                                      {{250, 160, 70}, "8x8x8"},
                                                      {{3'000'017, 1, 1}, ""}};
  if (isSmallRun()) {
    fields = {{{520, 130, 1}, "16x16"}};
  }
  for (const auto& [dims, hold] : fields) {
    for (const MaskShape& shape : {kShapes[0], kShapes[2]}) {
      SCOPED_TRACE(std::string(shape.name) + ", hold '" + hold + "', " + std::to_string(dims[0]) +
                   " x " + std::to_string(dims[1]));
      const Bytes field = maskedField<TypeParam>(dims, shape);
      const Encoded cpu = encodeMask<TypeParam>(field, dims, hold, false);
      const Encoded gpu = encodeMask<TypeParam>(field, dims, hold, true);
      EXPECT_TRUE(gpu.config == cpu.config);
      EXPECT_TRUE(gpu.streams[0] == cpu.streams[0]) << "filled field";
      EXPECT_EQ(gpu.streams[1].size(), cpu.streams[1].size());
      EXPECT_TRUE(gpu.streams[1] == cpu.streams[1]) << "mask";
      EXPECT_TRUE(decodeOnDevice(kMaskId, cpu) == field) << "decoded";
    }
  }
}

TYPED_TEST(DeviceMask, RefusesMasksThatLie) {
  const std::array<std::size_t, 3> dims = {130, 37, 2};
  for (const MaskShape& shape : kShapes) {
    const Bytes field = maskedField<TypeParam>(dims, shape);
    const Encoded good = encodeMask<TypeParam>(field, dims, "32", false);
    std::mt19937_64 rng(3);
    const int n_rounds = isSmallRun() ? 10 : 120;
    for (int round = 0; round < n_rounds; ++round) {
      Encoded bad = good;
      Bytes& mask = bad.streams[1];
      if (round < 4) {
        // Counts of the config, one too many or too few.
        const std::size_t at = round < 2 ? 8 : 16;
        storeLe(bad.config.data() + at,
                loadLe<std::uint64_t>(bad.config.data() + at) + (round % 2 == 0 ? 1 : ~0ull));
      } else if (round == 4) {
        mask.push_back(0);
      } else if (round % 7 == 5) {
        mask.resize(rng() % mask.size());
      } else {
        const std::size_t reach =
            round % 2 == 0 ? mask.size() : std::min<std::size_t>(60, mask.size());
        mask[rng() % reach] ^= static_cast<std::uint8_t>(1u << (rng() % 8));
      }
      SCOPED_TRACE(std::string(shape.name) + ", round " + std::to_string(round));
      const auto outcome = [&](auto decode_it) {
        try {
          return std::make_pair(std::string(), decode_it());
        } catch (const Error& error) {
          return std::make_pair(std::string(errorCodeName(error.code())), Bytes());
        }
      };
      const auto cpu = outcome([&] { return decode(kMaskId, bad); });
      const auto gpu = outcome([&] { return decodeOnDevice(kMaskId, bad); });
      EXPECT_EQ(gpu.first, cpu.first);
      EXPECT_TRUE(gpu.second == cpu.second);
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

/// Presets whose groups begin with the Mask.
class DeviceMaskGroups : public OnDevice<> {
 protected:
  template <class T>
  static std::vector<T> fieldOf(std::size_t n, const MaskShape& shape, bool has_outliers) {
    std::vector<T> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<T>(20 * std::cos(0.01 * static_cast<double>(i)));
      if (shape.is_missing(i % 700, i / 700, 0, i)) {
        values[i] = patternOf<T>(static_cast<unsigned>(i * 7919 / 3 % shape.n_patterns));
      } else if (has_outliers && i % 61 == 7) {
        values[i] = static_cast<T>(1e25);
      }
    }
    return values;
  }

  template <class T>
  static void expectBytesOfTheCpu(const std::vector<T>& values, CompressOptions options) {
    options.backend = Backend::CUDA;
    const Frame on_device = compress(std::span<const T>(values), options);
    options.backend = Backend::CPU;
    const Frame on_cpu = compress(std::span<const T>(values), options);
    ASSERT_EQ(on_device.size(), on_cpu.size());
    EXPECT_TRUE(std::equal(on_device.bytes().begin(), on_device.bytes().end(),
                           on_cpu.bytes().begin(), on_cpu.bytes().end()));
    const Array back = decompress(on_cpu, {.backend = Backend::CUDA});
    const Array same = decompress(on_cpu, {.backend = Backend::CPU});
    EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), same.bytes().begin(),
                           same.bytes().end()));
  }

  template <class T>
  static void expectBytesOfTheCpu() {
    std::vector<std::size_t> sizes = {1, 31, 33, 1000, 4096, 4097, 70'001, 300'032};
    if (isSmallRun()) {
      sizes = {33, 9001};
    }
    for (const char* const preset : {"cuszp", "cuszp2", "pfpl"}) {
      for (const std::size_t n : sizes) {
        for (const MaskShape& shape : kShapes) {
          for (const bool has_outliers : {false, true}) {
            SCOPED_TRACE(std::string(preset) + ", " + shape.name + ", " + std::to_string(n));
            CompressOptions options;
            options.preset = preset;
            options.error_bound = 0.01;
            options.mode = ErrorBoundMode::ABS;
            options.fill = {-9999.0};
            if (has_outliers && std::string_view(preset) != "pfpl") {
              continue;  // others keep such a field without loss
            }
            expectBytesOfTheCpu(fieldOf<T>(n, shape, has_outliers), options);
            if (testing::Test::HasFailure()) {
              return;
            }
          }
        }
      }
    }
  }
};

TEST_F(DeviceMaskGroups, HaveTheBytesOfTheCpu) {
  expectBytesOfTheCpu<float>();
  expectBytesOfTheCpu<double>();
}

TEST_F(DeviceMaskGroups, ReplaysOfAGraphHaveTheBytesOfTheCpu) {
  constexpr std::size_t kMost = 70'000;
  for (const char* const preset : {"cuszp", "cuszp2", "pfpl"}) {
    SCOPED_TRACE(preset);
    const auto build = [&](Pipeline& pipeline) {
      ConfigOverrides overrides;
      overrides.input_type = DataType::FLOAT32;
      overrides.dims = {0, 1, 1};
      overrides.params.emplace_back("error_bound", "0.01");
      overrides.params.emplace_back("error_bound_mode", "ABS");
      pipeline.loadConfigText(std::string(findPreset(preset)->toml), preset, overrides, false);
      addMask(pipeline, DataType::FLOAT32, {},
              maskSettingsFor(pipeline, DataType::FLOAT32, {}, {}));
      pipeline.finalize();
    };
    const DeviceStream stream;
    Pipeline on_device(kMost * sizeof(float), MemoryStrategy::PREALLOCATE);
    on_device.setBackend(Backend::CUDA);
    on_device.enableGraphMode(true);
    build(on_device);
    on_device.warmup(stream);
    on_device.captureGraph(stream);
    Pipeline on_cpu;
    on_cpu.setBackend(Backend::CPU);
    build(on_cpu);
    const DeviceBytesBuffer input(kMost * sizeof(float));
    for (const std::size_t n : {kMost, std::size_t{4097}, kMost}) {
      for (const MaskShape& shape : kShapes) {
        std::vector<float> values = fieldOf<float>(n, shape, false);
        for (float& value : values) {
          value = value == -9999.f ? std::numeric_limits<float>::infinity() : value;
        }
        const Bytes field = toBytes(values);
        input.put(field);
        const FrameBytes gpu = frameOnDevice(on_device, input, field.size(), stream);
        const CompressedView cpu = on_cpu.compress(field.data(), field.size());
        SCOPED_TRACE(std::string(shape.name) + ", " + std::to_string(n));
        ASSERT_EQ(gpu.size(), cpu.n_bytes);
        ASSERT_TRUE(std::memcmp(gpu.data(), cpu.data, gpu.size()) == 0);
      }
    }
  }
}

TEST_F(DeviceMaskGroups, AWrongChecksumIsFoundBeforeAMaskThatLies) {
  constexpr std::size_t kN = 100'000;
  const Bytes field = toBytes(fieldOf<float>(kN, kShapes[0], false));
  const DeviceBytesBuffer input{ByteView(field)};
  for (const char* const preset : {"cuszp", "cuszp2", "pfpl"}) {
    SCOPED_TRACE(preset);
    Pipeline pipeline;
    pipeline.setBackend(Backend::CUDA);
    ConfigOverrides overrides;
    overrides.input_type = DataType::FLOAT32;
    overrides.dims = {kN, 1, 1};
    overrides.params.emplace_back("error_bound_mode", "ABS");
    pipeline.loadConfigText(std::string(findPreset(preset)->toml), preset, overrides, false);
    addMask(pipeline, DataType::FLOAT32, {}, maskSettingsFor(pipeline, DataType::FLOAT32, {}, {}));
    pipeline.finalize();
    const FrameBytes frame = frameOnDevice(pipeline, input, field.size());
    FrameBytes lie = frame;
    lie.back() ^= 1;  // of the mask, which is the last segment
    FrameBytes no_frame = frame;
    no_frame[0] ^= 1;
    const DeviceBytesBuffer good{ByteView(frame)};
    const DeviceBytesBuffer bad{ByteView(lie)};
    const DeviceBytesBuffer refused{ByteView(no_frame)};
    const DeviceBytesBuffer out(field.size());
    const FrameBytes before(out.size(), 0x5A);
    const auto decompress = [&](const DeviceBytesBuffer& from) {
      std::size_t n_bytes = 0;
      out.put(before);
      pipeline.decompress(from.data(), from.size(), out.data(), out.size(), &n_bytes);
    };
    decompress(good);
    const FrameBytes expected = out.get(out.size());
    for (int round = 0; round < 3; ++round) {
      const Failure failure = failureOf([&] { decompress(bad); });
      EXPECT_EQ(failure.code, ErrorCode::kCorrupt);
      EXPECT_TRUE(failure.mentions("checksum")) << failure.message;
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      EXPECT_TRUE(out.get(out.size()) == before);
      decompress(good);
      EXPECT_TRUE(out.get(out.size()) == expected);
      EXPECT_NE(failureOf([&] { decompress(refused); }).message, "");
      decompress(good);
      EXPECT_TRUE(out.get(out.size()) == expected);
    }
  }
}

TEST_F(DeviceMaskGroups, BeginWithTheMask) {
  for (const char* const preset : {"cuszp", "cuszp2", "pfpl"}) {
    Pipeline pipeline;
    pipeline.setBackend(Backend::CUDA);
    ConfigOverrides overrides;
    overrides.input_type = DataType::FLOAT32;
    overrides.dims = {4096, 1, 1};
    overrides.params.emplace_back("error_bound_mode", "ABS");
    pipeline.loadConfigText(std::string(findPreset(preset)->toml), preset, overrides, false);
    addMask(pipeline, DataType::FLOAT32, {}, maskSettingsFor(pipeline, DataType::FLOAT32, {}, {}));
    pipeline.finalize();
    EXPECT_NE(pipeline.explain().find("one pass over memory: mask + quantizer"), std::string::npos)
        << pipeline.explain();
  }
}

}  // namespace
}  // namespace fz::test
