#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fz/span.h"

namespace fz::cli {

/// Bytes of an input: the file itself as memory where it is a regular one, else a copy. Copies of
/// the object share the bytes.
class InputBytes {
 public:
  InputBytes() = default;
  explicit InputBytes(std::vector<std::uint8_t> bytes);
  InputBytes(std::shared_ptr<const void> owner, ByteView bytes, bool is_mapped)
      : owner_(std::move(owner)), bytes_(bytes), is_mapped_(is_mapped) {}
  /// Throws Error (kIo, kOutOfMemory).
  static InputBytes map(const std::string& path);

  operator ByteView() const { return bytes_; }  // NOLINT(google-explicit-constructor)
  const std::uint8_t* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  /// Pages of a file take no memory of the process that the system could not take back.
  bool isMapped() const { return is_mapped_; }
  /// Leaves a header out; the rest is aligned for any type afterwards.
  void dropFront(std::size_t n_bytes);

 private:
  std::shared_ptr<const void> owner_;
  ByteView bytes_;
  bool is_mapped_ = false;
};

/// A mapped file that shrinks, or a disk that fails, ends the process with a message and the exit
/// code of files instead of a bare signal.
void catchVanishingFiles();

/// A limit of file sizes (ulimit -f) becomes an error of the write, with a message and a clean end.
void ignoreFileSizeSignal();

}  // namespace fz::cli
