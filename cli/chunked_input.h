#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "field_io.h"
#include "fz/archive.h"

namespace fz::cli {

class Progress;

/// An array that is read by parts. `field` has no values of its own but those of a mapped file.
struct ChunkedInput {
  Field field;
  /// Values of a box; empty for a pipe.
  std::function<void(const Box& box, MutableByteView values)> read;
  /// What was read of a pipe to find out how long it is.
  std::vector<std::uint8_t> begun;
  /// The next bytes of a pipe, up to the length of `out`; 0: it has ended.
  std::function<std::size_t(MutableByteView out)> next;

  bool isPipe() const { return !read; }
  /// 0 for a pipe without stated extents.
  std::uint64_t byteCount() const {
    return valueCount(field.extents) * getDataTypeSize(field.type);
  }
};

/// A pipe or a device, which can be read only once.
bool isStream(const std::string& path);

/// Opens a file, an HDF5 dataset or a pipe that has more than `whole_bytes`. Nothing for others; of
/// a pipe that has ended before `rest` has all bytes then. Throws Failure, Error(kIo).
std::optional<ChunkedInput> openChunked(const std::string& path,
                                        const FieldRequest& request,
                                        std::uint64_t whole_bytes,
                                        Progress* progress,
                                        std::optional<InputBytes>& rest);

/// One line that reads the interpretation back, as describeField() does.
std::string describeChunked(const ChunkedInput& input);

/// A regular file or HDF5 dataset, of any length.
ChunkedInput openByParts(const std::string& path, const FieldRequest& request);

}  // namespace fz::cli
