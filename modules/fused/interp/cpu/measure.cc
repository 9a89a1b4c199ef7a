// Costs of steps without their codes.
#include "fused/interp/cpu/measure.h"

#include <algorithm>
#include <numeric>

#include "fused/interp/cpu/blocks.h"

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

/// sizeOf() of codes.
HWY_INLINE hn::Vec<SumTag> sizesOf(Vec codes) {
  const SumTag du;
  const Vec zigzag = hn::Xor(hn::Add(codes, codes), hn::BroadcastSignBit(codes));
  const auto least = hn::Min(hn::BitCast(du, zigzag), hn::Set(du, kMostSized));
  return hn::Add(least, hn::ShiftLeft<kCountShift>(hn::Min(least, hn::Set(du, 1u))));
}

/// Adds them to a vector of sums.
HWY_INLINE void addMagnitudes(Vec codes, std::uint32_t* sums) {
  const SumTag du;
  hn::StoreU(hn::Add(hn::LoadU(du, sums), sizesOf(codes)), du, sums);
}

/// The sum of all lanes, which 32 bits hold as a number without sign: SumOfLanes() may add them up
/// with one.
HWY_INLINE std::uint32_t total(hn::Vec<SumTag> sums) {
  const SumTag du;
  std::uint32_t lanes[hn::MaxLanes(du)];
  hn::StoreU(sums, du, lanes);
  return std::accumulate(lanes, lanes + hn::Lanes(du), 0u);
}

// ---- codes

template <class C>
HWY_INLINE Vec loadCodes(const C* codes) {
  const Tag d;
  if constexpr (sizeof(C) == 2) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::int16_t, Tag>(), codes));
  } else {
    return hn::LoadU(d, codes);
  }
}

template <class C>
std::uint64_t costOfCodes(std::span<const C> codes) {
  constexpr std::size_t kPiece = 256;
  const SumTag du;
  std::uint64_t cost = 0;
  std::uint32_t sizes[kPiece];
  const std::size_t n_blocks = codes.size() / kBlockCodes;
  for (std::size_t first = 0; first < n_blocks; first += kPiece) {
    const std::size_t n = std::min(kPiece, n_blocks - first);
    for (std::size_t block = 0; block < n; ++block) {
      const C* const at = codes.data() + (first + block) * kBlockCodes;
      auto sum = hn::Zero(du);
      for (std::size_t i = 0; i < kBlockCodes; i += hn::Lanes(du)) {
        sum = hn::Add(sum, sizesOf(loadCodes(at + i)));
      }
      sizes[block] = total(sum);
    }
    cost += costOfSizes({sizes, n});
  }
  return cost;
}

std::uint64_t costOfShortCodes(std::span<const std::int16_t> codes) {
  return costOfCodes(codes);
}
std::uint64_t costOfWideCodes(std::span<const std::int32_t> codes) {
  return costOfCodes(codes);
}

// ---- rows of blocks

/// The rows of blocks to look at: evenly along y and z, and not the same ones from plane to plane.
HWY_INLINE bool isLookedAt(std::uint32_t y, std::uint32_t z, OneIn one_in) {
  return (y + 3 * z) % one_in == one_in / 2;
}

/// Adds up magnitudes in columns of blocks, for several ways to code an array at once. `begin` gets
/// the first y and z of a row of blocks; `add` a row's y and z, and sums that are `width` apart
/// from way to way, a whole number of vectors.
template <std::size_t kWays, class Begin, class Add>
Look<kWays> sumBlocks(const CodeArray& array,
                      OneIn one_in,
                      BlockRows rows,
                      std::vector<std::uint32_t>& sums,
                      Begin begin,
                      Add add) {
  const std::size_t n_columns = std::size_t{array.n_blocks[0]} << array.log2[0];
  const std::size_t width = bits::roundUp<std::size_t>(n_columns, hn::Lanes(Tag()));
  Look<kWays> look;
  sums.resize(std::max(sums.size(), kWays * width));
  std::uint32_t* const all = sums.data();
  for (std::size_t row = rows.first; row < rows.end; ++row) {
    const auto block_y = static_cast<std::uint32_t>(row % array.n_blocks[1]);
    const auto block_z = static_cast<std::uint32_t>(row / array.n_blocks[1]);
    if (!isLookedAt(block_y, block_z, one_in)) {
      continue;
    }
    const std::uint32_t by = block_y << array.log2[1];
    const std::uint32_t bz = block_z << array.log2[2];
    std::fill_n(all, kWays * width, 0u);
    begin(by, bz);
    for (std::uint32_t z = bz; z < std::min(bz + (1u << array.log2[2]), array.n[2]); ++z) {
      for (std::uint32_t y = by; y < std::min(by + (1u << array.log2[1]), array.n[1]); ++y) {
        add(y, z, all, width);
        ++look.n_rows;
      }
    }
    for (std::size_t way = 0; way < kWays; ++way) {
      look.costs[way] +=
          costOfSums({all + way * width, n_columns}, std::size_t{1} << array.log2[0]);
    }
  }
  return look;
}

// ---- Lorenzo ends

/// Bins of a row, and some numbers behind them.
HWY_INLINE void binRow(const std::int32_t* HWY_RESTRICT x,
                       std::size_t n,
                       const Bin& bin,
                       std::int32_t* HWY_RESTRICT bins) {
  if (bin.factor != 0) {
    for (std::size_t i = 0; i < n; ++i) {
      bins[i] = x[i] == kNoValue ? 0 : codeOf<false>(x[i], bin);
    }
    return;
  }
  const Tag d;
  const Vec half = hn::Set(d, bin.units >> 1);
  const auto shift = static_cast<int>(bin.shift);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const Vec value = hn::MaskedLoad(hn::FirstN(d, n - i), d, x + i);
    const Vec code = hn::ShiftRightSame(hn::Add(value, half), shift);
    hn::StoreU(hn::IfThenElseZero(hn::Ne(value, hn::Set(d, kNoValue)), code), d, bins + i);
  }
}

/// Bins of a row of fixed point; gaps have the bin before them, or after them where there is none.
inline void fillGaps(const std::int32_t* x, std::size_t n, std::int32_t* bins) {
  std::size_t valid = 0;
  while (valid < n && x[valid] == kNoValue) {
    ++valid;
  }
  std::int32_t last = valid < n ? bins[valid] : 0;
  for (std::size_t i = 0; i < n; ++i) {
    last = x[i] == kNoValue ? last : bins[i];
    bins[i] = last;
  }
}

/// Rows of bins: the one looked at, those before it along y and z, and the one before both.
struct RowsBefore {
  const std::int32_t* row;
  const std::int32_t* y;
  const std::int32_t* z;
  const std::int32_t* yz;
};

/// With gaps, those of x have no codes.
template <bool kHasGaps>
HWY_INLINE void addDifferences(const RowsBefore& rows,
                               const std::int32_t* x,
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
    const auto counts = hn::Ne(hn::MaskedLoad(mask, d, x + i), hn::Set(d, kNoValue));
    for (std::size_t set = 0; set < 4; ++set) {
      const Vec both = hn::Sub(here[set], before[set]);
      addMagnitudes(kHasGaps ? hn::IfThenElseZero(counts, here[set]) : here[set],
                    sums + 2 * set * width + i);
      addMagnitudes(kHasGaps ? hn::IfThenElseZero(counts, both) : both,
                    sums + (2 * set + 1) * width + i);
    }
  }
}

/// Bins of the rows of a row of blocks and of those before them; zeros where there are none.
class BinnedRows {
 public:
  BinnedRows(const EndProbe& probe, const CodeArray& array, ProbeMemory& memory)
      : probe_(probe),
        n_y_((std::size_t{1} << array.log2[1]) + 1),
        n_z_((std::size_t{1} << array.log2[2]) + 1),
        stride_(bits::roundUp<std::size_t>(probe.n[0] + 1, hn::Lanes(Tag())) + hn::Lanes(Tag())) {
    const std::size_t n_values = n_y_ * n_z_ * stride_;
    memory.values.resize(std::max(memory.values.size(), n_values));
    rows_ = memory.values.data();
    std::fill_n(rows_, n_values, 0);
  }

  void begin(std::uint32_t by, std::uint32_t bz) {
    first_y_ = by;
    first_z_ = bz;
    for (std::size_t z = 0; z < n_z_ && bz + z <= probe_.n[2]; ++z) {
      for (std::size_t y = 0; y < n_y_ && by + y <= probe_.n[1]; ++y) {
        std::int32_t* const row = rows_ + (z * n_y_ + y) * stride_ + 1;
        if (by + y > 0 && bz + z > 0) {
          const std::size_t at = (bz + z - 1) * std::size_t{probe_.n[1]} + by + y - 1;
          const std::int32_t* const x = probe_.x.data() + at * probe_.n[0];
          binRow(x, probe_.n[0], probe_.bin, row);
          if (probe_.fills_gaps) {
            fillGaps(x, probe_.n[0], row);
          }
        } else {
          std::fill_n(row, probe_.n[0], 0);
        }
      }
    }
  }

  RowsBefore at(std::uint32_t y, std::uint32_t z) const {
    const std::int32_t* const row =
        rows_ + ((z - first_z_ + 1) * n_y_ + (y - first_y_ + 1)) * stride_ + 1;
    const std::size_t plane = n_y_ * stride_;
    return {row, row - stride_, row - plane, row - plane - stride_};
  }

 private:
  const EndProbe& probe_;
  std::size_t n_y_;
  std::size_t n_z_;
  std::size_t stride_;  // with a 0 before each row
  std::int32_t* rows_ = nullptr;
  std::uint32_t first_y_ = 0;
  std::uint32_t first_z_ = 0;
};

Look<8> probeEndsHere(const EndProbe& probe, OneIn one_in, BlockRows part, ProbeMemory& memory) {
  const CodeArray array = makeCodeArray(probe.n);
  BinnedRows rows(probe, array, memory);
  return sumBlocks<8>(
      array, one_in, part, memory.sums,
      [&](std::uint32_t by, std::uint32_t bz) { rows.begin(by, bz); },
      [&](std::uint32_t y, std::uint32_t z, std::uint32_t* sums, std::size_t width) {
        const std::size_t at = (std::size_t{z} * probe.n[1] + y) * probe.n[0];
        if (probe.fills_gaps) {
          addDifferences<true>(rows.at(y, z), probe.x.data() + at, probe.n[0], width, sums);
        } else {
          addDifferences<false>(rows.at(y, z), probe.x.data() + at, probe.n[0], width, sums);
        }
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

Look<kKernels> probeKernelsHere(const KernelProbe& probe,
                                OneIn one_in,
                                BlockRows rows,
                                ProbeMemory& memory) {
  const LevelStep& step = probe.step;
  const Source& source = probe.source;
  const std::size_t axis = probe.axis;
  const Axes axes = step.level.axes;
  const CodeArray array = probe.array();
  const auto along = static_cast<std::ptrdiff_t>(axis == 0   ? 1
                                                 : axis == 1 ? step.base.row
                                                             : step.base.plane);
  const auto fine = [&](std::size_t i, std::size_t of) {
    return has(axes, of) ? 2 * i + (of == axis ? 1 : 0) : i;
  };
  const std::size_t n = array.n[0];
  memory.values.resize(std::max(memory.values.size(), n));
  return sumBlocks<kKernels>(
      array, one_in, rows, memory.sums, [](std::uint32_t /*by*/, std::uint32_t /*bz*/) {},
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

HWY_EXPORT(costOfShortCodes);
HWY_EXPORT(costOfWideCodes);
HWY_EXPORT(probeEndsHere);
HWY_EXPORT(probeKernelsHere);

std::uint64_t blockCost(std::span<const std::int16_t> codes) {
  return HWY_DYNAMIC_DISPATCH(costOfShortCodes)(codes);
}
std::uint64_t blockCost(std::span<const std::int32_t> codes) {
  return HWY_DYNAMIC_DISPATCH(costOfWideCodes)(codes);
}

Look<8> probeEnds(const EndProbe& probe, OneIn one_in, BlockRows rows, ProbeMemory& memory) {
  return HWY_DYNAMIC_DISPATCH(probeEndsHere)(probe, one_in, rows, memory);
}
Look<kKernels> probeKernels(const KernelProbe& probe,
                            OneIn one_in,
                            BlockRows rows,
                            ProbeMemory& memory) {
  return HWY_DYNAMIC_DISPATCH(probeKernelsHere)(probe, one_in, rows, memory);
}

}  // namespace fz::interp
#endif
