// Bounds by what they lead to, for arrays in memory.
#include "fz/target.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "api/missing_values.h"
#include "api/target_search.h"
#include "archive/chunk_grid.h"
#include "backends/cpu/missing.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "pipeline/bound_check.h"
#include "pipeline/fill_check.h"

namespace fz {

namespace {

// Fields above this are tried on a part first.
constexpr std::size_t kWholeBytes = std::size_t{64} << 20;
constexpr std::size_t kPartBytes = std::size_t{16} << 20;

CountedRange rangeOf(DataType type, ByteView values, const std::vector<double>& fill) {
  const auto of = [&]<class T>(T /*type*/) {
    std::vector<T> own;
    for (const double value : fill) {
      addFill(value, own);
    }
    return rangeOfValid(
        std::span(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T)), own);
  };
  const ValidRange range = type == DataType::FLOAT32 ? of(float{}) : of(double{});
  if (range.isEmpty()) {
    return {};
  }
  return {std::min(range.high - range.low, std::numeric_limits<double>::max()),
          std::max(std::fabs(range.low), std::fabs(range.high))};
}

void requireDeclared(DataType type,
                     ByteView values,
                     const ResultTarget& target,
                     const CompressOptions& options) {
  if (!options.suspect_fill) {
    return;
  }
  const auto executor = makeCpuExecutor(options.threads, defaultThreadBackend());
  if (const auto finding = suspectedFill(type, values, options.fill, *executor)) {
    refuseFill(target, *finding);
  }
}

}  // namespace

MemoryTrials::MemoryTrials(DataType type,
                           ByteView values,
                           ResultTarget::Kind kind,
                           const CompressOptions& options)
    : type_(type),
      values_(values),
      kind_(kind),
      options_(withoutBound(options)),
      range_(rangeOf(type, values, options.fill)) {
  if (options_.extents && valueCount(*options_.extents) > 0) {
    options_.dims = foldedDims(*options_.extents);  // parts have other extents
  }
  options_.extents.reset();
}

bool MemoryTrials::hasPart() const {
  return values_.size() > kWholeBytes;
}

double MemoryTrials::reached(double bound, bool on_part) {
  CompressOptions options = options_;
  options.error_bound = bound;
  const ByteView values = on_part ? partOf(options.dims) : values_;
  const Frame frame = compress(type_, values, options);
  return kind_ == ResultTarget::Kind::kPsnr
             ? psnrAfter(values, frame)
             : static_cast<double>(values.size()) /
                   static_cast<double>(std::max<std::size_t>(frame.size(), 1));
}

double MemoryTrials::psnrAfter(ByteView values, const Frame& frame) const {
  DecompressOptions decode;
  decode.backend = options_.backend;
  decode.threads = options_.threads;
  const Array decoded = decompress(frame, decode);
  const CheckReport report =
      checkValues(type_, values, decoded.bytes(), {BoundRule::Kind::kBits, 0.0, options_.fill});
  return psnrOf({report.stats.mse, report.n_finite > 0}, report.stats.value_range);
}

/// Whole planes, or rows, from the middle.
ByteView MemoryTrials::partOf(std::array<std::size_t, 3>& dims) const {
  const std::size_t value_bytes = getDataTypeSize(type_);
  const std::size_t slowest = dims[2] > 1 ? 2 : dims[1] > 1 ? 1 : 0;
  if (dims[0] == 0) {
    dims[0] = values_.size() / value_bytes;
  }
  const std::size_t unit_bytes = values_.size() / std::max<std::size_t>(dims[slowest], 1);
  const std::size_t n =
      std::clamp<std::size_t>(kPartBytes / std::max<std::size_t>(unit_bytes, 1), 1, dims[slowest]);
  const std::size_t first = (dims[slowest] - n) / 2;
  dims[slowest] = n;
  return values_.subspan(first * unit_bytes, n * unit_bytes);
}

std::string_view targetKindName(ResultTarget::Kind kind) {
  return kind == ResultTarget::Kind::kPsnr ? "psnr" : "ratio";
}

std::optional<ResultTarget::Kind> targetKindFromName(std::string_view text) {
  for (const auto kind : {ResultTarget::Kind::kPsnr, ResultTarget::Kind::kRatio}) {
    if (text == targetKindName(kind)) {
      return kind;
    }
  }
  return std::nullopt;
}

TargetError::TargetError(const ResultTarget& target, const TargetBound& best)
    : Error(ErrorCode::kTarget,
            fmt::format("no bound reaches {}:{}; the best was {}:{:.4g}, with abs:{:.4g}",
                        targetKindName(target.kind),
                        target.value,
                        targetKindName(target.kind),
                        best.reached,
                        best.absolute)),
      best_(best) {
}

TargetBound findBound(DataType type,
                      ByteView values,
                      const ResultTarget& target,
                      const CompressOptions& options) try {
  requireTarget(type, target);
  requireDeclared(type, values, target, options);
  MemoryTrials trials(type, values, target.kind, options);
  return searchTarget(type, target, trials);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
