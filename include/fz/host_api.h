#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fz/backend.h"
#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/limits.h"
#include "fz/missing.h"
#include "fz/params.h"
#include "fz/span.h"

/// Arrays in host memory in, owned frames and arrays out: no raw ownership, any backend.
namespace fz {

class Pipeline;
struct RunProgress;

/// Axes that an array can have.
inline constexpr std::size_t kMaxAxes = 8;
/// One number for each axis of an array, the fastest axis first.
using AxisValues = std::vector<std::uint64_t>;

struct CompressOptions {
  /// Name of a shipped preset, or with config_toml a name for messages. "lossless" keeps every bit;
  /// empty: what defaultPreset() says of the mode.
  std::string preset = {};
  /// TOML text of a pipeline; used instead of the preset when not empty.
  std::string config_toml = {};
  /// The bound. A preset other than "lossless" needs it, as any default would be a guess; without
  /// it compress() and its like throw InvalidArgument. Pipelines of config_toml have their own.
  std::optional<double> error_bound = {};
  /// What the bound is relative to; when absent as the preset says.
  std::optional<ErrorBoundMode> mode = {};
  /// x fastest; {0, 1, 1}: one dimension.
  std::array<std::size_t, 3> dims = {0, 1, 1};
  /// All extents, x fastest, of an array of any shape; no axis at all means a single value. The
  /// frame keeps them; predictors see the fastest three axes, and what is beyond as part of the
  /// third. Used instead of dims.
  std::optional<AxisValues> extents = {};
  /// "stage.key" or "key" and the value as text, as in ConfigOverrides.
  std::vector<std::pair<std::string, std::string>> params = {};
  /// Auto: the CPU or a device, whichever is faster for this array on this machine; docs/gpu.md.
  Backend backend = Backend::Auto;
  std::size_t threads = 0;  ///< 0: all
  /// As Pipeline::setMemoryLimit.
  std::size_t max_memory_bytes = 0;
  /// As Pipeline::setProgress.
  RunProgress* progress = nullptr;
  /// As Pipeline::setLosslessFallback: the smaller of a lossy and a lossless frame is kept, and
  /// none is larger than compressBound() says.
  bool lossless_fallback = true;
  /// Values that mean "missing" besides NaN and infinities, such as a _FillValue. All of them come
  /// back bit for bit, and have no part in what the bound means; see docs/missing_values.md.
  std::vector<double> fill = {};
  /// Whether a bound relative to the range is refused (FillValueError) where a value that nobody
  /// declared looks like a fill value and sets the range.
  bool suspect_fill = true;
};

struct DecompressOptions {
  DecodeLimits limits = {};
  Backend backend = Backend::Auto;
  std::size_t threads = 0;
  /// As Pipeline::setProgress.
  RunProgress* progress = nullptr;
};

/// A frame that owns its bytes; copies share them.
class Frame {
 public:
  Frame() = default;
  explicit Frame(std::vector<std::uint8_t> bytes);
  /// Bytes in the memory of `owner`, which lives as long as the frame and its copies.
  Frame(std::shared_ptr<const void> owner, ByteView bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  ByteView bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  /// The file is complete or absent, never partial. Throws Error(kIo).
  void writeToFile(const std::string& path) const;
  static Frame readFromFile(const std::string& path);

 private:
  std::shared_ptr<const void> owner_;
  ByteView bytes_;
};

/// A decoded array that owns its values; copies share them.
class Array {
 public:
  Array() = default;
  Array(DataType type, std::array<std::size_t, 3> dims, std::vector<std::uint8_t> bytes);
  /// Values in the memory of `owner`, which lives as long as the array and its copies.
  Array(DataType type,
        std::array<std::size_t, 3> dims,
        std::shared_ptr<const void> owner,
        ByteView bytes)
      : type_(type), dims_(dims), owner_(std::move(owner)), bytes_(bytes) {}

  DataType type() const { return type_; }
  std::array<std::size_t, 3> dims() const { return dims_; }
  ByteView bytes() const { return bytes_; }
  /// The values. Throws Error(kTypeMismatch) when the array holds another type.
  template <class T>
  std::span<const T> as() const {
    requireType(kDataTypeOf<T>);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  void requireType(DataType type) const;

  DataType type_ = DataType::UNKNOWN;
  std::array<std::size_t, 3> dims_ = {0, 1, 1};
  std::shared_ptr<const void> owner_;
  ByteView bytes_;
};

/// One stored segment.
struct SegmentInfo {
  std::string stage;
  std::string port;
  DataType type;
  std::uint64_t n_bytes;
};

/// One stage of a frame's pipeline.
struct FrameStageInfo {
  std::uint16_t id;
  std::uint16_t version;
  std::string name;
  std::vector<DataType> types;
  /// All settings; those that the frame does not hold (see fz/recorded_params.h) have defaults.
  std::vector<std::pair<std::string, ParamValue>> params;
};

/// Where a frame's array stands in a larger one, see fz/archive.h.
struct PlaceInfo {
  std::uint64_t array_id = 0;  ///< the same in all parts of the larger array
  AxisValues origin;           ///< index of the first value
  AxisValues whole;            ///< extents of the larger array, as far as the writer knew them
};

/// What a frame says about itself; reading it costs the header only.
struct FrameInfo {
  unsigned version_major = 0;
  unsigned version_minor = 0;
  DataType type = DataType::UNKNOWN;
  int ndim = 1;
  std::array<std::size_t, 3> dims = {0, 1, 1};
  /// All axes, x fastest; dims are these as predictors see them.
  AxisValues extents;
  std::optional<PlaceInfo> place;
  std::uint64_t original_bytes = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
  /// What the frame promises for every value. Absent for pipelines without loss, for those whose
  /// encoder was told to let values miss (LinearPolicy::Wrap), and in formats before 3.2.
  std::optional<BoundInfo> bound;
  bool lossless = false;  ///< no stage changes values
  /// Lossless instead of a frame with this bound, which would have been larger.
  bool isFallback() const { return lossless && bound.has_value(); }
  /// Where missing values were taken out before the other stages.
  std::optional<MissingInfo> missing;
  bool has_checksums = false;
  std::uint32_t payload_checksum = 0;
  std::uint32_t header_checksum = 0;
  std::vector<FrameStageInfo> stages;
  std::vector<SegmentInfo> segments;

  std::uint64_t frameBytes() const { return header_bytes + payload_bytes; }
  double ratio() const;
};

/// Compresses an array of float or double. Throws Error, InvalidArgument; FillValueError where a
/// fill value, known or not, sets the range that the bound is relative to.
Frame compress(std::span<const float> values, const CompressOptions& options = {});
Frame compress(std::span<const double> values, const CompressOptions& options = {});
/// The same for raw bytes of a given type.
Frame compress(DataType type, ByteView bytes, const CompressOptions& options = {});

/// The same frame with another shape of its array; itself where it has that. For frames of
/// pipelines that were given dims. Throws Error(kBadSize) where the shape does not hold the values.
Frame withShape(const Frame& frame, const AxisValues& extents);

/// Builds in a new pipeline what compress() with these options runs, for callers who want to keep
/// it. Throws as compress() does.
void configure(Pipeline& pipeline, DataType type, const CompressOptions& options);

/// Memory that compress() of that many bytes is expected to take besides its input, without looking
/// at data; see Pipeline::estimateMemory. Throws as compress() does for wrong options.
std::size_t estimateMemory(DataType type, std::size_t n_bytes, const CompressOptions& options = {});

/// Bytes that no input of this length can exceed when compressed: at most n_bytes +
/// kStoredFrameBytes, unless lossless_fallback is off. Throws as compress() does for wrong options.
std::size_t compressBound(DataType type, std::size_t n_bytes, const CompressOptions& options = {});

/// Decodes any frame. Untrusted input: Error(kCorrupt) or a correct result.
Array decompress(ByteView frame, const DecompressOptions& options = {});
inline Array decompress(const Frame& frame, const DecompressOptions& options = {}) {
  return decompress(frame.bytes(), options);
}

/// Decodes into memory that `provide` gives, see Pipeline::decompressFrame; returns the length.
std::size_t decompressInto(ByteView frame,
                           const std::function<void*(std::size_t n_bytes)>& provide,
                           const DecompressOptions& options = {});

/// compress() and decompress() on a device keep pipelines with their memory for the next call, up
/// to a sixteenth of the device's memory. This gives back what no call is using.
void releaseDeviceMemory();

/// Calls on the host keep long blocks of memory for the next call: with those in use at most about
/// twice what was asked for at some moment before. Memory limits do not count what is kept, and a
/// system that runs short takes it back by itself. This gives back what no call and no result uses.
void releaseHostMemory();

/// Checks the header and describes the frame; the payload is not decoded.
FrameInfo inspect(ByteView frame);
inline FrameInfo inspect(const Frame& frame) {
  return inspect(frame.bytes());
}
/// The same for a file, of which only the header is read.
FrameInfo inspectFile(const std::string& path);

}  // namespace fz
