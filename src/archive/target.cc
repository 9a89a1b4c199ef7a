// Bounds by what they lead to, for arrays that become archives of chunks.
#include "fz/target.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <optional>
#include <vector>

#include "api/target_search.h"
#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "core/require.h"

namespace fz {

namespace {

constexpr std::uint64_t kSampleBytes = std::uint64_t{16} << 20;

using Read = std::function<void(const Box& box, MutableByteView values)>;

/// The writer counts what it writes.
class NoSink : public ByteSink {
 public:
  void write(ByteView /*bytes*/) override {}
};

/// The array is read for every trial, chunk by chunk.
class ArchiveTrials : public TargetTrials {
 public:
  ArchiveTrials(DataType type,
                const ArchiveOptions& options,
                const ResultTarget& target,
                const Read& read)
      : type_(type), kind_(target.kind), options_(options), read_(read) {
    options_.compress = withoutBound(options.compress);
    options_.verify = kind_ == ResultTarget::Kind::kPsnr;
    options_.range.reset();
    scan(target);
    readPart();
  }

  CountedRange range() const override { return range_; }
  bool hasPart() const override { return part_.size() < n_bytes_; }

  double reached(double bound, bool on_part) override {
    if (on_part) {
      CompressOptions options = options_.compress;
      options.extents = part_extents_;
      return MemoryTrials(type_, part_, kind_, options).reached(bound, false);
    }
    ArchiveOptions options = options_;
    options.compress.error_bound = bound;
    NoSink sink;
    ArchiveWriter writer(type_, options, sink);
    writer.putAll(read_);
    const auto n_archive = static_cast<double>(std::max<std::uint64_t>(1, writer.finish()));
    return kind_ == ResultTarget::Kind::kRatio
               ? static_cast<double>(n_bytes_) / n_archive
               : psnrOf({writer.meanSquaredError(), true}, range_.width);
  }

 private:
  std::vector<std::uint8_t> valuesOf(const Box& box) const {
    std::vector<std::uint8_t> values(valueCount(box.extents) * getDataTypeSize(type_));
    read_(box, values);
    return values;
  }

  /// A box of about kSampleBytes in the middle of the array.
  void readPart() {
    const AxisValues& extents = options_.extents;
    part_extents_ = chooseChunk(type_, extents, kSampleBytes);
    Box box{AxisValues(extents.size(), 0), part_extents_};
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      box.extents[axis] = part_extents_[axis] = std::min(part_extents_[axis], extents[axis]);
      box.origin[axis] = (extents[axis] - part_extents_[axis]) / 2;
    }
    part_ = valuesOf(box);
  }

  /// The range of all values.
  void scan(const ResultTarget& target) {
    RangeScan ends(type_, options_.compress.fill, options_.compress.threads);
    const AxisValues piece = chooseChunk(type_, options_.extents, kSampleBytes);
    const ChunkGrid grid(type_, options_.extents, piece);
    n_bytes_ = grid.arrayBytes();
    for (std::uint64_t k = 0; k < grid.count(); ++k) {
      ends.add(valuesOf(grid.boxOf(k)));
    }
    if (options_.compress.suspect_fill) {
      try {
        ends.requireWithoutFill(1.0);
      } catch (const FillValueError& error) {
        refuseFill(target, error.finding());
      }
    }
    if (const std::optional<ValueRange> found = ends.range()) {
      range_ = {std::min(found->high - found->low, std::numeric_limits<double>::max()),
                std::max(std::fabs(found->low), std::fabs(found->high))};
    }
  }

  DataType type_;
  ResultTarget::Kind kind_;
  ArchiveOptions options_;
  const Read& read_;
  CountedRange range_;
  std::uint64_t n_bytes_ = 0;
  std::vector<std::uint8_t> part_;  // from the middle
  AxisValues part_extents_;
};

}  // namespace

TargetBound findBound(DataType type,
                      const ArchiveOptions& options,
                      const ResultTarget& target,
                      const std::function<void(const Box& box, MutableByteView values)>& read) try {
  requireTarget(type, target);
  FZ_REQUIRE_ARG(
      options.extents.empty() || options.extents.back() != 0,
      "findBound: the slowest extent is 0, as of an array that grows; give the extents of "
      "the whole array");
  ArchiveTrials trials(type, options, target, read);
  return searchTarget(type, target, trials);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

TargetBound findBound(DataType type,
                      ByteView values,
                      const ResultTarget& target,
                      const ArchiveOptions& options) {
  requireTarget(type, target);
  const std::size_t value_bytes = getDataTypeSize(type);
  FZ_REQUIRE(values.size() == valueCount(options.extents) * value_bytes, ErrorCode::kBadSize,
             "findBound: {} bytes for an array of {} values", values.size(),
             extentsText(options.extents));
  const ByteSteps steps = denseSteps(options.extents, value_bytes);
  return findBound(type, options, target, [&](const Box& box, MutableByteView out) {
    std::size_t offset = 0;
    for (std::size_t axis = 0; axis < box.origin.size(); ++axis) {
      offset += static_cast<std::size_t>(steps[axis]) * box.origin[axis];
    }
    copyValues(out.data(), denseSteps(box.extents, value_bytes), values.data() + offset, steps,
               box.extents, value_bytes);
  });
}

}  // namespace fz
