#include "archive/chunk_grid.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/require.h"
#include "shared/bits.h"

namespace fz {

namespace {

/// Rows may be so many times as long as the other extents: what is next to each other in a file is
/// then read in one go, and the ratio suffers less than from cutting the others further.
constexpr std::uint64_t kRowPreference = 8;
/// Cut extents are multiples of this where they are long enough, so that tiles and levels of stages
/// fit in.
constexpr std::uint64_t kCutMultiple = 16;

std::uint64_t bytesOf(std::uint64_t n_values, std::size_t value_bytes) {
  std::uint64_t n_bytes = 0;
  FZ_REQUIRE(!__builtin_mul_overflow(n_values, value_bytes, &n_bytes), ErrorCode::kBadSize,
             "archive: {} values of {} bytes are beyond 64 bits", n_values, value_bytes);
  return n_bytes;
}

}  // namespace

std::uint64_t valueCount(const AxisValues& extents) {
  // An extent of 0 makes the whole 0, whatever the others are.
  std::uint64_t n_values = 1;
  for (const std::uint64_t extent : extents) {
    if (extent == 0) {
      return 0;
    }
  }
  for (const std::uint64_t extent : extents) {
    FZ_REQUIRE(!__builtin_mul_overflow(n_values, extent, &n_values), ErrorCode::kBadSize,
               "archive: {} values are beyond 64 bits", extentsText(extents));
  }
  return n_values;
}

ChunkGrid::ChunkGrid(DataType type, AxisValues extents, AxisValues chunk)
    : extents_(std::move(extents)),
      chunk_(std::move(chunk)),
      value_bytes_(isKnown(type) ? getDataTypeSize(type) : 1) {
  FZ_REQUIRE_ARG(extents_.size() <= kMaxAxes, "archive: {} axes; at most {} are possible",
                 extents_.size(), kMaxAxes);
  FZ_REQUIRE_ARG(chunk_.size() == extents_.size(),
                 "archive: chunks of {} axes for an array of {} axes", chunk_.size(),
                 extents_.size());
  for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
    FZ_REQUIRE_ARG(chunk_[axis] >= 1 && chunk_[axis] <= std::max<std::uint64_t>(1, extents_[axis]),
                   "archive: chunks of {} for an array of {}", extentsText(chunk_),
                   extentsText(extents_));
    counts_[axis] = bits::ceilDiv(extents_[axis], chunk_[axis]);
    FZ_REQUIRE(
        !__builtin_mul_overflow(n_chunks_, std::max<std::uint64_t>(1, counts_[axis]), &n_chunks_),
        ErrorCode::kBadSize, "archive: chunks of {} in an array of {} are beyond 64 bits",
        extentsText(chunk_), extentsText(extents_));
  }
  n_array_bytes_ = bytesOf(valueCount(extents_), value_bytes_);
  n_chunk_bytes_ = bytesOf(valueCount(chunk_), value_bytes_);
}

Box ChunkGrid::boxOf(std::uint64_t chunk) const {
  FZ_REQUIRE_ARG(chunk < n_chunks_, "archive: chunk {} of {}", chunk, n_chunks_);
  Box box;
  for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
    const std::uint64_t n = std::max<std::uint64_t>(1, counts_[axis]);
    box.origin.push_back(chunk % n * chunk_[axis]);
    box.extents.push_back(std::min(chunk_[axis], extents_[axis] - box.origin.back()));
    chunk /= n;
  }
  return box;
}

std::uint64_t ChunkGrid::numberOf(const AxisValues& place) const {
  std::uint64_t number = 0;
  for (std::size_t axis = extents_.size(); axis-- > 0;) {
    number = number * std::max<std::uint64_t>(1, counts_[axis]) + place[axis];
  }
  return number;
}

AxisValues chooseChunk(DataType type, const AxisValues& extents, std::uint64_t chunk_bytes) try {
  const std::size_t value_bytes = isKnown(type) ? getDataTypeSize(type) : 1;
  const std::uint64_t wanted = std::max<std::uint64_t>(1, chunk_bytes / value_bytes);
  AxisValues chunk = extents;
  AxisValues n_parts(extents.size(), 1);
  for (std::uint64_t& extent : chunk) {
    extent = std::max<std::uint64_t>(1, extent);
  }
  const auto isLarger = [&] {
    // The product may exceed 64 bits.
    std::uint64_t left = wanted;
    for (const std::uint64_t extent : chunk) {
      left /= extent;
    }
    return left == 0;
  };
  while (isLarger()) {
    // Axes that predictors do not see are cut first, the slowest of them before the others.
    std::size_t axis = chunk.size();
    while (axis > 3 && chunk[axis - 1] == 1) {
      --axis;
    }
    if (axis > 3) {
      --axis;
    } else {
      axis = 0;
      for (std::size_t k = 1; k < std::min<std::size_t>(3, chunk.size()); ++k) {
        const std::uint64_t scale = axis == 0 ? kRowPreference : 1;
        axis = chunk[k] > chunk[axis] / scale ? k : axis;
      }
    }
    if (chunk[axis] == 1) {
      axis = static_cast<std::size_t>(std::max_element(chunk.begin(), chunk.end()) - chunk.begin());
      if (chunk[axis] == 1) {
        break;
      }
    }
    // Equal parts, so that no small rest is left at the end.
    do {
      n_parts[axis] = n_parts[axis] + std::max<std::uint64_t>(1, n_parts[axis] / 8);
      std::uint64_t part = bits::ceilDiv(std::max<std::uint64_t>(1, extents[axis]), n_parts[axis]);
      if (part >= 4 * kCutMultiple) {
        part = bits::roundUp(part, kCutMultiple);
      }
      if (part < chunk[axis]) {
        chunk[axis] = part;
        break;
      }
    } while (chunk[axis] > 1);
  }
  return chunk;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::array<std::size_t, 3> foldedDims(const AxisValues& extents) {
  std::array<std::size_t, 3> dims = {1, 1, 1};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    dims[std::min<std::size_t>(axis, 2)] *= extents[axis];
  }
  return dims;
}

std::string extentsText(const AxisValues& extents) {
  std::string text;
  for (const std::uint64_t extent : extents) {
    text += fmt::format("{}{}", text.empty() ? "" : " x ", extent);
  }
  return text.empty() ? "a single value" : text;
}

std::string boxText(const Box& box) {
  std::string text;
  for (std::size_t axis = box.extents.size(); axis-- > 0;) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", box.origin[axis],
                        box.origin[axis] + box.extents[axis]);
  }
  return fmt::format("[{}]", text);
}

}  // namespace fz
