#include "fz/device_api.h"

#include <gtest/gtest.h>
#include <limits>

#include "fz/error.h"
#include "gpu/device_pipeline.h"

// Arrays in device memory get the mask and the bytes that they would get from host memory.

namespace fz::test {
namespace {

enum class Gaps { kNone, kNan, kFill, kFew };

std::vector<float> fieldWith(Gaps gaps, float scale) {
  std::vector<float> values(70'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t step = i / 1000;
    values[i] = scale * (271.0f + static_cast<float>(i % 35) + static_cast<float>(step));
    const bool is_land = i / 100 % 20 < 7;
    if ((gaps == Gaps::kNan && is_land) || (gaps == Gaps::kFew && i == 12'345)) {
      values[i] = std::numeric_limits<float>::quiet_NaN();
    } else if (gaps == Gaps::kFill && is_land) {
      values[i] = i % 2 == 0 ? -9999.0f : std::numeric_limits<float>::infinity();
    }
  }
  return values;
}

CompressOptions optionsFor(std::string_view preset, ErrorBoundMode mode) {
  CompressOptions options;
  options.preset = preset;
  options.error_bound = mode == ErrorBoundMode::NOA ? 1e-3 : 0.05;
  options.mode = mode;
  options.dims = {350, 200, 1};
  return options;
}

class DeviceArrays : public OnDevice<> {
 protected:
  /// The same values from device memory and from the host's.
  void expectBytesOfTheCpu(DeviceCompressor& compressor,
                           const std::vector<float>& values,
                           CompressOptions options) {
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()), 4 * values.size());
    const DeviceBytesBuffer input(bytes);
    const DeviceStream stream;
    const CompressedView view = compressor.compress(input.data(), input.size(), stream);
    const auto made = fromDevice(view.data, view.n_bytes);
    options.backend = Backend::CPU;
    const Frame cpu = compress(std::span<const float>(values), options);
    EXPECT_EQ(made.size(), cpu.size());
    EXPECT_TRUE(std::equal(made.begin(), made.end(), cpu.bytes().begin(), cpu.bytes().end()));
  }
};

TEST_F(DeviceArrays, HaveTheBytesOfHostArraysWhateverIsMissing) {
  for (const Preset& preset : allPresets()) {
    for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
      CompressOptions options = optionsFor(preset.name, mode);
      options.fill = {-9999.0};
      options.backend = Backend::CUDA;
      Pipeline pipeline;
      configure(pipeline, DataType::FLOAT32, options);
      DeviceCompressor compressor(pipeline, DataType::FLOAT32, options);
      for (const Gaps gaps : {Gaps::kNone, Gaps::kNan, Gaps::kFill, Gaps::kFew, Gaps::kNan}) {
        SCOPED_TRACE(std::string(preset.name) + " " + std::to_string(static_cast<int>(gaps)));
        expectBytesOfTheCpu(compressor, fieldWith(gaps, gaps == Gaps::kFill ? 2.0f : 1.0f),
                            options);
      }
    }
  }
}

TEST_F(DeviceArrays, FewMissingValuesAreFoundWhereStagesRefuseThem) {
  CompressOptions options = optionsFor("cuszp2", ErrorBoundMode::ABS);
  options.backend = Backend::CUDA;
  Pipeline pipeline;
  configure(pipeline, DataType::FLOAT32, options);
  DeviceCompressor compressor(pipeline, DataType::FLOAT32, options);
  expectBytesOfTheCpu(compressor, fieldWith(Gaps::kFew, 1.0f), options);
}

TEST_F(DeviceArrays, AnUndeclaredFillValueIsRefused) {
  std::vector<float> values = fieldWith(Gaps::kNone, 1.0f);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    values[i] = -9999.0f;
  }
  const ByteView bytes(reinterpret_cast<const std::uint8_t*>(values.data()), 4 * values.size());
  const DeviceBytesBuffer input(bytes);
  CompressOptions options = optionsFor("pfpl", ErrorBoundMode::NOA);
  options.backend = Backend::CUDA;
  for (const bool suspects : {true, false}) {
    options.suspect_fill = suspects;
    Pipeline pipeline;
    configure(pipeline, DataType::FLOAT32, options);
    DeviceCompressor compressor(pipeline, DataType::FLOAT32, options);
    if (!suspects) {
      expectBytesOfTheCpu(compressor, values, options);
      continue;
    }
    try {
      compressor.compress(input.data(), input.size(), DeviceStream());
      ADD_FAILURE() << "accepted";
    } catch (const FillValueError& error) {
      EXPECT_EQ(error.finding().value, -9999.0);
      EXPECT_EQ(error.finding().n_found, (values.size() + 2) / 3);
    }
  }
}

}  // namespace
}  // namespace fz::test
