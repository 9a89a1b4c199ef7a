#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fz/archive.h"

namespace fz::cli {

/// Reads stored entries of a ZIP file. Untrusted input: Error(kCorrupt), Error(kUnsupported) for
/// entries that are compressed or encrypted, or the bytes that were put in.
class ZipReader {
 public:
  /// Reads the directory, which may take max_memory_bytes (0: any number).
  explicit ZipReader(std::shared_ptr<const ByteSource> source, std::uint64_t max_memory_bytes = 0);

  /// The first bytes of an entry, at most so many; all of them are compared with their checksum.
  /// Nothing where there is no entry of that name.
  std::optional<std::vector<std::uint8_t>> read(const std::string& name,
                                                std::uint64_t max_bytes) const;
  /// How long an entry is.
  std::optional<std::uint64_t> sizeOf(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  struct Entry {
    std::uint64_t offset = 0;
    std::uint64_t n_bytes = 0;
    std::uint32_t crc = 0;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
  };
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t n_bytes = 0;
    std::uint64_t n_entries = 0;
  };

  std::vector<std::uint8_t> readAt(std::uint64_t offset, std::uint64_t n_bytes) const;
  Directory findDirectory() const;
  Directory directory64(std::uint64_t end) const;
  void readDirectory(const Directory& directory);
  std::uint64_t dataOf(const std::string& name, const Entry& entry) const;

  std::shared_ptr<const ByteSource> source_;
  std::uint64_t entries_end_ = 0;
  std::map<std::string, Entry> entries_;
};

}  // namespace fz::cli
