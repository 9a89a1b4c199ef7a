#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "fz/cuda_part.h"

namespace fz::cuda {

/// A stream beside that of a part's calls, for work that others need not wait for yet. Made when
/// first needed, for the device of the moment.
class SideStream {
 public:
  enum class Priority : std::uint8_t {
    kSame,  ///< as that of the stream beside it
    kMost,  ///< for work that others wait for, before what is enqueued on the stream itself
  };

  explicit SideStream(Priority priority = Priority::kSame) : priority_(priority) {}
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  ~SideStream() { drop(); }

  /// A call that enqueues beside `call`, behind all that its stream has by now; the same call where
  /// it is not part of a run. The run sees to it that join() follows.
  Call fork(const Call& call);
  cudaStream_t stream() const { return stream_; }
  /// Between fork() and join().
  bool isOpen() const { return is_open_; }
  /// The stream that fork() was called for waits for all that has been enqueued beside it. Nothing
  /// where that has happened, or where there was no fork.
  void join();
  /// The same where a run has broken off, which is no place to throw.
  void abandon() noexcept;

 private:
  void make(cudaStream_t beside);
  void drop() noexcept;

  Priority priority_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begins_ = nullptr;
  cudaEvent_t ends_ = nullptr;
  int device_ = -1;
  cudaStream_t waiting_ = nullptr;  ///< between fork and join
  bool is_open_ = false;
};

}  // namespace fz::cuda
