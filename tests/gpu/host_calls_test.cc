// Arrays of the host through a device: pinned pieces, kept pipelines, many threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <thread>

#include "api/backend_choice.h"
#include "backends/cuda/device_guard.h"
#include "backends/cuda/host_copy.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "gpu/device_fixture.h"
#include "gpu/device_pipeline.h"

namespace fz::test {
namespace {

std::vector<std::uint8_t> pattern(std::size_t n_bytes, unsigned seed) {
  std::vector<std::uint8_t> bytes(n_bytes);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

std::vector<float> wave(std::size_t n_values, float scale) {
  std::vector<float> values(n_values);
  for (std::size_t i = 0; i < n_values; ++i) {
    const auto step = static_cast<float>(i % 1000);
    values[i] = scale * (step * (1000.0f - step) * 1e-3f + static_cast<float>(i / 1000 % 64));
  }
  return values;
}

CompressOptions withBound(std::string_view preset, Backend backend, std::size_t n_threads = 0) {
  CompressOptions options;
  options.preset = preset;
  options.error_bound = 0.01;
  options.mode = ErrorBoundMode::ABS;
  options.backend = backend;
  options.threads = n_threads;
  return options;
}

FrameBytes bytesOf(const Frame& frame) {
  return {frame.bytes().begin(), frame.bytes().end()};
}

class DeviceHostCopies : public OnDevice<testing::TestWithParam<std::size_t>> {};

TEST_P(DeviceHostCopies, BytesComeThroughWhateverTheirLengthAndAddress) {
  const std::size_t n_bytes = GetParam();
  if (isSmallRun() && n_bytes > 5'000'000) {
    GTEST_SKIP() << "takes minutes under a sanitizer";
  }
  for (const std::size_t n_threads : {1u, 3u, 8u}) {
    for (const std::size_t offset : {0u, 1u, 12u}) {
      const auto threads = makeCpuExecutor(n_threads, ThreadBackend::kStd);
      const DeviceStream stream;
      const cuda::HostCopy how{0, stream, threads.get()};
      const std::vector<std::uint8_t> sent = pattern(n_bytes + offset, 1);
      std::vector<std::uint8_t> came(n_bytes + offset + 1, 0xee);
      const DeviceBytesBuffer on_device(ByteView(pattern(n_bytes + offset + 1, 2)));
      std::uint8_t* const at = on_device.data() + offset;
      cuda::copyFromHost(at, ByteView(sent).subspan(offset), how);
      cuda::copyToHost(MutableByteView(came).subspan(offset, n_bytes), at, how);
      EXPECT_TRUE(std::equal(sent.begin() + static_cast<std::ptrdiff_t>(offset), sent.end(),
                             came.begin() + static_cast<std::ptrdiff_t>(offset)));
      EXPECT_EQ(came.back(), 0xee);
      EXPECT_TRUE(std::all_of(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(offset),
                              [](std::uint8_t byte) { return byte == 0xee; }));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lengths,
    DeviceHostCopies,
    testing::Values(0, 1, 65'535, 65'536, 131'073, 2'097'152, 2'097'153, 4'500'001, 40'000'003));

class DevicePinnedPieces : public OnDevice<> {};

TEST_F(DevicePinnedPieces, AreMadeAgainAfterTheyWereGivenBack) {
  const DeviceStream stream;
  const std::vector<std::uint8_t> sent = pattern(300'000, 3);
  const DeviceBytesBuffer on_device{ByteView(sent)};
  for (int i = 0; i < 3; ++i) {
    std::vector<std::uint8_t> came(sent.size());
    cuda::copyToHost(came, on_device.data(), {0, stream});
    EXPECT_EQ(came, sent);
    cuda::releasePinnedPieces();
  }
}

class DeviceHostCalls : public OnDevice<> {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {
      releaseDeviceMemory();
    }
  }
};

TEST_F(DeviceHostCalls, KeptPipelinesGiveTheBytesOfTheCpuWhateverTheySawBefore) {
  for (const Preset& preset : allPresets()) {
    for (const std::size_t n_values : {70'000u, 1'000u, 70'000u, 250'000u}) {
      for (const float scale : {1.0f, 30.0f}) {
        const std::vector<float> values = wave(n_values, scale);
        const Frame made = compress(values, withBound(preset.name, Backend::CUDA));
        EXPECT_EQ(bytesOf(made), bytesOf(compress(values, withBound(preset.name, Backend::CPU))))
            << preset.name << ' ' << n_values;
        const Array back = decompress(made, {.backend = Backend::CUDA});
        const Array wanted = decompress(made, {.backend = Backend::CPU});
        EXPECT_TRUE(std::equal(back.bytes().begin(), back.bytes().end(), wanted.bytes().begin(),
                               wanted.bytes().end()));
      }
    }
  }
}

TEST_F(DeviceHostCalls, OptionsOfOneCallAreNotThoseOfTheNext) {
  const std::vector<float> values = wave(60'000, 1.0f);
  for (int round = 0; round < 2; ++round) {
    for (const double bound : {1e-2, 1e-3}) {
      for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
        for (const std::array<std::size_t, 3>& dims :
             {std::array<std::size_t, 3>{0, 1, 1}, {300, 200, 1}, {100, 60, 10}}) {
          CompressOptions options = withBound("cusz", Backend::CUDA);
          options.error_bound = bound;
          options.mode = mode;
          options.dims = dims;
          const FrameBytes made = bytesOf(compress(values, options));
          options.backend = Backend::CPU;
          EXPECT_EQ(made, bytesOf(compress(values, options)));
        }
      }
    }
  }
}

TEST_F(DeviceHostCalls, FieldsWithGapsAndWithoutFollowEachOther) {
  for (int round = 0; round < 3; ++round) {
    std::vector<float> values = wave(60'000, 1.0f);
    if (round != 1) {
      std::fill(values.begin() + 1000 * round, values.begin() + 9000, NAN);
    }
    const FrameBytes made = bytesOf(compress(values, withBound("cuszp2", Backend::CUDA)));
    EXPECT_EQ(made, bytesOf(compress(values, withBound("cuszp2", Backend::CPU))));
  }
}

TEST_F(DeviceHostCalls, AutoTakesWhatWasMeasuredToBeFaster) {
  if (std::getenv("FZ_BACKEND") != nullptr) {
    GTEST_SKIP() << "FZ_BACKEND decides";
  }
  constexpr std::size_t kMib = std::size_t{1} << 20;
  ASSERT_GT(cuda::deviceCount(), 0);  // from here on the process uses CUDA
  for (const ChainCost chain : {ChainCost::kPacking, ChainCost::kShuffle, ChainCost::kEntropy}) {
    for (const std::size_t n_threads : {1u, 4u, 16u}) {
      for (const std::size_t n_bytes : {kMib / 16, 4 * kMib, 512 * kMib}) {
        EXPECT_EQ(chooseToCompress({n_bytes, n_threads, chain}).backend, Backend::CUDA);
      }
      EXPECT_EQ(chooseToDecompress({kMib / 16, n_threads, chain}).backend, Backend::CUDA);
      EXPECT_EQ(chooseToDecompress({512 * kMib, n_threads, chain}).backend, Backend::CUDA);
      EXPECT_EQ(chooseToDecompress({kMib, n_threads, chain}).backend,
                n_threads == 1 ? Backend::CUDA : Backend::CPU);
    }
  }
  EXPECT_EQ(chooseToCompress({16 * kMib, 16, ChainCost::kPacking}).backend, Backend::CPU);
  EXPECT_EQ(chooseToCompress({16 * kMib, 16, ChainCost::kEntropy}).backend, Backend::CUDA);
  EXPECT_EQ(chooseToCompress({16 * kMib, 4, ChainCost::kPacking}).backend, Backend::CUDA);
  EXPECT_EQ(chooseToDecompress({64 * kMib, 16, ChainCost::kPacking}).backend, Backend::CPU);
  EXPECT_EQ(chooseToDecompress({64 * kMib, 16, ChainCost::kEntropy}).backend, Backend::CUDA);
}

TEST_F(DeviceHostCalls, ACallThatFailsLeavesNothingToTheNext) {
  const std::vector<float> values = wave(60'000, 1.0f);
  const Frame good = compress(values, withBound("pfpl", Backend::CUDA));
  FrameBytes damaged = bytesOf(good);
  damaged[damaged.size() / 2] ^= 0x10;
  EXPECT_THROW(decompress(ByteView(damaged), {.backend = Backend::CUDA}), Error);
  const Array back = decompress(good, {.backend = Backend::CUDA});
  EXPECT_EQ(back.bytes().size(), values.size() * sizeof(float));
  EXPECT_EQ(bytesOf(compress(values, withBound("pfpl", Backend::CUDA))), bytesOf(good));
}

TEST_F(DeviceHostCalls, ThreadsAtOnceGetTheirOwnResults) {
  const std::vector<float> first = wave(isSmallRun() ? 30'000 : 900'000, 1.0f);
  const std::vector<float> second = wave(isSmallRun() ? 20'000 : 800'000, 7.0f);
  const FrameBytes of_first = bytesOf(compress(first, withBound("cuszp2", Backend::CPU)));
  const FrameBytes of_second = bytesOf(compress(second, withBound("cuszp2", Backend::CPU)));
  std::vector<std::thread> threads;
  std::atomic<int> n_wrong{0};
  threads.reserve(6);
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const bool is_first = t % 2 == 0;
      const std::vector<float>& values = is_first ? first : second;
      for (int i = 0; i < 5; ++i) {
        const Frame made = compress(values, withBound("cuszp2", Backend::CUDA, 2));
        const Array back = decompress(made, {.backend = Backend::CUDA, .threads = 2});
        const auto came = back.as<float>();
        bool is_right = bytesOf(made) == (is_first ? of_first : of_second);
        for (std::size_t v = 0; is_right && v < values.size(); ++v) {
          is_right = std::abs(came[v] - values[v]) <= 0.0101f;
        }
        n_wrong += is_right ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(n_wrong.load(), 0);
}

}  // namespace
}  // namespace fz::test
