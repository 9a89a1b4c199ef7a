#include "verify_chunks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <system_error>

#include "archive/chunk_grid.h"
#include "chunked_input.h"
#include "failure.h"
#include "hdf5_io.h"
#include "memory_check.h"
#include "npy.h"
#include "progress.h"

namespace fz::cli {

namespace {

/// Where a value of a box stands in the whole array.
std::size_t indexIn(const AxisValues& whole, const Box& box, std::size_t index) {
  std::size_t at = 0;
  std::size_t step = 1;
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    at += (box.origin[axis] + index % box.extents[axis]) * step;
    index /= box.extents[axis];
    step *= whole[axis];
  }
  return at;
}

void addKept(KeptCount& all, const KeptCount& part) {
  all.n_values += part.n_values;
  all.n_kept += part.n_kept;
}

/// Adds what one chunk showed; means of squares are sums in between.
void addReport(CheckReport& all, const CheckReport& part, const AxisValues& whole, const Box& box) {
  const auto placed = [&](std::size_t index) { return indexIn(whole, box, index); };
  all.n_values += part.n_values;
  if (part.n_violations > 0 &&
      (all.n_violations == 0 || placed(part.first_index) < all.first_index)) {
    all.first_index = placed(part.first_index);
    all.first_original = part.first_original;
    all.first_decoded = part.first_decoded;
  }
  all.n_violations += part.n_violations;
  if (part.stats.max_error > all.stats.max_error) {
    all.stats.max_error = part.stats.max_error;
    all.stats.max_error_index = placed(part.stats.max_error_index);
  }
  if (part.max_relative > all.max_relative) {
    all.max_relative = part.max_relative;
    all.max_relative_index = placed(part.max_relative_index);
  }
  all.stats.mse += part.stats.mse * static_cast<double>(part.n_finite);
  all.n_finite += part.n_finite;
  all.stats.n_special_mismatches += part.stats.n_special_mismatches;
  addKept(all.nan, part.nan);
  addKept(all.infinity, part.infinity);
  addKept(all.negative_zero, part.negative_zero);
  addKept(all.fill, part.fill);
}

void finishStatistics(CheckReport& all, const std::optional<ValueRange>& range) {
  ReconstructionStats& stats = all.stats;
  stats.mse = all.n_finite == 0 ? 0.0 : stats.mse / static_cast<double>(all.n_finite);
  stats.value_range = range ? range->high - range->low : 0.0;
  if (stats.mse == 0.0) {
    stats.psnr = std::numeric_limits<double>::infinity();
  } else if (stats.value_range > 0.0) {
    stats.psnr = 20 * std::log10(stats.value_range) - 10 * std::log10(stats.mse);
    stats.nrmse = std::sqrt(stats.mse) / stats.value_range;
  }
}

}  // namespace

ChunkedInput openOriginal(const std::string& path, const ArchiveInfo& info) {
  FieldRequest request;
  if (!isNpyName(path) && !hdf5Name(path)) {
    request.type = info.type;
    request.extents = info.extents;
    std::error_code error;
    const std::uint64_t n_bytes = std::filesystem::file_size(path, error);
    if (!error && n_bytes != info.original_bytes) {
      throw Failure(ExitCode::kBound, fmt::format("{}: has {} bytes, the archive decodes to {}; is "
                                                  "it the right original?",
                                                  path, n_bytes, info.original_bytes));
    }
  }
  ChunkedInput input = openByParts(path, request);
  if (input.field.type != info.type || input.field.extents != info.extents) {
    throw Failure(ExitCode::kBound,
                  fmt::format("{}: {} {}, the archive holds {} {}; is it the right original?", path,
                              dataTypeToString(input.field.type), dimsText(input.field.extents),
                              dataTypeToString(info.type), dimsText(info.extents)));
  }
  return input;
}

CheckReport checkChunks(const ArchiveReader& reader,
                        const ChunkCheck& check,
                        const CommonOptions& common,
                        Progress& progress) {
  const ArchiveInfo& info = reader.info();
  const ChunkedInput original = openOriginal(check.original, info);
  const std::size_t value_bytes = getDataTypeSize(info.type);
  const bool needs_range = check.request && check.request->mode == ErrorBoundMode::NOA;
  std::vector<double> fill = check.fill.values;
  for (std::uint64_t chunk = 0; chunk < info.n_chunks; ++chunk) {
    for (const double value : fillOf(reader.inspect(chunk))) {
      if (std::find(fill.begin(), fill.end(), value) == fill.end()) {
        fill.push_back(value);
      }
    }
  }
  RangeScan scan(info.type, fill, common.threads);
  std::vector<std::uint8_t> values;
  std::vector<std::uint8_t> decoded;
  const auto forChunks = [&](const char* what, const auto& work) {
    progress.beginBytes(what, info.original_bytes);
    for (std::uint64_t chunk = 0; chunk < info.n_chunks; ++chunk) {
      const Box box = reader.chunkBox(chunk);
      values.resize(valueCount(box.extents) * value_bytes);
      original.read(box, values);
      work(chunk, box);
      progress.add(values.size());
    }
  };
  BoundRequest request = check.request.value_or(BoundRequest{});
  if (needs_range) {
    forChunks("finding the range",
              [&](std::uint64_t /*chunk*/, const Box& /*box*/) { scan.add(values); });
    const ValueRange range = scan.range().value_or(ValueRange{});
    const double width = range.high - range.low;
    request = {ErrorBoundMode::ABS, width > 0.0 ? request.value * width : request.value};
  }
  CheckReport all;
  forChunks("checking", [&](std::uint64_t chunk, const Box& box) {
    const FrameInfo frame = reader.inspect(chunk);
    std::optional<BoundRule> rule =
        check.request ? ruleOfRequest(request, info.type, values, fill) : ruleOfFrame(frame);
    if (!rule) {
      throw Failure(ExitCode::kUsage, "the archive states no bound; give one with -b");
    }
    rule->fill = fill;
    decoded.resize(values.size());
    DecompressOptions how{.limits = limitsBesideResult(common.limits, 2 * values.size()),
                          .backend = parseBackend(common.backend),
                          .threads = common.threads};
    reader.readChunk(chunk, decoded, how);
    if (!needs_range) {
      scan.add(values);
    }
    const CheckReport part = checkValues(info.type, values, decoded, *rule);
    all.rule = *rule;
    addReport(all, part, info.extents, box);
  });
  finishStatistics(all, scan.range());
  return all;
}

}  // namespace fz::cli
