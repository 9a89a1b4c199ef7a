#pragma once

// What the examples share: a field from a file or made up, and memory of a pipeline's backend.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fzgpumodules.h"

#if FZ_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace example {

/// Values of a raw float file, or 16 Mi made-up ones without a path.
inline std::vector<float> loadOrMakeField(const char* path) {
  if (path != nullptr) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    if (values.empty()) {
      std::fprintf(stderr, "%s: no values\n", path);
      std::exit(1);
    }
    return values;
  }
  std::vector<float> values(std::size_t{1} << 24);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i);
    values[i] = static_cast<float>(50 * std::sin(2e-3 * x) + 20 * std::cos(7e-5 * x));
  }
  return values;
}

inline void copyBytes(void* to, const void* from, std::size_t n_bytes) {
#if FZ_HAVE_CUDA
  if (fz::isBackendAvailable(fz::Backend::CUDA)) {
    FZ_CUDA_CHECK(cudaMemcpy(to, from, n_bytes, cudaMemcpyDefault));
    return;
  }
#endif
  std::memcpy(to, from, n_bytes);
}

/// An array where the pipeline wants it: on the device, or in host memory.
class BackendArray {
 public:
  BackendArray(fz::Pipeline& pipeline, const std::vector<float>& values)
      : pool_(pipeline.getMemoryPool()),
        n_bytes_(values.size() * sizeof(float)),
        memory_(pool_.allocate(n_bytes_, nullptr, "example")) {
    copyBytes(memory_, values.data(), n_bytes_);
  }
  BackendArray(const BackendArray&) = delete;
  BackendArray& operator=(const BackendArray&) = delete;
  ~BackendArray() { pool_.free(memory_, nullptr); }
  const void* data() const { return memory_; }
  std::size_t bytes() const { return n_bytes_; }

 private:
  fz::MemoryPool& pool_;
  std::size_t n_bytes_;
  void* memory_;
};

/// A stream on the device; null on the CPU, where it means nothing.
class Stream {
 public:
  explicit Stream(const fz::Pipeline& pipeline) {
#if FZ_HAVE_CUDA
    if (pipeline.getBackend() == fz::Backend::CUDA) {
      FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
#else
    (void)pipeline;
#endif
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
#if FZ_HAVE_CUDA
    if (stream_ != nullptr) {
      cudaStreamDestroy(stream_);
    }
#endif
  }
  cudaStream_t get() const {
    return stream_;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Values that miss the bound, exactly.
inline std::size_t countMisses(const std::vector<float>& original,
                               const std::vector<float>& decoded,
                               double bound) {
  return fz::countBoundViolations(original.data(), decoded.data(), original.size(), bound);
}

inline std::vector<float> toHost(const void* data, std::size_t n_bytes) {
  std::vector<float> values(n_bytes / sizeof(float));
  copyBytes(values.data(), data, n_bytes);
  return values;
}

}  // namespace example
