#pragma once

#include <cstddef>

#include "fz/backend.h"
#include "fz/span.h"

namespace fz {

/// Memory of a backend, for programs that feed a Pipeline without the toolkit of a device: host
/// memory for the CPU, memory of the current device for CUDA. Copies are complete on return.
class BackendMemory {
 public:
  /// Auto is not allowed. Throws Error (kNoDevice, kOutOfMemory, kInvalidArgument).
  BackendMemory(Backend backend, std::size_t n_bytes);
  BackendMemory(const BackendMemory&) = delete;
  BackendMemory& operator=(const BackendMemory&) = delete;
  ~BackendMemory();

  void* data() const { return memory_; }
  std::size_t size() const { return n_bytes_; }

  /// From and to host memory, from the start; at most size() bytes, else Error(kBufferTooSmall).
  void upload(ByteView bytes);
  void download(MutableByteView bytes) const;
  /// From memory of the backend that somebody else owns, such as a frame in a pipeline.
  static void fetch(Backend backend, const void* from, MutableByteView to);
  /// As many bytes as both have, inside the backend.
  void copyFrom(const BackendMemory& other);

 private:
  Backend backend_;
  std::size_t n_bytes_;
  void* memory_ = nullptr;
};

/// Waits until a device has done all work that it was given, by anybody. Unlike
/// cudaDeviceSynchronize() it lets a pipeline in graph mode, in another thread, end its capture
/// first, which it would spoil; captures of the caller's own are spoilt. Does nothing in a build
/// without CUDA. Throws Error(kCuda).
void waitForDevice(int device);

}  // namespace fz
