#pragma once

#include <mutex>

namespace fz::huffman {

/// How much shared memory a kernel may ask for is one number of the whole process. Held from
/// setting it until the kernel is launched, since other threads set it for books of their own.
inline std::mutex& sharedLimitMutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace fz::huffman
