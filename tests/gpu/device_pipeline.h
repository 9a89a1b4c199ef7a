#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "fz/presets.h"
#include "gpu/device_fixture.h"
#include "pipeline/compressor.h"
#include "support/fields.h"
#include "support/pipelines.h"

/// Pipelines on the device for tests: memory, streams, presets.
namespace fz::test {

/// Device memory with its contents.
class DeviceBytesBuffer {
 public:
  explicit DeviceBytesBuffer(std::size_t n_bytes) : n_bytes_(n_bytes) {
    FZ_CUDA_CHECK(cudaMalloc(&memory_, n_bytes == 0 ? 1 : n_bytes));
  }
  explicit DeviceBytesBuffer(ByteView bytes) : DeviceBytesBuffer(bytes.size()) { put(bytes); }
  DeviceBytesBuffer(const DeviceBytesBuffer&) = delete;
  DeviceBytesBuffer& operator=(const DeviceBytesBuffer&) = delete;
  ~DeviceBytesBuffer() { cudaFree(memory_); }

  void put(ByteView bytes, std::size_t offset = 0) const {
    FZ_CUDA_CHECK(cudaMemcpy(data() + offset, bytes.data(), bytes.size(), cudaMemcpyDefault));
    // A copy from pageable memory may still be under way, and the tests' streams do not wait for
    // it.
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::vector<std::uint8_t> get(std::size_t n_bytes) const {
    std::vector<std::uint8_t> bytes(n_bytes);
    FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), memory_, n_bytes, cudaMemcpyDefault));
    return bytes;
  }
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }
  std::size_t size() const { return n_bytes_; }

 private:
  std::size_t n_bytes_;
  void* memory_ = nullptr;
};

class DeviceStream {
 public:
  DeviceStream() { FZ_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor)

 private:
  cudaStream_t stream_ = nullptr;
};

inline std::vector<std::uint8_t> fromDevice(const void* memory, std::size_t n_bytes) {
  std::vector<std::uint8_t> bytes(n_bytes);
  FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), memory, n_bytes, cudaMemcpyDefault));
  return bytes;
}

/// Loads a preset for a field; not finalized.
inline void loadPreset(Pipeline& pipeline,
                       const std::string& preset,
                       const Field& field,
                       const std::string& bound = "0.001") {
  ConfigOverrides overrides;
  overrides.input_type = field.type;
  overrides.dims = field.dims;
  overrides.params.emplace_back("error_bound", bound);
  pipeline.loadConfigText(std::string(findPreset(preset)->toml), preset, overrides, false);
}

/// The frame of a field, made on the CPU.
inline FrameBytes cpuFrame(const std::string& preset,
                           const Field& field,
                           const std::string& bound = "0.001") {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  loadPreset(pipeline, preset, field, bound);
  pipeline.finalize();
  const CompressedView view = pipeline.compress(field.bytes.data(), field.bytes.size());
  const auto* begin = static_cast<const std::uint8_t*>(view.data);
  return {begin, begin + view.n_bytes};
}

inline FrameBytes frameOnDevice(Pipeline& pipeline,
                                const DeviceBytesBuffer& input,
                                std::size_t n_bytes,
                                cudaStream_t stream = nullptr) {
  const CompressedView view = pipeline.compress(input.data(), n_bytes, stream);
  return fromDevice(view.data, view.n_bytes);
}

}  // namespace fz::test
