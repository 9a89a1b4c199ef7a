#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "backends/cpu/parallel_for.h"
#include "fused/interp/cpu/grid.h"

/// What the functions that are compiled once per vector target get.
namespace fz::interp {

/// A field or a lattice that is a plane is walked through along z.
inline bool isTurned(const Extents& n) {
  return n[2] == 1 && n[1] > 1;
}
template <class T>
void turn(T& three) {
  std::swap(three[1], three[2]);
}

/// Zeros in blocks that rows and planes of points do not fill.
void clearPadding(const CodeArray& array, std::size_t code_bytes, std::uint8_t* codes);

/// A level, cut into tiles of cells. Where z has one point y takes its place, so that the loop over
/// planes is the long one: all below is in that order.
struct LevelArgs {
  Extents n = {};
  Extents cells = {};
  Axes axes = 0;
  std::array<Kernel, 3> kernels = {};
  /// By class: units of the bin times the weight, twice that for pairs.
  std::array<std::array<std::int32_t, 6>, 8> weights = {};
  Bin bin;
  std::array<CodeArray, 8> classes = {};
  std::array<std::uint64_t, 8> starts = {};  ///< first code of each class
  Lattice base;
  std::array<std::uint32_t, 3> tile = {};  ///< cells
  std::array<std::uint32_t, 3> n_tiles = {};

  Source source;  ///< of an encode
  void* codes = nullptr;
  DataType code_type = DataType::INT16;
  Result result;
  Places places;
  OutlierBits outliers;
  const FieldCheck* check = nullptr;

  std::size_t tileCount() const { return std::size_t{n_tiles[0]} * n_tiles[1] * n_tiles[2]; }
};

/// Working memory of a tile, in values of 32 bits.
std::size_t tileValues(const LevelArgs& args);
void encodeTile(const LevelArgs& args, std::size_t tile, std::int32_t* memory);
void decodeTile(const LevelArgs& args, std::size_t tile, std::int32_t* memory);

/// Rows of a lattice or a field, `step` apart along x, as fixed point.
struct RowArgs {
  const void* in = nullptr;
  DataType type = DataType::INT32;
  std::uint32_t step = 1;
  bool has_gaps = false;
  const Scale* scale = nullptr;
};
void fixRow(const RowArgs& args, std::size_t n, std::int32_t* out);

/// Marks the values of a row that miss the bound. Places without a value (x) are none.
void checkLine(const FieldCheck& check,
               const Places& places,
               std::span<const std::int32_t> x,
               const std::int32_t* r,
               const OutlierBits& outliers);

/// A nested level. Lines and parts of them are counted on the lattice of odd points.
struct NestedArgs {
  std::size_t axis = 0;
  Kernel kernel = Kernel::kCubic;
  Lattice base;        ///< with ghosts along the axis
  Lattice difference;  ///< of the odd points
  Source source;       ///< of an encode; of the fine lattice
  Result result;       ///< fine lattice
  Places places;       ///< of the odd points
  OutlierBits outliers;
  const FieldCheck* check = nullptr;
};
struct LinePart {
  std::uint32_t x, y, z;
  std::uint32_t n;
};
/// Fills in a part of `difference`; memory for n values.
void differLine(const NestedArgs& args, const LinePart& part, std::int32_t* memory);
/// Adds the prediction to the reconstructed differences and stores the odd points, along x with
/// the even ones before them; memory for 2 n values.
void mergeLine(const NestedArgs& args, const LinePart& part, std::int32_t* memory);
/// Stores even points; the part is counted on the base lattice. Along x: one point only.
void copyLine(const NestedArgs& args, const LinePart& part);
/// All of a fine lattice of n points from base and reconstructed differences.
void mergeNested(const Core& core, const NestedArgs& args, const Extents& n);

/// A Lorenzo end. In the order of LevelArgs.
struct LorenzoArgs {
  Axes axes = 0;
  Bin bin;
  Extents n = {};
  CodeArray array;
  Source source;  ///< of an encode
  Lattice bins;   ///< kNoValue: none
  void* codes = nullptr;
  DataType code_type = DataType::INT16;
  Result result;
};
/// Bins of a part of a row.
void binLine(const LorenzoArgs& args, const LinePart& part);
/// Differences of bins as codes; x is a multiple of 64; memory for 2 n + 1 values. False: one does
/// not fit, and the code is of no use.
bool codeLine(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory);
/// Sum of the codes of a part of a row; memory for n values.
std::int32_t sumLine(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory);
/// Reconstructs a part of the only row, `before` being the bin before it; memory for 2 n values.
void decodeLine(const LorenzoArgs& args,
                const LinePart& part,
                std::int32_t before,
                std::int32_t* memory);

/// Planes, and a plane of integers without gaps.
struct PlaneRange {
  std::uint32_t first, end;
  std::int32_t* before;
};
/// Adds to `before` what the planes add to the bins behind them, where z is an axis and `before`
/// comes with zeros; memory for a row.
void sumPlanes(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory);
/// Reconstructs planes; `before` has the bins of the plane before them and gets the last ones'.
/// Memory for 3 rows.
void decodePlanes(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory);

/// Items, and how many of them a thread takes at once.
struct Items {
  std::size_t n_items;
  std::size_t n_at_once = 1;
};
/// f(item, memory) for all items, `n_values` of memory for each thread.
template <class F>
void forEachWithMemory(const Core& core, const Items& items, std::size_t n_values, F f) {
  const std::size_t n_chunks = bits::ceilDiv(items.n_items, items.n_at_once);
  const std::size_t n_workers = std::min(core.executor.threadCount(), n_chunks);
  // Workers must not share lines of cache.
  const std::size_t share = bits::roundUp<std::size_t>(n_values, 64);
  std::int32_t* const memory =
      core.worker_memory.get<std::int32_t>(core.pool, n_workers * share).data();
  std::atomic<std::size_t> next = 0;
  parallelFor(core.executor, n_workers, [&](std::size_t worker) {
    for (std::size_t chunk = next.fetch_add(1, std::memory_order_relaxed); chunk < n_chunks;
         chunk = next.fetch_add(1, std::memory_order_relaxed)) {
      const std::size_t end = std::min(items.n_items, (chunk + 1) * items.n_at_once);
      for (std::size_t item = chunk * items.n_at_once; item < end; ++item) {
        f(item, memory + worker * share);
      }
    }
  });
}

/// Rows are worked on in parts of this length.
inline constexpr std::uint32_t kPartValues = 4096;
inline std::size_t partCount(std::uint32_t n_values) {
  return bits::ceilDiv(n_values, kPartValues);
}
/// Of so many values, for a thread to take at once: about as many as a part.
inline std::size_t rowsAtOnce(std::uint32_t n_values) {
  return std::max<std::size_t>(1, kPartValues / std::max(1u, n_values));
}

/// f(part, memory) for parts of all rows of a lattice; memory for n_rows of them.
template <class F>
void forEachPart(const Core& core, const Extents& n, std::size_t n_rows, F f) {
  const std::size_t n_parts = partCount(n[0]);
  const std::size_t n_values = (std::min(n[0], kPartValues) + 16) * n_rows;
  forEachWithMemory(
      core, {n_parts * n[1] * n[2], rowsAtOnce(n[0])}, n_values,
      [&](std::size_t item, std::int32_t* memory) {
        const auto x = static_cast<std::uint32_t>(item % n_parts * kPartValues);
        const std::size_t row = item / n_parts;
        f(LinePart{x, static_cast<std::uint32_t>(row % n[1]),
                   static_cast<std::uint32_t>(row / n[1]), std::min(kPartValues, n[0] - x)},
          memory);
      });
}

/// f.template operator()<T>() for a source or a result.
template <class F>
void withValueType(DataType type, F f) {
  if (type == DataType::FLOAT32) {
    f.template operator()<float>();
  } else if (type == DataType::FLOAT64) {
    f.template operator()<double>();
  } else {
    f.template operator()<std::int32_t>();
  }
}
template <class F>
void withCodeType(DataType type, F f) {
  if (type == DataType::INT16) {
    f.template operator()<std::int16_t>();
  } else {
    f.template operator()<std::int32_t>();
  }
}

}  // namespace fz::interp
