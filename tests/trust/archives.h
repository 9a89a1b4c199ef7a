#pragma once

#include <string>
#include <vector>

#include "archive/index.h"
#include "fz/archive.h"
#include "trust/corpus.h"

/// Archives of chunks for the goals, and what is true of them.
namespace fz::trust {

/// Memory that an archive is written to.
struct BytesSink : ByteSink {
  void write(ByteView view) override { bytes.insert(bytes.end(), view.begin(), view.end()); }

  Bytes bytes;
};

struct ChunkedArchive {
  std::string name;  ///< preset, type, shape
  Bytes bytes;
  ArchiveIndex index;
  std::uint64_t frames_end = 0;
  std::vector<Bytes> values;  ///< what each chunk decodes to

  ByteView frame(std::uint64_t chunk) const {
    return ByteView(bytes).subspan(index.chunks[chunk].offset, index.chunks[chunk].n_bytes);
  }
  /// The chunk that begins there; that of another shape or none: the number of chunks.
  std::uint64_t chunkAt(const Box& box) const;
};

/// How the array of an archive is cut and written.
struct ChunkedShape {
  AxisValues extents;
  AxisValues chunk;
  enum { kAppended, kGrown, kPutBackwards } way = kAppended;
};

/// On the CPU, with one thread and the bound 1e-2 where the preset takes one.
ArchiveOptions chunkedOptions(const std::string& preset,
                              const AxisValues& extents,
                              const AxisValues& chunk);
/// `array_id` as in ArchiveOptions.
ChunkedArchive makeChunked(const std::string& preset,
                           DataType type,
                           const ChunkedShape& shape,
                           std::uint64_t array_id = 0);
/// Archives of one to four KiB: every preset, both float types, cut along one axis and along
/// several, appended, grown and put in any order.
std::vector<ChunkedArchive> chunkedArchives(std::size_t n_wanted);

/// Frames and an index that says something of them, true or not.
Bytes withIndex(ByteView frames, const ArchiveIndex& index);
/// The checksum of index and tail made to fit again, where their place can be found.
void repairIndex(Bytes& archive);

/// On the CPU, with one thread.
DecompressOptions plainDecoding();
/// The values of a chunk; as much memory as the frame can hold is taken.
Bytes chunkValues(const ArchiveReader& reader,
                  std::uint64_t chunk,
                  const DecompressOptions& options = plainDecoding());

}  // namespace fz::trust
