#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "archive/chunk_grid.h"
#include "archive/index.h"
#include "format/file_io.h"
#include "format/frame_header.h"
#include "fz/archive.h"

namespace fz {

/// An archive that becomes a file.
class FileSink : public ByteSink {
 public:
  FileSink(const std::string& path, bool replace)
      : file_(path, replace ? TemporaryName::kReplacePart : TemporaryName::kPart),
        existing_(replace ? Existing::kReplace : Existing::kKeep) {}

  void write(ByteView bytes) override { file_.write(bytes); }
  void commit() { file_.commit(existing_); }

 private:
  AtomicFile file_;
  Existing existing_;
};

/// What a writer knows and does besides its calls.
struct ArchiveWriter::State {
  State(DataType data_type, const ArchiveOptions& how);

  /// What was found by decoding.
  struct Errors {
    double largest = 0.0;
    double sum_of_squares = 0.0;
    std::uint64_t n_finite = 0;
  };
  /// Compresses one chunk and gives it its place; in any thread.
  void encode(std::uint64_t chunk, const Box& box, ByteView values);
  /// Values of a chunk that stands in a slab: all of the array but for the slowest axis.
  void encodeSlab(ByteView slab, std::uint64_t n_planes);
  void encodeChunks(ByteView slab, std::uint64_t n_planes);
  /// Keeps values until there are as many as a slab has.
  void take(ByteView values);
  void emit(std::uint64_t chunk, FrameHeader& header, ByteView header_bytes, ByteView payload);
  Frame compressChunk(const Box& box, ByteView values);
  void emitHeld();
  void verify(const FrameInfo& info, const Frame& frame, ByteView values, const Box& box);
  void note(const FrameInfo& info);
  void requireOpen(const char* call) const;
  void closeGrid();

  std::uint64_t planeValues() const;
  std::uint64_t chunksInSlab() const {
    return grid.count() / std::max<std::uint64_t>(1, slowCount());
  }
  std::uint64_t slowCount() const {
    return grid.axisCount() == 0 ? 1 : grid.countAlong(grid.axisCount() - 1);
  }
  /// Whether the array is a plain frame.
  bool isOne() const { return !grows && grid.count() == 1; }

  DataType type;
  ArchiveOptions options;
  CompressOptions chunk_options;
  bool grows = false;
  ChunkGrid grid;  // while it grows, of an array without end
  std::uint64_t array_id = 0;

  ByteSink* sink = nullptr;
  std::unique_ptr<FileSink> file;

  std::mutex mutex;  // of what follows
  std::vector<ChunkEntry> entries;
  std::optional<BoundInfo> bound;
  MissingInfo missing;
  Errors errors;
  std::uint64_t position = 0;
  bool is_finished = false;
  bool has_failed = false;

  // Chunks that come in order take over what the one before found out about the array: looking for
  // a plan takes as long as to compress a chunk.
  struct Plan {
    std::string text;
    double ratio = 0.0;  ///< of the chunk that it was made for
  };
  bool is_ordered = false;
  bool searches_plan = false;
  Plan plan;

  // For append().
  std::vector<std::uint8_t> pending;
  std::uint64_t n_planes_done = 0;
  std::vector<std::uint8_t> gathered;
  /// The first frame of an array that may turn out to have no other.
  std::optional<Frame> held;
};

}  // namespace fz
