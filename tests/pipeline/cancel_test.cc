// Calls that are asked to stop.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fz/progress.h"
#include "pipeline/compressor.h"

namespace fz {
namespace {

std::vector<float> waves(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = std::sin(static_cast<float>(i) * 0.001F) + 0.01F * static_cast<float>(i % 7);
  }
  return values;
}

CompressOptions optionsFor(std::string_view preset, std::size_t n_threads, RunProgress* progress) {
  CompressOptions options;
  options.preset = std::string(preset);
  options.backend = Backend::CPU;
  options.threads = n_threads;
  options.error_bound = 1e-3;
  options.mode = ErrorBoundMode::ABS;
  options.progress = progress;
  return options;
}

std::vector<std::uint8_t> bytesOf(const CompressedView& view) {
  const auto* data = static_cast<const std::uint8_t*>(view.data);
  return {data, data + view.n_bytes};
}

bool isCancelled(const std::function<void()>& call) {
  try {
    call();
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
    return true;
  }
}

TEST(Cancel, EveryPresetStopsWithATypedErrorAndWorksAgain) {
  const std::vector<float> values = waves(std::size_t{1} << 18);
  for (const Preset& preset : allPresets()) {
    for (const std::size_t n_threads : {1, 3}) {
      RunProgress progress;
      Pipeline pipeline;
      configure(pipeline, DataType::FLOAT32, optionsFor(preset.name, n_threads, nullptr));
      const auto compress = [&] {
        return bytesOf(pipeline.compress(values.data(), values.size() * sizeof(float)));
      };
      const std::vector<std::uint8_t> before = compress();
      pipeline.setProgress(&progress);
      EXPECT_EQ(compress(), before) << preset.name << ": somebody who looks changes no byte";
      progress.is_cancelled = true;
      EXPECT_TRUE(isCancelled([&] { compress(); })) << preset.name;
      progress.is_cancelled = false;
      EXPECT_EQ(compress(), before) << preset.name;
    }
  }
}

TEST(Cancel, DecodingStopsAndTheSameDecoderDecodesTheNextFrame) {
  const std::vector<float> values = waves(100000);
  for (const Preset& preset : allPresets()) {
    const Frame frame =
        compress(std::span<const float>(values), optionsFor(preset.name, 2, nullptr));
    RunProgress progress;
    progress.is_cancelled = true;
    EXPECT_TRUE(isCancelled([&] {
      decompress(frame, {.backend = Backend::CPU, .threads = 2, .progress = &progress});
    })) << preset.name;
    progress.is_cancelled = false;
    const Array back =
        decompress(frame, {.backend = Backend::CPU, .threads = 2, .progress = &progress});
    EXPECT_EQ(back.as<float>().size(), values.size());
  }
}

/// Asks a call to stop as soon as it has begun.
class Stopper {
 public:
  explicit Stopper(RunProgress& progress)
      : thread_([this, &progress] {
          while (!is_over_ && progress.n_stages == 0) {
            std::this_thread::yield();
          }
          progress.is_cancelled = true;
        }) {}
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;
  ~Stopper() {
    is_over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

TEST(Cancel, ACallIsStoppedWhereverItIs) {
  const std::vector<float> values = waves(std::size_t{1} << 23);
  for (const char* preset : {"best", "balanced", "fast", "pfpl", "cusz"}) {
    for (const std::size_t n_threads : {1, 3}) {
      // On a busy machine the other thread may come too late, so again and with longer calls.
      bool was_stopped = false;
      std::size_t n_values = values.size() / 4;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (!was_stopped && std::chrono::steady_clock::now() < end) {
        RunProgress progress;
        const Stopper stopper(progress);
        was_stopped = isCancelled([&] {
          compress(std::span<const float>(values).first(n_values),
                   optionsFor(preset, n_threads, &progress));
        });
        n_values = std::min(2 * n_values, values.size());
      }
      EXPECT_TRUE(was_stopped) << preset << ", " << n_threads << " threads";
    }
  }
}

}  // namespace
}  // namespace fz
