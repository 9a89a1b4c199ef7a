// Costs of steps without their codes.
#include "fused/interp/cpu/measure.h"

#include <algorithm>

#include "fused/interp/cpu/cost.h"

// Compiled once per vector target. Rows of coarse lattices are short, so their ends are masked.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/measure.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<std::int32_t>;
using Vec = hn::Vec<Tag>;
using SumTag = hn::RebindToUnsigned<Tag>;

/// Adds sizeOf() of codes to a vector of sums.
HWY_INLINE void addMagnitudes(Vec codes, std::uint32_t* sums) {
  const SumTag du;
  const Vec zigzag = hn::Xor(hn::Add(codes, codes), hn::BroadcastSignBit(codes));
  const auto least = hn::Min(hn::BitCast(du, zigzag), hn::Set(du, kMostSized));
  const auto sized = hn::Add(least, hn::ShiftLeft<kCountShift>(hn::Min(least, hn::Set(du, 1u))));
  hn::StoreU(hn::Add(hn::LoadU(du, sums), sized), du, sums);
}

/// Adds up magnitudes in columns of blocks, for several ways to code an array at once. `add` gets
/// a row's y and z, and sums that are `width` apart from way to way, a whole number of vectors.
template <std::size_t kWays, class Add>
std::array<std::uint64_t, kWays> sumBlocks(const CodeArray& array,
                                           std::vector<std::uint32_t>& sums,
                                           Add add) {
  const std::size_t n_columns = std::size_t{array.n_blocks[0]} << array.log2[0];
  const std::size_t width = bits::roundUp<std::size_t>(n_columns, hn::Lanes(Tag()));
  std::array<std::uint64_t, kWays> costs = {};
  sums.resize(std::max(sums.size(), kWays * width));
  std::uint32_t* const all = sums.data();
  for (std::uint32_t bz = 0; bz < array.n[2]; bz += 1u << array.log2[2]) {
    for (std::uint32_t by = 0; by < array.n[1]; by += 1u << array.log2[1]) {
      std::fill_n(all, kWays * width, 0u);
      for (std::uint32_t z = bz; z < std::min(bz + (1u << array.log2[2]), array.n[2]); ++z) {
        for (std::uint32_t y = by; y < std::min(by + (1u << array.log2[1]), array.n[1]); ++y) {
          add(y, z, all, width);
        }
      }
      for (std::size_t way = 0; way < kWays; ++way) {
        costs[way] += costOfSums({all + way * width, n_columns}, std::size_t{1} << array.log2[0]);
      }
    }
  }
  return costs;
}

// ---- Lorenzo ends

/// Bins of a row, with a 0 before them.
template <bool kIsPowerOfTwo>
HWY_INLINE void binRow(const std::int32_t* HWY_RESTRICT x,
                       std::size_t n,
                       const Bin& bin_in,
                       std::int32_t* HWY_RESTRICT bins) {
  const Bin bin = bin_in;
  bins[-1] = 0;
  for (std::size_t i = 0; i < n; ++i) {
    bins[i] = x[i] == kNoValue ? 0 : codeOf<kIsPowerOfTwo>(x[i], bin);
  }
}

/// Rows of bins: the one looked at, those before it along y and z, and the one before both.
struct RowsBefore {
  const std::int32_t* row;
  const std::int32_t* y;
  const std::int32_t* z;
  const std::int32_t* yz;
};

HWY_INLINE void addDifferences(const RowsBefore& rows,
                               std::size_t n,
                               std::size_t width,
                               std::uint32_t* sums) {
  const Tag d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto mask = hn::FirstN(d, n - i);
    // Differences along no axis, y, z and both, of the points from a place on.
    const auto differences = [&](std::size_t back, Vec(&by)[4]) HWY_ATTR {
      const Vec a = hn::MaskedLoad(mask, d, rows.row + i - back);
      const Vec b = hn::MaskedLoad(mask, d, rows.y + i - back);
      const Vec c = hn::MaskedLoad(mask, d, rows.z + i - back);
      const Vec e = hn::MaskedLoad(mask, d, rows.yz + i - back);
      by[0] = a;
      by[1] = hn::Sub(a, b);
      by[2] = hn::Sub(a, c);
      by[3] = hn::Sub(by[1], hn::Sub(c, e));
    };
    Vec here[4];
    Vec before[4];
    differences(0, here);
    differences(1, before);
    for (std::size_t set = 0; set < 4; ++set) {
      addMagnitudes(here[set], sums + 2 * set * width + i);
      addMagnitudes(hn::Sub(here[set], before[set]), sums + (2 * set + 1) * width + i);
    }
  }
}

std::array<std::uint64_t, 8> probeEndsHere(const EndProbe& probe,
                                           std::span<std::int32_t> r,
                                           ProbeMemory& memory) {
  const std::size_t n = probe.n[0];
  const std::size_t n_rows = std::size_t{probe.n[1]} * probe.n[2];
  const std::size_t stride = n + 1;
  memory.values.resize(std::max(memory.values.size(), (n_rows + 1) * stride));
  std::int32_t* const none = memory.values.data() + 1;  // a row of zeros
  std::fill_n(none - 1, stride, 0);
  std::int32_t* const bins = none + stride;
  for (std::size_t row = 0; row < n_rows; ++row) {
    if (probe.bin.factor == 0) {
      binRow<true>(probe.x.data() + row * n, n, probe.bin, bins + row * stride);
    } else {
      binRow<false>(probe.x.data() + row * n, n, probe.bin, bins + row * stride);
    }
    for (std::size_t i = 0; i < n; ++i) {
      r[row * n + i] = wrapMul(bins[row * stride + i], probe.bin.units);
    }
  }
  return sumBlocks<8>(
      makeCodeArray(probe.n), memory.sums,
      [&](std::uint32_t y, std::uint32_t z, std::uint32_t* sums, std::size_t width) {
        const std::size_t plane = stride * probe.n[1];
        const std::int32_t* const row = bins + z * plane + y * stride;
        addDifferences({row, y > 0 ? row - stride : none, z > 0 ? row - plane : none,
                        y > 0 && z > 0 ? row - plane - stride : none},
                       n, width, sums);
      });
}

// ---- kernels

template <Kernel kKernel>
HWY_INLINE Vec betweenVectors(Vec t, Vec bend) {
  if constexpr (kKernel == Kernel::kLinear) {
    return hn::ShiftRight<1>(t);
  } else if constexpr (kKernel == Kernel::kCubic) {
    return hn::ShiftRight<1>(hn::Add(t, hn::ShiftRight<3>(bend)));
  } else {
    const Vec five = hn::Add(bend, hn::ShiftLeft<2>(bend));
    return hn::ShiftRight<1>(hn::Add(t, hn::ShiftRight<5>(five)));
  }
}

/// The points x between b and c, `step` apart, by all kernels; bins are powers of two.
HWY_INLINE void addKernels(const std::int32_t* b,
                           std::ptrdiff_t step,
                           std::span<const std::int32_t> x,
                           const Bin& bin,
                           std::size_t width,
                           std::uint32_t* sums) {
  const Tag d;
  const Vec half = hn::Set(d, bin.units >> 1);
  const auto shift = static_cast<int>(bin.shift);
  for (std::size_t i = 0; i < x.size(); i += hn::Lanes(d)) {
    const auto mask = hn::FirstN(d, x.size() - i);
    const auto load = [&](std::ptrdiff_t steps) HWY_ATTR {
      return hn::MaskedLoad(mask, d, b + static_cast<std::ptrdiff_t>(i) + steps * step);
    };
    const Vec value = hn::MaskedLoad(mask, d, x.data() + i);
    const Vec t = hn::Add(hn::Add(load(0), load(1)), hn::Set(d, 1));
    const Vec bend = hn::Sub(hn::Sub(t, load(-1)), load(2));
    const auto counts = hn::And(mask, hn::Ne(value, hn::Set(d, kNoValue)));
    const Vec moved = hn::Add(value, half);
    const auto add = [&](Vec p, std::size_t kernel) HWY_ATTR {
      const Vec code = hn::ShiftRightSame(hn::Sub(moved, p), shift);
      addMagnitudes(hn::IfThenElseZero(counts, code), sums + kernel * width + i);
    };
    add(betweenVectors<Kernel::kLinear>(t, bend), 0);
    add(betweenVectors<Kernel::kCubic>(t, bend), 1);
    add(betweenVectors<Kernel::kNatural>(t, bend), 2);
  }
}

/// The same for any bin.
HWY_INLINE void addKernelsSlowly(const std::int32_t* b,
                                 std::ptrdiff_t step,
                                 std::span<const std::int32_t> x,
                                 const Bin& bin,
                                 std::size_t width,
                                 std::uint32_t* sums) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t kernel = 0; kernel < kKernels && x[i] != kNoValue; ++kernel) {
      const std::int32_t* const at = b + i;
      const std::int32_t p =
          between(static_cast<Kernel>(kernel), at[-step], at[0], at[step], at[2 * step]);
      const std::int32_t code = codeOf<false>(bits::wrapSub(x[i], p), bin);
      const std::uint32_t zigzag =
          (static_cast<std::uint32_t>(code) << 1) ^ static_cast<std::uint32_t>(code >> 31);
      sums[kernel * width + i] += sizeOf(zigzag);
    }
  }
}

std::array<std::uint64_t, kKernels> probeKernelsHere(const LevelStep& step,
                                                     const Source& source,
                                                     std::size_t axis,
                                                     ProbeMemory& memory) {
  const Axes axes = step.level.axes;
  const CodeArray array = makeCodeArray(pointsOf(step.n, axes, static_cast<Axes>(1u << axis)));
  const auto along = static_cast<std::ptrdiff_t>(axis == 0   ? 1
                                                 : axis == 1 ? step.base.row
                                                             : step.base.plane);
  const auto fine = [&](std::size_t i, std::size_t of) {
    return has(axes, of) ? 2 * i + (of == axis ? 1 : 0) : i;
  };
  const std::size_t n = array.n[0];
  memory.values.resize(std::max(memory.values.size(), n));
  return sumBlocks<kKernels>(
      array, memory.sums,
      [&](std::uint32_t y, std::uint32_t z, std::uint32_t* sums, std::size_t width) {
        const std::int32_t* x = static_cast<const std::int32_t*>(source.data) +
                                fine(z, 2) * source.plane + fine(y, 1) * source.row + fine(0, 0);
        if (has(axes, 0)) {
          for (std::size_t i = 0; i < n; ++i) {
            memory.values[i] = x[2 * i];
          }
          x = memory.values.data();
        }
        const std::int32_t* const b = step.base.at(y, z);
        if (step.bin.factor == 0) {
          addKernels(b, along, {x, n}, step.bin, width, sums);
        } else {
          addKernelsSlowly(b, along, {x, n}, step.bin, width, sums);
        }
      });
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(probeEndsHere);
HWY_EXPORT(probeKernelsHere);

std::array<std::uint64_t, 8> probeEnds(const EndProbe& probe,
                                       std::span<std::int32_t> r,
                                       ProbeMemory& memory) {
  return HWY_DYNAMIC_DISPATCH(probeEndsHere)(probe, r, memory);
}
std::array<std::uint64_t, kKernels> probeKernels(const LevelStep& step,
                                                 const Source& source,
                                                 std::size_t axis,
                                                 ProbeMemory& memory) {
  return HWY_DYNAMIC_DISPATCH(probeKernelsHere)(step, source, axis, memory);
}

}  // namespace fz::interp
#endif
