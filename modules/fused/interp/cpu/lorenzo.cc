// Lorenzo ends: a lattice as bins, and the differences of bins along some axes.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "fused/interp/cpu/args.h"

namespace fz::interp {

namespace {

LorenzoArgs lorenzoArgs(const Core& core, const LorenzoStep& step) {
  LorenzoArgs args;
  args.axes = step.axes;
  args.bin = step.bin;
  args.n = step.n;
  args.array = makeCodeArray(step.n);
  args.code_type = core.code_type;
  if (isTurned(step.n)) {
    args.axes = static_cast<Axes>((step.axes & kX) | ((step.axes & kY) != 0 ? kZ : 0));
    turn(args.n);
    turn(args.array.n);
    turn(args.array.log2);
    turn(args.array.n_blocks);
  }
  return args;
}

/// The bin that Lorenzo expects from those before it.
std::int32_t predictedBin(const LorenzoArgs& args,
                          const std::int32_t* row,
                          std::size_t x,
                          std::uint32_t y,
                          std::uint32_t z) {
  const std::size_t left = has(args.axes, 0) && x > 0 ? 1 : 0;
  const std::size_t up = has(args.axes, 1) && y > 0 ? args.bins.row : 0;
  const std::size_t back = has(args.axes, 2) && z > 0 ? args.bins.plane : 0;
  const std::int32_t* const at = row + x;
  const auto bin = [&](std::size_t distance) {
    return static_cast<std::uint32_t>(*(at - distance));
  };
  std::uint32_t p = 0;
  p += left != 0 ? bin(left) : 0u;
  p += up != 0 ? bin(up) : 0u;
  p += back != 0 ? bin(back) : 0u;
  p -= left != 0 && up != 0 ? bin(left + up) : 0u;
  p -= left != 0 && back != 0 ? bin(left + back) : 0u;
  p -= up != 0 && back != 0 ? bin(up + back) : 0u;
  p += left != 0 && up != 0 && back != 0 ? bin(left + up + back) : 0u;
  return static_cast<std::int32_t>(p);
}

/// Closed loop for rows in which a difference does not fit its code: what is reconstructed follows
/// as fast as codes allow, and is what the next rows are predicted from. In raster order.
template <class TCode>
class LorenzoRepair {
 public:
  LorenzoRepair(const LorenzoArgs& args, const Places& places, const OutlierBits& outliers)
      : a_(args), places_(places), outliers_(outliers) {}

  /// `misfits` has one byte per row: 1 where codeLine gave up; 2 is added where a row differs from
  /// its bins.
  void run(std::span<std::uint8_t> misfits) {
    const auto isOff = [&](std::size_t y, std::size_t z) {
      return (misfits[z * a_.n[1] + y] & 2) != 0;
    };
    const bool has_y = has(a_.axes, 1);
    const bool has_z = has(a_.axes, 2);
    for (std::uint32_t z = 0; z < a_.n[2]; ++z) {
      for (std::uint32_t y = 0; y < a_.n[1]; ++y) {
        std::uint8_t& misfit = misfits[std::size_t{z} * a_.n[1] + y];
        const bool is_wrong = misfit != 0 || (has_y && y > 0 && isOff(y - 1, z)) ||
                              (has_z && z > 0 && isOff(y, z - 1)) ||
                              (has_y && has_z && y > 0 && z > 0 && isOff(y - 1, z - 1));
        if (is_wrong && !codeRow(y, z)) {
          misfit |= 2;
        }
      }
    }
  }

 private:
  /// True: all bins are reconstructed.
  bool codeRow(std::uint32_t y, std::uint32_t z) {
    std::int32_t* const row = a_.bins.at(y, z);
    const std::size_t up = has(a_.axes, 1) && y > 0 ? a_.bins.row : 0;
    const std::size_t back = has(a_.axes, 2) && z > 0 ? a_.bins.plane : 0;
    const auto sum = [&](std::size_t x) {  // of the rows around
      const std::int32_t* const at = row + x;
      std::uint32_t s = 0;
      s += up != 0 ? static_cast<std::uint32_t>(*(at - up)) : 0u;
      s += back != 0 ? static_cast<std::uint32_t>(*(at - back)) : 0u;
      s -= up != 0 && back != 0 ? static_cast<std::uint32_t>(*(at - up - back)) : 0u;
      return s;
    };
    TCode* const codes = static_cast<TCode*>(a_.codes) + a_.array.rowStart(y, z);
    bool is_exact = true;
    for (std::size_t x = 0; x < a_.n[0]; ++x) {
      std::uint32_t predicted = sum(x);
      if (has(a_.axes, 0) && x > 0) {
        predicted += static_cast<std::uint32_t>(row[x - 1]) - sum(x - 1);
      }
      const auto p = static_cast<std::int32_t>(predicted);
      const std::int32_t code = clampCode<TCode>(bits::wrapSub(row[x], p));
      const std::int32_t found = bits::wrapAdd(p, code);
      codes[(x >> a_.array.log2[0]) * kBlockCodes + (x & ((1u << a_.array.log2[0]) - 1))] =
          static_cast<TCode>(code);
      if (found != row[x]) {
        is_exact = false;
        row[x] = found;
        markUnlessGap(x, y, z);
      }
    }
    return is_exact;
  }

  void markUnlessGap(std::size_t x, std::size_t y, std::size_t z) const {
    const Source& s = a_.source;
    std::int32_t fixed = 0;
    fixRow({static_cast<const std::uint8_t*>(s.data) +
                (z * s.plane + y * s.row + x) * getDataTypeSize(s.type),
            s.type, 1, s.has_gaps, s.scale},
           1, &fixed);
    if (fixed != kNoValue) {
      outliers_.mark(places_.at(x, y, z));
    }
  }

  const LorenzoArgs& a_;
  const Places& places_;
  const OutlierBits& outliers_;
};

/// Gives places without a value a bin for which the code is 0: what the bins before say, in raster
/// order; among differences 0, and at the start the first bin that there is.
void fillGaps(const LorenzoArgs& args, bool is_nested) {
  std::int32_t first = 0;
  bool has_first = is_nested;
  for (std::uint32_t row = 0; row < args.n[1] * args.n[2] && !has_first; ++row) {
    const std::int32_t* const values = args.bins.at(row % args.n[1], row / args.n[1]);
    const auto* const found =
        std::find_if(values, values + args.n[0], [](std::int32_t v) { return v != kNoValue; });
    has_first = found != values + args.n[0];
    first = has_first ? *found : 0;
  }
  if (args.bins.data[0] == kNoValue) {
    args.bins.data[0] = first;
  }
  for (std::uint32_t z = 0; z < args.n[2]; ++z) {
    for (std::uint32_t y = 0; y < args.n[1]; ++y) {
      std::int32_t* const row = args.bins.at(y, z);
      for (std::uint32_t x = 0; x < args.n[0]; ++x) {
        if (row[x] == kNoValue) {
          row[x] = is_nested ? 0 : predictedBin(args, row, x, y, z);
        }
      }
    }
  }
}

/// Bins times units, and the test of all values.
void storeBins(const Core& core, const LorenzoArgs& args, const Places& places) {
  forEachPart(core, args.n, 2, [&](const LinePart& part, std::int32_t* memory) {
    std::int32_t* const row = args.bins.at(part.y, part.z) + part.x;
    for (std::size_t i = 0; i < part.n; ++i) {
      row[i] = wrapMul(row[i], args.bin.units);
    }
    if (core.check != nullptr) {
      const Source& s = args.source;
      const std::size_t first = part.z * s.plane + part.y * s.row + part.x;
      fixRow({static_cast<const std::uint8_t*>(s.data) + first * getDataTypeSize(s.type), s.type, 1,
              s.has_gaps, s.scale},
             part.n, memory);
      checkLine(*core.check, {places.at(part.x, part.y, part.z), {places.step[0], 0, 0}},
                {memory, part.n}, row, core.outliers);
    }
  });
}

}  // namespace

void encodeLorenzo(const Core& core,
                   const LorenzoStep& step,
                   const Source& source,
                   void* codes,
                   const Lattice& out) {
  if (step.n[0] == 0 || step.n[1] == 0 || step.n[2] == 0) {
    return;
  }
  const std::size_t mark = core.stack.top();
  LorenzoArgs args = lorenzoArgs(core, step);
  args.source = source;
  args.bins = out.data != nullptr ? out : core.stack.lattice(core.pool, step.n, 0);
  args.codes = codes;
  Places places = step.places;
  if (isTurned(step.n)) {
    std::swap(args.source.row, args.source.plane);
    std::swap(args.bins.row, args.bins.plane);
    turn(places.step);
  }
  clearPadding(args.array, getDataTypeSize(core.code_type), static_cast<std::uint8_t*>(codes));
  forEachPart(core, args.n, 0,
              [&](const LinePart& part, std::int32_t* /*memory*/) { binLine(args, part); });
  if (source.has_gaps) {
    fillGaps(args, step.is_nested);
  }
  const std::size_t n_rows = std::size_t{args.n[1]} * args.n[2];
  const std::span<std::uint8_t> misfits = {
      reinterpret_cast<std::uint8_t*>(core.stack.values(core.pool, n_rows / 4 + 1)), n_rows};
  std::fill(misfits.begin(), misfits.end(), std::uint8_t{0});
  std::atomic<bool> fits = true;
  forEachPart(core, args.n, 2, [&](const LinePart& part, std::int32_t* memory) {
    if (!codeLine(args, part, memory)) {
      std::atomic_ref(misfits[std::size_t{part.z} * args.n[1] + part.y])
          .store(1, std::memory_order_relaxed);
      fits.store(false, std::memory_order_relaxed);
    }
  });
  if (!fits.load(std::memory_order_relaxed)) {
    LorenzoRepair<std::int16_t>(args, places, core.outliers).run(misfits);
  }
  if (out.data != nullptr || core.check != nullptr) {
    storeBins(core, args, places);
  }
  core.stack.popTo(mark);
}

namespace {

/// The only row, in parts: their sums first, so that each knows where it begins.
void decodeRow(const Core& core, const LorenzoArgs& args) {
  const std::size_t n_parts = partCount(args.n[0]);
  std::int32_t* const before = core.stack.values(core.pool, n_parts);
  const bool has_x = has(args.axes, 0) && n_parts > 1;
  std::fill_n(before, n_parts, 0);
  if (has_x) {
    forEachPart(core, args.n, 1, [&](const LinePart& part, std::int32_t* memory) {
      before[part.x / kPartValues] = sumLine(args, part, memory);
    });
  }
  std::int32_t sum = 0;
  for (std::size_t part = 0; has_x && part < n_parts; ++part) {
    sum = bits::wrapAdd(sum, std::exchange(before[part], sum));
  }
  forEachPart(core, args.n, 2, [&](const LinePart& part, std::int32_t* memory) {
    decodeLine(args, part, before[part.x / kPartValues], memory);
  });
}

/// Slabs of planes, one for each thread; what lies before a slab is known from sums of codes.
void decodeSlabs(const Core& core, const LorenzoArgs& args) {
  const std::size_t n_slabs = std::min<std::size_t>(core.executor.threadCount(), args.n[2]);
  const auto n_planes = static_cast<std::uint32_t>(bits::ceilDiv<std::size_t>(args.n[2], n_slabs));
  const std::size_t plane_values = std::size_t{args.n[0]} * args.n[1];
  std::int32_t* const memory = core.stack.values(core.pool, n_slabs * plane_values);
  std::fill_n(memory, n_slabs * plane_values, 0);
  const auto slab = [&](std::size_t i) {
    const auto first = static_cast<std::uint32_t>(std::min<std::size_t>(i * n_planes, args.n[2]));
    return PlaneRange{first, std::min(first + n_planes, args.n[2]), memory + i * plane_values};
  };
  if (has(args.axes, 2) && n_slabs > 1) {
    forEachWithMemory(core, {n_slabs - 1}, args.n[0], [&](std::size_t i, std::int32_t* row) {
      PlaneRange planes = slab(i);
      planes.before = slab(i + 1).before;
      sumPlanes(args, planes, row);
    });
    for (std::size_t i = 2; i < n_slabs; ++i) {
      for (std::size_t k = 0; k < plane_values; ++k) {
        std::int32_t& sum = slab(i).before[k];
        sum = bits::wrapAdd(sum, slab(i - 1).before[k]);
      }
    }
  }
  forEachWithMemory(core, {n_slabs}, 3 * std::size_t{args.n[0]},
                    [&](std::size_t i, std::int32_t* rows) { decodePlanes(args, slab(i), rows); });
}

}  // namespace

void decodeLorenzo(const Core& core,
                   const LorenzoStep& step,
                   const void* codes,
                   const Result& out) {
  if (step.n[0] == 0 || step.n[1] == 0 || step.n[2] == 0) {
    return;
  }
  const std::size_t mark = core.stack.top();
  LorenzoArgs args = lorenzoArgs(core, step);
  args.codes = const_cast<void*>(codes);  // NOLINT: one struct for both directions
  args.result = out;
  if (isTurned(step.n)) {
    std::swap(args.result.row, args.result.plane);
  }
  if (args.n[1] == 1 && args.n[2] == 1) {
    decodeRow(core, args);
  } else {
    decodeSlabs(core, args);
  }
  core.stack.popTo(mark);
}

}  // namespace fz::interp
