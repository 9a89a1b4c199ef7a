// Pipelines that threads hand to each other, as a server or the Python package does: each is used
// by one thread at a time, results live in the pool of the pipeline that made them and are given
// back by any thread.
#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/device_pipeline.h"
#include "mem/mempool.h"

namespace fz::test {
namespace {

struct Session {
  std::mutex mutex;
  Pipeline pipeline;
};

/// Up to two idle decoders; more threads than that make and drop their own.
class Decoders {
 public:
  std::shared_ptr<Session> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::shared_ptr<Session> session = std::move(idle_.back());
        idle_.pop_back();
        return session;
      }
    }
    auto session = std::make_shared<Session>();
    session->pipeline.setBackend(Backend::CUDA);
    loadPreset(session->pipeline, "pfpl", {"none", DataType::FLOAT32, {0, 1, 1}, {}});
    session->pipeline.finalize();
    return session;
  }
  void give(std::shared_ptr<Session> session) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(session));
    if (idle_.size() > 2) {
      std::swap(idle_.front(), session);  // destroyed behind the lock
      idle_.erase(idle_.begin());
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Session>> idle_;
};

/// Values in the pool of a session.
class Result {
 public:
  Result(std::shared_ptr<Session> session, void* data)
      : session_(std::move(session)), data_(data) {}
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() {
    cudaDeviceSynchronize();
    const std::lock_guard lock(session_->mutex);
    session_->pipeline.getMemoryPool().free(data_, nullptr);
  }
  const void* data() const { return data_; }

 private:
  std::shared_ptr<Session> session_;
  void* data_;
};

struct StoredFrame {
  std::unique_ptr<DeviceBytesBuffer> on_device;
  FrameBytes values;
};

StoredFrame store(const std::string& preset, const std::array<std::size_t, 3>& dims) {
  Field field{"wave", DataType::FLOAT32, dims, {}};
  const std::vector<float> values = wave(dims[0] * dims[1] * dims[2], 100.0);
  field.bytes.resize(byteCount(values));
  std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
  const FrameBytes frame = cpuFrame(preset, field);
  Pipeline on_cpu;
  on_cpu.setBackend(Backend::CPU);
  loadPreset(on_cpu, preset, field);
  on_cpu.finalize();
  StoredFrame stored{std::make_unique<DeviceBytesBuffer>(ByteView(frame)),
                     FrameBytes(field.bytes.size())};
  std::size_t n_bytes = 0;
  on_cpu.decompress(frame.data(), frame.size(), stored.values.data(), stored.values.size(),
                    &n_bytes);
  return stored;
}

constexpr int kThreads = 4;

class DeviceThreads : public OnDevice<testing::TestWithParam<bool>> {
 protected:
  /// Decodes every frame; results are kept until all are there. False: values differ.
  bool decodeAll(const std::vector<StoredFrame>& frames, cudaStream_t stream) {
    std::vector<std::unique_ptr<Result>> kept;
    for (const StoredFrame& frame : frames) {
      const std::size_t n_bytes = frame.values.size();
      std::shared_ptr<Session> session = decoders_.take();
      std::unique_lock lock(session->mutex);
      void* const data =
          session->pipeline.getMemoryPool().allocate(n_bytes, stream, "values", true);
      std::size_t n_decoded = 0;
      session->pipeline.decompress(frame.on_device->data(), frame.on_device->size(), data, n_bytes,
                                   &n_decoded, stream);
      FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
      lock.unlock();
      kept.push_back(std::make_unique<Result>(session, data));
      decoders_.give(std::move(session));
    }
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (fromDevice(kept[i]->data(), frames[i].values.size()) != frames[i].values) {
        return false;
      }
    }
    return true;
  }

  Decoders decoders_;
};

TEST_P(DeviceThreads, HandDecodersAndTheirMemoryToEachOther) {
  const int n_rounds = isSmallRun() ? 2 : 30;
  std::vector<StoredFrame> frames;
  for (const char* preset : {"cuszp2", "pfpl", "fzgpu"}) {
    frames.push_back(store(preset, {50, 40, 30}));
    frames.push_back(store(preset, {1000, 1, 1}));
  }
  std::atomic<int> n_wrong = 0;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const DeviceStream own;
      const cudaStream_t stream = GetParam() ? static_cast<cudaStream_t>(own) : nullptr;
      for (int i = 0; i < n_rounds; ++i) {
        n_wrong += decodeAll(frames, stream) ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(n_wrong, 0);
}

class DeviceThreadsWithPools : public OnDevice<> {};

TEST_F(DeviceThreadsWithPools, TakeAndDropThemAllAtOnce) {
  const int n_rounds = isSmallRun() ? 3 : 300;
  std::atomic<int> n_refused = 0;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < n_rounds; ++i) {
        MemoryPoolConfig config;
        config.backend = Backend::CUDA;
        MemoryPool pool(config);
        for (const std::size_t n_bytes : {1000u, 30'000u, 400'000u}) {
          void* const memory = pool.allocate(n_bytes, nullptr, "block", true);
          if (memory == nullptr || cudaMemsetAsync(memory, 0, n_bytes, nullptr) != cudaSuccess) {
            ++n_refused;
          }
          pool.free(memory, nullptr);
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(n_refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Streams, DeviceThreads, testing::Bool(), [](const auto& param) {
  return param.param ? "own" : "default";
});

}  // namespace
}  // namespace fz::test
