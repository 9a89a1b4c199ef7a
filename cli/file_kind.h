#pragma once

#include <optional>
#include <string_view>

#include "fz/span.h"

namespace fz::cli {

/// A kind of file that is certainly no raw array, told by its first bytes.
struct FileKind {
  std::string_view name;    ///< with its article: "a gzip file"
  std::string_view advice;  ///< what to do with it
};

/// Nothing when the bytes may be a raw array.
std::optional<FileKind> knownFileKind(ByteView bytes);

}  // namespace fz::cli
