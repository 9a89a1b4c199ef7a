#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "fz/archive.h"

namespace fz::cli {

/// Writes a ZIP file of stored entries from front to back; ZIP64 records where a file needs them.
/// The same entries give the same bytes: there is no time of day in it.
class ZipWriter {
 public:
  /// The sink must live as long.
  explicit ZipWriter(ByteSink& sink) : sink_(&sink) {}

  /// The parts of an entry follow each other. Names must differ.
  void add(const std::string& name, std::initializer_list<ByteView> parts);
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t n_bytes = 0;
    std::uint32_t crc = 0;
  };

  void write(ByteView bytes);
  void writeLocal(const Entry& entry);
  void writeCentral(const Entry& entry);
  void writeEnd(std::uint64_t directory, std::uint64_t n_directory_bytes);

  ByteSink* sink_;
  std::uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace fz::cli
