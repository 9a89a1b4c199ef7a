#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/span.h"

/// Arrays of any size as archives of chunks: written piece by piece, read by boxes, in memory that
/// depends on the chunks alone. docs/archives.md explains it, docs/format.md has the bytes.
namespace fz {

/// A part of an array: the first index along each axis, and how many.
struct Box {
  AxisValues origin;
  AxisValues extents;

  bool operator==(const Box&) const = default;
};
/// How many values an array has. Throws Error(kBadSize) for more than 64 bits hold.
std::uint64_t valueCount(const AxisValues& extents);

/// Bytes that can be read at any place: a file, memory, an object of another program.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills all of `out`. Several threads may call at once. Throws Error(kIo).
  virtual void read(std::uint64_t offset, MutableByteView out) const = 0;
};
/// A regular file, read as it is needed. Throws Error(kIo).
std::shared_ptr<const ByteSource> openSource(const std::string& path);
/// Memory of the caller, which must live as long.
std::shared_ptr<const ByteSource> sourceOf(ByteView bytes);

/// Bytes that are written one after the other.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// One call at a time. Throws Error(kIo).
  virtual void write(ByteView bytes) = 0;
};

/// How far a call over many chunks has come; anybody may look at any time, or ask it to stop.
struct ArchiveProgress {
  std::atomic<std::uint64_t> n_bytes{0};  ///< of the array, as far as the call goes
  std::atomic<std::uint64_t> n_bytes_done{0};
  /// Ends the call with Error(kCancelled) before the next chunk.
  std::atomic<bool> is_cancelled{false};
};

/// The smallest and the largest value of an array, missing values left out.
struct ValueRange {
  double low = 0.0;
  double high = 0.0;
};

/// Finds the range of an array that comes in pieces.
class RangeScan {
 public:
  /// As CompressOptions::fill. Throws Error(kUnsupported) for types other than float and double.
  RangeScan(DataType type, const std::vector<double>& fill, std::size_t n_threads = 0);
  ~RangeScan();
  RangeScan(RangeScan&&) noexcept;
  RangeScan& operator=(RangeScan&&) noexcept;

  void add(ByteView values);
  /// Nothing where no value counts.
  std::optional<ValueRange> range() const;
  /// Throws FillValueError where a value that nobody declared sets the range, as compress() does
  /// for a bound that is this part of the range.
  void requireWithoutFill(double error_bound) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct ArchiveOptions {
  /// How each chunk is compressed; dims and extents are those of the chunk.
  CompressOptions compress = {};
  /// Of the whole array. The last, the slowest, may be 0 for append(): as many as come.
  AxisValues extents = {};
  /// Of a chunk; empty: as chooseChunk() says.
  AxisValues chunk = {};
  /// What a bound relative to the range means; such a bound needs it.
  std::optional<ValueRange> range = {};
  /// What all parts of the array share; 0: made from the settings.
  std::uint64_t array_id = 0;
  /// Whether every chunk is decoded and compared with its values before it is written. A value
  /// that misses the bound is Error(kBoundViolation).
  bool verify = false;
  ArchiveProgress* progress = nullptr;
};

/// Bytes that chunks have about when nothing is said.
inline constexpr std::uint64_t kDefaultChunkBytes = std::uint64_t{64} << 20;

/// Extents of chunks of at most about so many bytes: whole where that fits, else cut so that rows
/// stay long and the other axes alike.
AxisValues chooseChunk(DataType type,
                       const AxisValues& extents,
                       std::uint64_t chunk_bytes = kDefaultChunkBytes);

/// Writes an archive chunk by chunk. An array of one chunk becomes a plain frame.
class ArchiveWriter {
 public:
  /// Into a sink of the caller, which must live as long. Throws as compress() does for wrong
  /// options, and InvalidArgument for extents and chunks that do not fit each other.
  ArchiveWriter(DataType type, const ArchiveOptions& options, ByteSink& sink);
  /// Into a file, which has its name when finish() returns; until then it is `path.part`, and what
  /// is left of that after a crash can be recovered (recoverArchive). Without `replace` a file of
  /// either name is an error; one that another process is writing always is.
  ArchiveWriter(DataType type,
                const ArchiveOptions& options,
                const std::string& path,
                bool replace = true);
  /// Without finish() a file is gone, and a sink has an archive without its end.
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  const AxisValues& chunkExtents() const;
  /// 0 while the array may still grow.
  std::uint64_t chunkCount() const;
  Box chunkBox(std::uint64_t chunk) const;

  /// The next values in the order of memory, x fastest; any number of them. What is not a chunk yet
  /// is kept. Not together with put(). A call that throws can be made again where none of its
  /// values were taken; else all later calls are Error(kInvalidState).
  void append(ByteView values);
  /// One chunk, its values in the order of memory. In any order, each once, from several threads.
  void put(std::uint64_t chunk, ByteView values);
  /// All chunks, in order: `read` fills in the values of a box. While one chunk is compressed the
  /// next is read, in another thread.
  void putAll(const std::function<void(const Box& box, MutableByteView values)>& read);
  /// Writes the index. Throws Error(kBadSize) where values or chunks are missing. Returns the bytes
  /// of the archive. What fails once the end is being written cannot be made again.
  std::uint64_t finish();

  /// The largest |x - x'| of the chunks that were verified so far.
  double largestError() const;
  /// The mean of (x - x')^2 over the finite values of the chunks that were verified so far, missing
  /// ones left out; 0 where there are none.
  double meanSquaredError() const;
  /// What all chunks promise so far.
  std::optional<BoundInfo> bound() const;
  /// Values that were missing in the chunks so far, and those of them that were declared.
  MissingInfo missing() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What an archive says about itself.
struct ArchiveInfo {
  DataType type = DataType::UNKNOWN;
  AxisValues extents;  ///< of the array; empty: a single value
  AxisValues chunk;    ///< of a chunk
  std::optional<BoundInfo> bound;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_absent = 0;  ///< chunks that are not there
  std::uint64_t array_id = 0;
  std::uint64_t original_bytes = 0;
  std::uint64_t archive_bytes = 0;
  bool is_frame = false;  ///< a plain frame, without index

  double ratio() const {
    return static_cast<double>(original_bytes) / static_cast<double>(archive_bytes);
  }
};

/// Reads archives of chunks and plain frames alike. All calls are const and may come from several
/// threads at once. Untrusted input: Error(kCorrupt) or a correct result; a chunk that is damaged
/// is named, and the others stay readable.
class ArchiveReader {
 public:
  /// Reads the index. Throws Error (kCorrupt, kUnsupported, kIo, kLimit).
  explicit ArchiveReader(std::shared_ptr<const ByteSource> source, const DecodeLimits& limits = {});
  explicit ArchiveReader(const std::string& path, const DecodeLimits& limits = {});
  ~ArchiveReader();
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) noexcept;

  const ArchiveInfo& info() const;
  Box chunkBox(std::uint64_t chunk) const;
  bool hasChunk(std::uint64_t chunk) const;
  /// The frame of a chunk as it stands in the archive, its header checked.
  Frame frame(std::uint64_t chunk) const;
  /// Its header alone is read.
  FrameInfo inspect(std::uint64_t chunk) const;

  /// Decodes the chunks that the box touches, and no others. `out` gets the values of the box in
  /// the order of memory, and must be as long. Throws InvalidArgument for a box outside the array.
  /// Several chunks are decoded at once, as many as threads and the memory limit allow; the source
  /// is read on the calling thread.
  void read(const Box& box,
            MutableByteView out,
            const DecompressOptions& options = {},
            ArchiveProgress* progress = nullptr) const;
  /// The same with steps between values, in bytes for each axis; x need not be the smallest.
  void read(const Box& box,
            void* out,
            const std::vector<std::ptrdiff_t>& byte_steps,
            const DecompressOptions& options = {},
            ArchiveProgress* progress = nullptr) const;
  /// The parts of a box that stand in different chunks, one `take` for each, with its values in the
  /// order of memory. Chunks are decoded as by read(), so calls may come from several threads at
  /// once and in any order; memory is that of the chunks that are decoded at once.
  void readParts(const Box& box,
                 const std::function<void(const Box& part, ByteView values)>& take,
                 const DecompressOptions& options = {},
                 ArchiveProgress* progress = nullptr) const;
  /// One chunk.
  void readChunk(std::uint64_t chunk,
                 MutableByteView out,
                 const DecompressOptions& options = {}) const;
  /// The same into memory that `provide` gives, which is asked only when the frame can hold that
  /// many bytes: an archive from somewhere may claim any extents.
  void readChunk(std::uint64_t chunk,
                 const std::function<void*(std::size_t n_bytes)>& provide,
                 const DecompressOptions& options = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The next bytes of a stream, up to the length of `out`; 0: it has ended.
using NextBytes = std::function<std::size_t(MutableByteView out)>;
/// A chunk of an archive that comes as a stream.
struct StreamedChunk {
  DataType type;
  Box box;           ///< its place in the array
  AxisValues whole;  ///< extents of the array; of one that grew, the last is as far as was known
  ByteView values;   ///< in the order of memory, valid during the call
};
using TakeChunk = std::function<void(const StreamedChunk& chunk)>;

/// Decodes an archive of chunks from front to back, as it comes from a pipe: one chunk in memory,
/// in the order of the stream. The index at the end confirms what came before: until this returns,
/// chunks were checked by themselves alone. Throws as ArchiveReader does; Error(kUnsupported) for
/// what is no archive of chunks.
ArchiveInfo readArchiveStream(const NextBytes& next,
                              const TakeChunk& take,
                              const DecompressOptions& options = {});

/// What recoverArchive() found.
struct Recovery {
  AxisValues extents;           ///< of the array that could be put together
  AxisValues whole;             ///< as the frames say; the last may be less than it would have been
  std::uint64_t n_chunks = 0;   ///< in the new archive
  std::uint64_t n_dropped = 0;  ///< sound chunks behind the first that is missing
  std::uint64_t n_damaged_bytes = 0;  ///< skipped
};

/// Puts together what is left of an archive that was cut off or damaged, without its index: every
/// frame is found and checked. The new archive has the array up to the first missing part of the
/// slowest axis. Frames are copied as they are. Throws Error(kCorrupt) when nothing is left.
Recovery recoverArchive(const ByteSource& source, ByteSink& sink);
/// Into a file, which is complete or absent. Without `replace` one of that name is an error.
Recovery recoverArchive(const ByteSource& source, const std::string& path, bool replace = true);

/// True when the file or memory begins as an archive of chunks does. It may still be damaged.
bool isChunkedArchive(const ByteSource& source);
/// The same for the first bytes of a stream, 80 or more.
bool beginsChunked(ByteView front);

}  // namespace fz
