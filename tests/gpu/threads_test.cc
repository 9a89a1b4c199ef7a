// Pipelines that threads hand to each other, as a server or the Python package does: each is used
// by one thread at a time, results live in the pool of the pipeline that made them and are given
// back by any thread.
#include <exception>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fz/backend_memory.h"
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
  void clear() {
    std::vector<std::shared_ptr<Session>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(idle_);
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
    waitForDevice(session_->pipeline.getMemoryPool().getDeviceId());
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

/// All at once; an exception is a failure of the test.
void runInThreads(const std::function<void(int)>& work) {
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      try {
        work(t);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "thread " << t << ": " << e.what();
      }
    });
  }
}

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
  runInThreads([&](int /*t*/) {
    const DeviceStream own;
    const cudaStream_t stream = GetParam() ? static_cast<cudaStream_t>(own) : nullptr;
    for (int i = 0; i < n_rounds; ++i) {
      ASSERT_TRUE(decodeAll(frames, stream));
    }
  });
}

TEST_P(DeviceThreads, CaptureGraphsWhileOthersMakeAndDropPipelines) {
  const int n_rounds = isSmallRun() ? 2 : 20;
  std::vector<StoredFrame> frames;
  frames.push_back(store("pfpl", {50, 40, 30}));
  const Field field = smoothField(DataType::FLOAT32, {5000, 1, 1});
  const FrameBytes wanted = cpuFrame("cuszp2", field);
  const DeviceBytesBuffer inputs[] = {DeviceBytesBuffer{ByteView(field.bytes)},
                                      DeviceBytesBuffer{ByteView(field.bytes)}};
  runInThreads([&](int t) {
    if (t % 2 == 0) {
      const DeviceStream own;
      for (int i = 0; i < 3 * n_rounds; ++i) {
        ASSERT_TRUE(decodeAll(frames, GetParam() ? static_cast<cudaStream_t>(own) : nullptr));
        decoders_.clear();
      }
      return;
    }
    // A stream that waits for the default one, and that one for it.
    cudaStream_t stream = nullptr;
    FZ_CUDA_CHECK(cudaStreamCreate(&stream));
    for (int i = 0; i < n_rounds; ++i) {
      Pipeline pipeline(field.bytes.size(), MemoryStrategy::PREALLOCATE);
      pipeline.setBackend(Backend::CUDA);
      pipeline.enableGraphMode(true);
      loadPreset(pipeline, "cuszp2", field);
      pipeline.finalize();
      pipeline.captureGraph(stream);
      for (int k = 0; k < 4; ++k) {  // other pointers, so it is captured anew
        ASSERT_EQ(frameOnDevice(pipeline, inputs[k % 2], field.bytes.size(), stream), wanted);
      }
    }
    FZ_CUDA_CHECK(cudaStreamDestroy(stream));
  });
}

class DeviceThreadsWithPools : public OnDevice<> {};

TEST_F(DeviceThreadsWithPools, TakeAndDropThemAllAtOnce) {
  const int n_rounds = isSmallRun() ? 3 : 300;
  runInThreads([&](int /*t*/) {
    for (int i = 0; i < n_rounds; ++i) {
      MemoryPoolConfig config;
      config.backend = Backend::CUDA;
      MemoryPool pool(config);
      for (const std::size_t n_bytes : {1000u, 30'000u, 400'000u}) {
        void* const memory = pool.allocate(n_bytes, nullptr, "block", true);
        ASSERT_NE(memory, nullptr);
        FZ_CUDA_CHECK(cudaMemsetAsync(memory, 0, n_bytes, nullptr));
        pool.free(memory, nullptr);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Streams, DeviceThreads, testing::Bool(), [](const auto& param) {
  return param.param ? "own" : "default";
});

}  // namespace
}  // namespace fz::test
