#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/file_io.h"
#include "fz/archive.h"

namespace fz::cli {

/// Files by their names with slashes, as a Zarr store has them: a folder or a ZIP file.
class KeyReader {
 public:
  virtual ~KeyReader() = default;
  /// The first bytes, at most so many. Nothing where there is none. Throws Error.
  virtual std::optional<std::vector<std::uint8_t>> read(const std::string& key,
                                                        std::uint64_t max_bytes) const = 0;
  virtual std::optional<std::uint64_t> sizeOf(const std::string& key) const = 0;
  /// The first parts of the names of files that end so, which helps who named no array.
  virtual std::vector<std::string> foldersWith(const std::string& file) const = 0;
};
/// Throws Error (kIo, kCorrupt, kLimit).
std::unique_ptr<KeyReader> openKeys(const std::string& path,
                                    bool is_zip,
                                    std::uint64_t max_memory_bytes);

/// Becomes a store that is complete under its name, or not there.
class KeyWriter {
 public:
  virtual ~KeyWriter() = default;
  /// The parts of a file follow each other. Throws Error(kIo).
  virtual void put(const std::string& key, std::initializer_list<ByteView> parts) = 0;
  /// Without it nothing is left.
  virtual void commit() = 0;
};
/// An existing folder is never replaced. Throws Error(kIo).
std::unique_ptr<KeyWriter> createKeys(const std::string& path, bool is_zip, Existing existing);

}  // namespace fz::cli
