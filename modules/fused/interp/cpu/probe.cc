// Costs of steps without their codes.
#include "fused/interp/cpu/probe.h"

#include <algorithm>

#include "fused/interp/cpu/cost.h"

// Compiled once per vector target; the plain loops are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/probe.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

/// Zigzag, but no more than 64 of them can add up to in 32 bits.
HWY_INLINE std::uint32_t magnitude(std::int32_t code) {
  constexpr std::uint32_t kMost = 1u << 25;
  const std::uint32_t u =
      (static_cast<std::uint32_t>(code) << 1) ^ static_cast<std::uint32_t>(code >> 31);
  return u < kMost ? u : kMost;
}

/// Adds up magnitudes in columns of blocks, for several ways to code an array at once. `add` gets
/// a row's y and z, and one place per x and way.
template <std::size_t kWays, class Add>
std::array<std::uint64_t, kWays> sumBlocks(const CodeArray& array,
                                           std::vector<std::uint32_t>& sums,
                                           Add add) {
  const std::size_t width = std::size_t{array.n_blocks[0]} << array.log2[0];
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
        costs[way] += costOfSums({all + way * width, width}, std::size_t{1} << array.log2[0]);
      }
    }
  }
  return costs;
}

// ---- Lorenzo ends

template <bool kIsPowerOfTwo>
HWY_INLINE void binLoop(const std::int32_t* HWY_RESTRICT x,
                        std::size_t n,
                        const Bin& bin_in,
                        std::int32_t* HWY_RESTRICT bins) {
  const Bin bin = bin_in;
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
                               std::uint32_t* HWY_RESTRICT sums) {
  const std::int32_t* HWY_RESTRICT a = rows.row;
  const std::int32_t* HWY_RESTRICT b = rows.y;
  const std::int32_t* HWY_RESTRICT c = rows.z;
  const std::int32_t* HWY_RESTRICT d = rows.yz;
  using bits::wrapAdd;
  using bits::wrapSub;
  const auto add = [&](std::size_t i, std::int32_t a0, std::int32_t b0, std::int32_t c0,
                       std::int32_t d0) HWY_ATTR {
    const std::int32_t y = wrapSub(a[i], b[i]);
    const std::int32_t z = wrapSub(a[i], c[i]);
    const std::int32_t yz = wrapSub(y, wrapSub(c[i], d[i]));
    const std::int32_t y0 = wrapSub(a0, b0);
    sums[i] += magnitude(a[i]);
    sums[width + i] += magnitude(wrapSub(a[i], a0));
    sums[2 * width + i] += magnitude(y);
    sums[3 * width + i] += magnitude(wrapSub(y, y0));
    sums[4 * width + i] += magnitude(z);
    sums[5 * width + i] += magnitude(wrapSub(z, wrapSub(a0, c0)));
    sums[6 * width + i] += magnitude(yz);
    sums[7 * width + i] += magnitude(wrapSub(yz, wrapSub(y0, wrapSub(c0, d0))));
  };
  add(0, 0, 0, 0, 0);
  for (std::size_t i = 1; i < n; ++i) {
    add(i, a[i - 1], b[i - 1], c[i - 1], d[i - 1]);
  }
}

std::array<std::uint64_t, 8> probeEndsHere(const EndProbe& probe,
                                           std::span<std::int32_t> r,
                                           std::vector<std::uint32_t>& sums) {
  const std::size_t n_values = probe.x.size();
  std::int32_t* const bins = r.data();
  if (probe.bin.factor == 0) {
    binLoop<true>(probe.x.data(), n_values, probe.bin, bins);
  } else {
    binLoop<false>(probe.x.data(), n_values, probe.bin, bins);
  }
  const std::size_t n_row = probe.n[0];
  const std::size_t n_plane = n_row * probe.n[1];
  const std::vector<std::int32_t> zeros(n_row);
  const auto costs = sumBlocks<8>(
      makeCodeArray(probe.n), sums,
      [&](std::uint32_t y, std::uint32_t z, std::uint32_t* all, std::size_t width) {
        const std::int32_t* const row = bins + z * n_plane + y * n_row;
        const std::int32_t* const none = zeros.data();
        addDifferences({row, y > 0 ? row - n_row : none, z > 0 ? row - n_plane : none,
                        y > 0 && z > 0 ? row - n_plane - n_row : none},
                       n_row, width, all);
      });
  for (std::size_t i = 0; i < n_values; ++i) {
    bins[i] = wrapMul(bins[i], probe.bin.units);
  }
  return costs;
}

// ---- kernels

/// Points between b and c, with all kernels.
template <std::size_t kStep, bool kIsPowerOfTwo>
HWY_INLINE void addKernels(const std::int32_t* between_b,
                           std::ptrdiff_t step,
                           const std::int32_t* x,
                           std::size_t n,
                           const Bin& bin_in,
                           std::size_t width,
                           std::uint32_t* HWY_RESTRICT sums) {
  const std::int32_t* HWY_RESTRICT a = between_b - step;
  const std::int32_t* HWY_RESTRICT b = between_b;
  const std::int32_t* HWY_RESTRICT c = between_b + step;
  const std::int32_t* HWY_RESTRICT d = between_b + 2 * step;
  const Bin bin = bin_in;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t value = x[kStep * i];
    const auto sized = [&](std::int32_t p) HWY_ATTR {
      const std::uint32_t u = magnitude(codeOf<kIsPowerOfTwo>(bits::wrapSub(value, p), bin));
      return value == kNoValue ? 0 : u;
    };
    sums[i] += sized(between<Kernel::kLinear>(a[i], b[i], c[i], d[i]));
    sums[width + i] += sized(between<Kernel::kCubic>(a[i], b[i], c[i], d[i]));
    sums[2 * width + i] += sized(between<Kernel::kNatural>(a[i], b[i], c[i], d[i]));
  }
}

template <std::size_t kStep, bool kIsPowerOfTwo>
std::array<std::uint64_t, kKernels> kernelCosts(const LevelStep& step,
                                                const Source& source,
                                                std::size_t axis,
                                                std::vector<std::uint32_t>& sums) {
  const Axes axes = step.level.axes;
  const auto odd = static_cast<Axes>(1u << axis);
  const CodeArray array = makeCodeArray(pointsOf(step.n, axes, odd));
  const auto along = static_cast<std::ptrdiff_t>(axis == 0   ? 1
                                                 : axis == 1 ? step.base.row
                                                             : step.base.plane);
  const auto fine = [&](std::size_t i, std::size_t of) {
    return has(axes, of) ? 2 * i + (of == axis ? 1 : 0) : i;
  };
  return sumBlocks<kKernels>(
      array, sums, [&](std::uint32_t y, std::uint32_t z, std::uint32_t* all, std::size_t width) {
        const std::int32_t* const x = static_cast<const std::int32_t*>(source.data) +
                                      fine(z, 2) * source.plane + fine(y, 1) * source.row +
                                      fine(0, 0);
        addKernels<kStep, kIsPowerOfTwo>(step.base.at(y, z), along, x, array.n[0], step.bin, width,
                                         all);
      });
}

std::array<std::uint64_t, kKernels> probeKernelsHere(const LevelStep& step,
                                                     const Source& source,
                                                     std::size_t axis,
                                                     std::vector<std::uint32_t>& sums) {
  if (step.bin.factor == 0) {
    return has(step.level.axes, 0) ? kernelCosts<2, true>(step, source, axis, sums)
                                   : kernelCosts<1, true>(step, source, axis, sums);
  }
  return has(step.level.axes, 0) ? kernelCosts<2, false>(step, source, axis, sums)
                                 : kernelCosts<1, false>(step, source, axis, sums);
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(probeEndsHere);
HWY_EXPORT(probeKernelsHere);

std::array<std::uint64_t, 8> probeEnds(const EndProbe& probe,
                                       std::span<std::int32_t> r,
                                       std::vector<std::uint32_t>& sums) {
  return HWY_DYNAMIC_DISPATCH(probeEndsHere)(probe, r, sums);
}
std::array<std::uint64_t, kKernels> probeKernels(const LevelStep& step,
                                                 const Source& source,
                                                 std::size_t axis,
                                                 std::vector<std::uint32_t>& sums) {
  return HWY_DYNAMIC_DISPATCH(probeKernelsHere)(step, source, axis, sums);
}

}  // namespace fz::interp
#endif
