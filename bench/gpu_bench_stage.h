#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/record.h"
#include "backends/cuda/run_state.h"
#include "core/stage_access.h"
#include "cuda_check.h"
#include "fz/simple_stage.h"
#include "fzm_format.h"
#include "mem/mempool.h"

namespace fz::bench {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), capacity_(other.capacity_) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(memory_); }
  std::uint8_t* reserve(std::size_t n_bytes) {
    if (n_bytes > capacity_) {
      FZ_CUDA_CHECK(cudaFree(memory_));
      FZ_CUDA_CHECK(cudaMalloc(&memory_, n_bytes));
      capacity_ = n_bytes;
    }
    return data();
  }
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }

 private:
  void* memory_ = nullptr;
  std::size_t capacity_ = 0;
};

struct Data {
  DeviceBuffer buffer;
  std::size_t n_bytes = 0;
};

/// One stage with its buffers and its record, as the pipeline would run it.
class StageRunner {
 public:
  StageRunner(SimpleStage& stage, MemoryPool& pool, cudaStream_t stream)
      : stage_(stage), pool_(pool), block_(&pool), stream_(stream) {
    block_.reserve(1);
  }

  /// Plans outputs and runs until they are large enough.
  void settle(std::vector<Data>& in) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      plan(in);
      enqueue();
      block_.enqueueCopyToHost(stream_);
      FZ_CUDA_CHECK(cudaStreamSynchronize(stream_));
      StageAccess::finishCuda(stage_, block_.result(0), capacities_);
      const std::vector<std::size_t> needed = stage_.neededOutputSizes();
      if (needed.empty()) {
        stage_.checkResult();
        return;
      }
      for (std::size_t i = 0; i < needed.size(); ++i) {
        grown_[i] = std::max(grown_[i], needed[i]);
      }
    }
  }

  void enqueue() {
    block_.enqueueInit(stream_);
    stage_.beginRun();
    StageAccess::enqueueCuda(stage_, {inputs_, outputs_, block_.onDevice(0), stream_, &pool_});
  }

  std::vector<Data>& out() { return out_; }
  std::size_t outBytes() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      sum += stage_.getActualOutputSize(static_cast<int>(i));
    }
    return sum;
  }
  void takeSizes() {
    for (std::size_t i = 0; i < out_.size(); ++i) {
      out_[i].n_bytes = stage_.getActualOutputSize(static_cast<int>(i));
    }
  }

 private:
  void plan(std::vector<Data>& in) {
    std::vector<std::size_t> sizes;
    inputs_.clear();
    for (Data& data : in) {
      sizes.push_back(data.n_bytes);
      inputs_.push_back({data.buffer.data(), {data.n_bytes, nullptr}});
    }
    capacities_ = stage_.estimateOutputSizes(sizes);
    grown_.resize(capacities_.size(), 0);
    out_.resize(capacities_.size());
    outputs_.clear();
    for (std::size_t i = 0; i < capacities_.size(); ++i) {
      const bool known = StageAccess::isOutputSizeFixed(stage_, i);
      capacities_[i] = known ? capacities_[i] : std::max(capacities_[i], grown_[i]);
      out_[i].buffer.reserve(capacities_[i] + 16);
      outputs_.push_back({out_[i].buffer.data(), capacities_[i], known});
      block_.initial(0).n_bytes[i] = known ? capacities_[i] : 0;
    }
    if (stage_.isInverse()) {
      std::array<std::uint8_t, FZM_STAGE_CONFIG_SIZE> config{};
      const std::size_t n = stage_.serializeHeader(0, config.data(), config.size());
      cuda::loadFields(StageAccess::deviceFields(stage_), {config.data(), n},
                       stage_.getStageVersion(), block_.initial(0));
    }
  }

  SimpleStage& stage_;
  MemoryPool& pool_;
  cuda::DeviceRunState block_;
  cudaStream_t stream_;
  std::vector<CudaInput> inputs_;
  std::vector<CudaOutput> outputs_;
  std::vector<std::size_t> capacities_;
  std::vector<std::size_t> grown_;
  std::vector<Data> out_;
};

}  // namespace fz::bench
