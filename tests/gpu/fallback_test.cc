#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "gpu/device_pipeline.h"

// The smaller of a lossy and a lossless frame is kept, with the bytes of the CPU.

namespace fz::test {
namespace {

class DeviceFallback : public OnDevice<> {
 protected:
  /// Random bits, which no quantiser shortens.
  static Field noise(std::size_t n_values) {
    Field field = smoothField(DataType::FLOAT32, {n_values, 1, 1});
    std::uint32_t state = 1;
    for (std::uint8_t& byte : field.bytes) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<std::uint8_t>(state >> 24);
    }
    return field;
  }
  /// An absolute bound: of a range of 1e38 even noise has few steps.
  static CompressOptions tight(Backend backend) {
    CompressOptions options;
    options.preset = "pfpl";
    options.error_bound = 1e-3;
    options.mode = ErrorBoundMode::ABS;
    options.backend = backend;
    return options;
  }
};

TEST_F(DeviceFallback, HasTheBytesOfTheCpuAndLeavesThePipelineUsable) {
  for (const std::size_t n_values : {std::size_t{1}, std::size_t{100}, std::size_t{100'001}}) {
    const Field field = noise(n_values);
    Pipeline cpu;
    configure(cpu, field.type, tight(Backend::CPU));
    const CompressedView view = cpu.compress(field.bytes.data(), field.bytes.size());
    const auto* bytes = static_cast<const std::uint8_t*>(view.data);
    Pipeline gpu;
    configure(gpu, field.type, tight(Backend::CUDA));
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    const DeviceStream stream;
    for (int run = 0; run < 2; ++run) {
      EXPECT_TRUE(frameOnDevice(gpu, input, input.size(), stream) ==
                  FrameBytes(bytes, bytes + view.n_bytes))
          << n_values;
      EXPECT_TRUE(gpu.isLastFrameFallback());
    }
    EXPECT_EQ(view.n_bytes, field.bytes.size() + kStoredFrameBytes);
    void* out = nullptr;
    std::size_t n_bytes = 0;
    gpu.decompress(nullptr, 0, &out, &n_bytes, stream);
    EXPECT_TRUE(fromDevice(out, n_bytes) == field.bytes);
  }
}

TEST_F(DeviceFallback, HostArraysAreStoredAlike) {
  const Field field = noise(5000);
  const Frame on_device = compress(field.type, field.bytes, tight(Backend::CUDA));
  const Frame on_cpu = compress(field.type, field.bytes, tight(Backend::CPU));
  EXPECT_TRUE(std::equal(on_device.bytes().begin(), on_device.bytes().end(), on_cpu.bytes().begin(),
                         on_cpu.bytes().end()));
  EXPECT_TRUE(inspect(on_device).isFallback());
}

/// Outliers in a pattern, whose lossy frame does not grow but is larger than a lossless one.
TEST_F(DeviceFallback, TheSmallerOfTwoFramesIsThatOfTheCpu) {
  std::vector<float> values(60'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i / 100 % 20 < 7 ? 2e30f : static_cast<float>(i / 500 % 40);
  }
  CompressOptions options = tight(Backend::CUDA);
  const Frame on_device = compress(std::span<const float>(values), options);
  options.backend = Backend::CPU;
  const Frame on_cpu = compress(std::span<const float>(values), options);
  options.lossless_fallback = false;
  EXPECT_LT(on_cpu.size(), compress(std::span<const float>(values), options).size());
  EXPECT_TRUE(std::equal(on_device.bytes().begin(), on_device.bytes().end(), on_cpu.bytes().begin(),
                         on_cpu.bytes().end()));
  EXPECT_TRUE(inspect(on_device).isFallback());
}

TEST_F(DeviceFallback, AFillValueOfAHostArrayIsNoticed) {
  std::vector<float> values(60'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 3 == 0 ? -9999.0f : 271.0f + static_cast<float>(i % 35);
  }
  CompressOptions options = tight(Backend::CUDA);
  options.mode = ErrorBoundMode::NOA;
  EXPECT_THROW(compress(std::span<const float>(values), options), FillValueError);
  for (float& x : values) {
    x = x < 0 ? 280.0f : x;
  }
  EXPECT_NO_THROW(compress(std::span<const float>(values), options));
}

TEST_F(DeviceFallback, AMaskOfAHostArrayGivesTheBytesOfTheCpu) {
  std::vector<float> values(60'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i / 100 % 20 < 7 ? (i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -9999.0f)
                                 : 271.0f + static_cast<float>(i % 35);
  }
  for (const Preset& preset : allPresets()) {
    CompressOptions options = tight(Backend::CUDA);
    options.preset = preset.name;
    options.mode = ErrorBoundMode::NOA;
    options.error_bound = 1e-3;
    options.fill = {-9999.0};
    const Frame on_device = compress(std::span<const float>(values), options);
    options.backend = Backend::CPU;
    const Frame on_cpu = compress(std::span<const float>(values), options);
    EXPECT_TRUE(std::equal(on_device.bytes().begin(), on_device.bytes().end(),
                           on_cpu.bytes().begin(), on_cpu.bytes().end()))
        << preset.name;
    const Array back = decompress(on_cpu, {.backend = Backend::CUDA});
    const Array same = decompress(on_cpu, {.backend = Backend::CPU});
    EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), same.bytes().begin(),
                           same.bytes().end()))
        << preset.name;
  }
}

/// Hardly any valid value, and noise between missing ones: without loss behind a Mask.
TEST_F(DeviceFallback, FramesWithoutLossBehindAMaskHaveTheBytesOfTheCpu) {
  std::vector<std::vector<float>> fields(4, std::vector<float>(100'003, -9999.0f));
  fields[1][77'777] = 271.25f;
  for (std::size_t i = 0; i < fields[2].size(); i += 97) {
    fields[2][i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(i);
  }
  const Field bits = noise(fields[3].size());
  for (std::size_t i = 0; i < fields[3].size(); ++i) {
    if (i / 300 % 3 != 1) {
      std::memcpy(&fields[3][i], bits.bytes.data() + 4 * i, 4);
    }
  }
  for (const char* preset : {"pfpl", "cuszp2", "cusz", "fzgpu"}) {
    for (const std::vector<float>& values : fields) {
      CompressOptions options = tight(Backend::CUDA);
      options.preset = preset;
      options.error_bound = 0.1;
      options.fill = {-9999.0};
      const auto frameBy = [&](Backend backend) {
        options.backend = backend;
        return compress(std::span<const float>(values), options);
      };
      Frame on_cpu;
      try {
        on_cpu = frameBy(Backend::CPU);
      } catch (const Error& error) {  // noise is beyond some presets
        EXPECT_EQ(failureOf([&] { frameBy(Backend::CUDA); }).code, error.code()) << preset;
        continue;
      }
      const auto field = &values - fields.data();
      EXPECT_TRUE(inspect(on_cpu).isFallback() || field == 2) << preset << ' ' << field;
      const Frame on_device = frameBy(Backend::CUDA);
      EXPECT_TRUE(std::equal(on_device.bytes().begin(), on_device.bytes().end(),
                             on_cpu.bytes().begin(), on_cpu.bytes().end()))
          << preset << ' ' << field;
      const Array back = decompress(on_cpu, {.backend = Backend::CUDA});
      const Array same = decompress(on_cpu, {.backend = Backend::CPU});
      EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), same.bytes().begin(),
                             same.bytes().end()))
          << preset << ' ' << field;
    }
  }
}

TEST_F(DeviceFallback, CallsThatDoNotWaitRefuseIt) {
  const Field field = noise(5000);
  Pipeline gpu;
  configure(gpu, field.type, tight(Backend::CUDA));
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  const DeviceBytesBuffer frame(field.bytes.size() * 5);
  const auto compressAsync = [&] {
    gpu.compressAsync(input.data(), input.size(), frame.data(), frame.size(), nullptr, nullptr);
  };
  EXPECT_EQ(failureOf(compressAsync).code, ErrorCode::kInvalidState);
  gpu.setLosslessFallback(false);
  frameOnDevice(gpu, input, input.size());  // makes room for that many outliers
  EXPECT_NO_THROW(compressAsync());
  EXPECT_GT(gpu.finishAsync(nullptr), field.bytes.size() + kStoredFrameBytes);
}

}  // namespace
}  // namespace fz::test
