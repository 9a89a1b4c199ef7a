#pragma once

#include <string>

#include "chunk_options.h"
#include "fz/archive.h"
#include "options.h"

namespace fz::cli {

class Progress;

/// Archives that are decoded by parts: those of chunks, and any of which a box is wanted.

/// Opens a file, or what is at standard input. Throws Failure, Error.
ArchiveReader openArchive(const std::string& input, const DecodeLimits& limits, Progress* progress);
/// Whether the input is a regular file that begins as an archive of chunks does.
bool isChunkedFile(const std::string& input);

/// Decodes a box into a file, chunk by chunk, or to standard output in order. Returns the bytes of
/// the values.
std::uint64_t writeBox(const ArchiveReader& reader,
                       const BoxChoice& choice,
                       const std::string& output,
                       const CommonOptions& common,
                       Progress& progress);
/// Decodes every chunk, and keeps none. Throws for the first that is damaged.
void testChunks(const ArchiveReader& reader, const CommonOptions& common, Progress& progress);

}  // namespace fz::cli
