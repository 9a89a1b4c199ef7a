#include "fused/interp/cpu/grid.h"

#include <atomic>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "fused/interp/cpu/args.h"

namespace fz::interp {

Source sourceOf(const Lattice& lattice, bool has_gaps) {
  return {lattice.data, DataType::INT32, lattice.row, lattice.plane, has_gaps, nullptr};
}

Result resultOf(const Lattice& lattice) {
  return {lattice.data, DataType::INT32, lattice.row, lattice.plane, {}};
}

void OutlierBits::mark(std::uint64_t index) const {
  if (words != nullptr) {
    std::atomic_ref(words[index / 64])
        .fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_relaxed);
  }
}

std::int32_t* ScratchStack::values(MemoryPool* pool, std::size_t n) {
  if (top_ == slots_.size()) {
    slots_.emplace_back();
  }
  return slots_[top_++].get<std::int32_t>(pool, n).data();
}

Lattice ScratchStack::lattice(MemoryPool* pool, const Extents& n, Axes ghosts) {
  return latticeIn(values(pool, latticeValues(n, ghosts)), n, ghosts);
}

namespace {

std::size_t roomFor(Axes ghosts, std::size_t axis) {
  return has(ghosts, axis) ? 3 : 0;
}

}  // namespace

std::size_t latticeValues(const Extents& n, Axes ghosts) {
  return (n[0] + roomFor(ghosts, 0)) * (n[1] + roomFor(ghosts, 1)) * (n[2] + roomFor(ghosts, 2));
}

Lattice latticeIn(std::int32_t* memory, const Extents& n, Axes ghosts) {
  const auto before = [&](std::size_t axis) -> std::size_t { return has(ghosts, axis) ? 1 : 0; };
  Lattice made;
  made.n = n;
  made.row = n[0] + roomFor(ghosts, 0);
  made.plane = made.row * (n[1] + roomFor(ghosts, 1));
  made.data = memory + before(2) * made.plane + before(1) * made.row + before(0);
  return made;
}

void fillGhosts(const Core& core, const Lattice& base, Axes axes, const Extents& n_fine) {
  const auto isOdd = [&](std::size_t axis) { return n_fine[axis] % 2 != 0; };
  const std::ptrdiff_t x_first = has(axes, 0) ? -1 : 0;
  const std::ptrdiff_t x_end = base.n[0] + (has(axes, 0) ? 2 : 0);
  parallelFor(core.executor, base.n[2], [&](std::size_t z) {
    for (std::uint32_t y = 0; has(axes, 0) && y < base.n[1]; ++y) {
      setGhosts(base.at(y, z), 1, base.n[0], isOdd(0));
    }
    for (std::ptrdiff_t x = x_first; has(axes, 1) && x < x_end; ++x) {
      setGhosts(base.at(0, z) + x, static_cast<std::ptrdiff_t>(base.row), base.n[1], isOdd(1));
    }
  });
  if (has(axes, 2)) {
    const std::size_t y_before = has(axes, 1) ? 1 : 0;
    parallelFor(core.executor, base.n[1] + 3 * y_before, [&](std::size_t row) {
      std::int32_t* const line = base.at(0, 0) + static_cast<std::ptrdiff_t>(row * base.row) -
                                 static_cast<std::ptrdiff_t>(y_before * base.row);
      for (std::ptrdiff_t x = x_first; x < x_end; ++x) {
        setGhosts(line + x, static_cast<std::ptrdiff_t>(base.plane), base.n[2], isOdd(2));
      }
    });
  }
}

void pickEven(
    const Core& core, const Source& source, const Extents& n, Axes axes, const Lattice& out) {
  const Extents half = halved(n, axes);
  const std::size_t n_bytes = getDataTypeSize(source.type);
  parallelFor(core.executor, std::size_t{half[1]} * half[2], [&](std::size_t row) {
    const std::size_t y = row % half[1];
    const std::size_t z = row / half[1];
    const std::size_t from =
        z * (has(axes, 2) ? 2 : 1) * source.plane + y * (has(axes, 1) ? 2 : 1) * source.row;
    fixRow({static_cast<const std::uint8_t*>(source.data) + from * n_bytes, source.type,
            has(axes, 0) ? 2u : 1u, source.has_gaps, source.scale},
           half[0], out.at(y, z));
  });
}

void clearPadding(const CodeArray& array, std::size_t code_bytes, std::uint8_t* codes) {
  const std::size_t block_bytes = kBlockCodes * code_bytes;
  const auto isWhole = [&](std::size_t axis) {
    return array.n[axis] % (1u << array.log2[axis]) == 0;
  };
  for (std::uint32_t z = 0; z < array.n_blocks[2]; ++z) {
    const bool is_last = z + 1 == array.n_blocks[2] && !isWhole(2);
    for (std::uint32_t y = 0; y < array.n_blocks[1]; ++y) {
      if (is_last || (y + 1 == array.n_blocks[1] && !isWhole(1))) {
        const std::size_t first =
            (std::size_t{z} * array.n_blocks[1] + y) * array.n_blocks[0] * block_bytes;
        std::memset(codes + first, 0, array.n_blocks[0] * block_bytes);
      }
    }
  }
}

// ---- levels

namespace {

void chooseTiles(LevelArgs& args, std::size_t n_threads) {
  std::array<std::uint32_t, 3> unit = {1, 1, 1};
  for (const Axes odd : kClasses) {
    for (std::size_t axis = 0; axis < 3 && (odd & ~args.axes) == 0; ++axis) {
      unit[axis] = std::max(unit[axis], 1u << args.classes[odd].log2[axis]);
    }
  }
  // Four planes of predictions and two of codes stay in the second cache.
  constexpr std::uint32_t kPlaneCells = 4096;
  constexpr std::uint32_t kMinRows = 8;
  constexpr std::uint32_t kMinPlanes = 16;
  constexpr std::uint32_t kFewRows = 16;  // where threads would have nothing to do else
  const bool is_plane = args.cells[1] == 1;
  args.tile[0] = std::min(args.cells[0], is_plane ? kPlaneCells / 2 : kPlaneCells / kMinRows);
  args.tile[1] = std::min(args.cells[1], std::max(kMinRows, kPlaneCells / args.tile[0]));
  args.tile[2] = args.cells[2];
  const std::size_t n_columns = std::size_t{bits::ceilDiv(args.cells[0], args.tile[0])} *
                                bits::ceilDiv(args.cells[1], args.tile[1]);
  if (n_threads > 1) {
    const auto n_slabs = static_cast<std::uint32_t>(
        std::min<std::size_t>(bits::ceilDiv<std::size_t>(4 * n_threads, n_columns), args.cells[2]));
    args.tile[2] =
        std::min(args.cells[2], std::max(kMinPlanes, bits::ceilDiv(args.cells[2], n_slabs)));
    if (n_columns * bits::ceilDiv(args.cells[2], args.tile[2]) < n_threads) {
      args.tile[1] = std::min(args.tile[1], kFewRows);
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    args.tile[axis] = bits::roundUp(args.tile[axis], unit[axis]);
    args.n_tiles[axis] = bits::ceilDiv(args.cells[axis], args.tile[axis]);
  }
}

LevelArgs levelArgs(const Core& core, const LevelStep& step) {
  LevelArgs args;
  const bool is_turned = isTurned(step.n);
  const auto turned = [&](Axes axes) {
    return static_cast<Axes>(is_turned && (axes & kY) != 0 ? (axes & ~kY) | kZ : axes);
  };
  args.n = step.n;
  args.cells = halved(step.n, step.level.axes);
  args.axes = turned(step.level.axes);
  args.kernels = step.level.kernels;
  args.bin = step.bin;
  args.base = step.base;
  args.places = step.places;
  args.code_type = core.code_type;
  args.outliers = core.outliers;
  args.check = core.check;
  std::uint64_t start = 0;
  for (const Axes odd : kClasses) {
    if ((odd & ~step.level.axes) != 0) {
      continue;
    }
    CodeArray array = makeCodeArray(pointsOf(step.n, step.level.axes, odd));
    args.starts[turned(odd)] = start;
    start += array.codes();
    if (is_turned) {
      turn(array.n);
      turn(array.log2);
      turn(array.n_blocks);
    }
    args.classes[turned(odd)] = array;
  }
  for (std::size_t pair = 0; pair < 3; ++pair) {
    const Axes odd = static_cast<Axes>(kXyz & ~(1u << (2 - pair)));  // xy, xz, yz
    for (std::size_t i = 0; i < 2; ++i) {
      args.weights[turned(odd)][i] = 2 * step.bin.units * kPairSets[step.level.pair_sets[pair]][i];
    }
    if (is_turned) {
      break;
    }
  }
  for (std::size_t i = 0; i < 6; ++i) {
    args.weights[kXyz][i] = (i < 3 ? 2 : 1) * step.bin.units * kCubeSets[step.level.cube_set][i];
  }
  if (is_turned) {
    turn(args.n);
    turn(args.cells);
    turn(args.kernels);
    turn(args.places.step);
    std::swap(args.base.row, args.base.plane);
  }
  chooseTiles(args, core.executor.threadCount());
  return args;
}

}  // namespace

void encodeLevel(const Core& core,
                 const LevelStep& step,
                 const Source& source,
                 void* codes,
                 const Lattice& fine) {
  LevelArgs args = levelArgs(core, step);
  args.source = source;
  args.codes = codes;
  args.result = resultOf(fine);
  if (isTurned(step.n)) {
    std::swap(args.source.row, args.source.plane);
    std::swap(args.result.row, args.result.plane);
  }
  const std::size_t code_bytes = getDataTypeSize(core.code_type);
  for (const Axes odd : kClasses) {
    if ((odd & ~args.axes) == 0) {
      clearPadding(args.classes[odd], code_bytes,
                   static_cast<std::uint8_t*>(codes) + args.starts[odd] * code_bytes);
    }
  }
  forEachWithMemory(
      core, {args.tileCount()}, tileValues(args),
      [&](std::size_t tile, std::int32_t* memory) { encodeTile(args, tile, memory); });
}

void decodeLevel(const Core& core, const LevelStep& step, const void* codes, const Result& fine) {
  LevelArgs args = levelArgs(core, step);
  args.codes = const_cast<void*>(codes);  // NOLINT: one struct for both directions
  args.result = fine;
  if (isTurned(step.n)) {
    std::swap(args.result.row, args.result.plane);
  }
  forEachWithMemory(
      core, {args.tileCount()}, tileValues(args),
      [&](std::size_t tile, std::int32_t* memory) { decodeTile(args, tile, memory); });
}

}  // namespace fz::interp
