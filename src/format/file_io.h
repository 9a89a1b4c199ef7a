#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fz/span.h"

namespace fz {

/// A whole file, read with no more memory than its length. Throws Error(kIo).
std::vector<std::uint8_t> readFile(const std::string& path);
/// Up to max_bytes from the start, and the file's length.
std::vector<std::uint8_t> readFileFront(const std::string& path,
                                        std::size_t max_bytes,
                                        std::uint64_t* total_bytes);
/// Writes to a temporary name in the same folder, syncs, renames: at any moment the final name
/// holds the old file or the whole new one. Throws Error(kIo); nothing is left behind then.
void writeFileAtomically(const std::string& path, ByteView bytes);

}  // namespace fz
