#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "archive/chunk_frame.h"
#include "archive/chunk_grid.h"
#include "archive/index.h"
#include "fz/archive.h"

namespace fz {

/// A frame that becomes a chunk of an archive: its header, which may be a new one, and its payload.
struct ReadyFrame {
  FrameHeader header;
  std::vector<std::uint8_t> header_bytes;
  ByteView payload;
};

/// Reads and checks a frame, payload checksum included. Throws Error(kCorrupt, kUnsupported).
ReadyFrame checkedFrame(ByteView frame);

/// Puts frames that are there already together as an archive, chunk by chunk in order.
class ArchiveAssembler {
 public:
  /// The sink must live as long.
  ArchiveAssembler(DataType type, ChunkGrid grid, std::uint64_t array_id, ByteSink& sink);

  /// The next chunk. A frame that says its place must be of this one, and stays as it is; any other
  /// gets the chunk's shape and place in its header. Throws Error(kCorrupt) for a frame of another
  /// array, type, place or length.
  void put(ReadyFrame frame);
  /// Writes the index. Returns the bytes of the archive.
  std::uint64_t finish();

 private:
  void checkPlace(const FrameDescription& description, const Box& box) const;

  ArchiveIndex index_;
  ByteSink* sink_;
  std::uint64_t position_ = 0;
};

}  // namespace fz
