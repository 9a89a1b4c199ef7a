// Loops over rows, for files compiled once per vector target; the compiler vectorises them.
#if defined(FZ_INTERP_SIMD_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_INTERP_SIMD_ROWS
#undef FZ_INTERP_SIMD_ROWS
#else
#define FZ_INTERP_SIMD_ROWS
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hwy/highway.h>

#include "fused/interp/codec.h"
#include "fused/interp/cpu/grid.h"
#include "fused/interp/stream.h"

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

using std::size_t;

template <bool kHasGaps, class T>
HWY_INLINE std::int32_t fixed(T x, const Scale& scale) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return x;
  } else {
    const double s = scaled(x, scale);
    return !kHasGaps || isCodable(s) ? toFixed(s) : kNoValue;
  }
}

template <bool kHasGaps, size_t kStep, class T>
HWY_INLINE void fixLoop(const T* HWY_RESTRICT in,
                        size_t n,
                        const Scale& scale_in,
                        std::int32_t* HWY_RESTRICT out) {
  const Scale scale = scale_in;
  for (size_t i = 0; i < n; ++i) {
    out[i] = fixed<kHasGaps>(in[kStep * i], scale);
  }
}

/// Fixed point of values `kStep` apart.
template <size_t kStep, class T>
HWY_INLINE void fixValues(
    const T* in, size_t n, bool has_gaps, const Scale* scale, std::int32_t* out) {
  const Scale s = scale == nullptr ? Scale{} : *scale;
  if (has_gaps) {
    fixLoop<true, kStep>(in, n, s, out);
  } else {
    fixLoop<false, kStep>(in, n, s, out);
  }
}

template <bool kHasGaps, class T>
HWY_INLINE void splitLoop(const T* HWY_RESTRICT in,
                          size_t n,
                          const Scale& scale_in,
                          std::int32_t* HWY_RESTRICT even,
                          std::int32_t* HWY_RESTRICT odd) {
  const Scale scale = scale_in;
  for (size_t i = 0; i < n; ++i) {
    even[i] = fixed<kHasGaps>(in[2 * i], scale);
    odd[i] = fixed<kHasGaps>(in[2 * i + 1], scale);
  }
}

/// Even and odd values of a row apart; as many even ones as odd ones, or one or two more.
template <class T>
HWY_INLINE void splitValues(const T* in,
                            size_t n_even,
                            size_t n_odd,
                            bool has_gaps,
                            const Scale* scale,
                            std::int32_t* even,
                            std::int32_t* odd) {
  const Scale s = scale == nullptr ? Scale{} : *scale;
  if (has_gaps) {
    splitLoop<true>(in, n_odd, s, even, odd);
  } else {
    splitLoop<false>(in, n_odd, s, even, odd);
  }
  fixValues<2>(in + 2 * n_odd, n_even - n_odd, has_gaps, scale, even + n_odd);
}

template <Kernel kKernel>
HWY_INLINE void betweenLoop(const std::int32_t* a,
                            const std::int32_t* b,
                            const std::int32_t* c,
                            const std::int32_t* d,
                            size_t n,
                            std::int32_t* HWY_RESTRICT out) {
  for (size_t i = 0; i < n; ++i) {
    out[i] = between<kKernel>(a[i], b[i], c[i], d[i]);
  }
}

/// The points between rows b and c.
HWY_INLINE void betweenRows(Kernel kernel,
                            const std::int32_t* const (&rows)[4],
                            size_t n,
                            std::int32_t* out) {
  if (kernel == Kernel::kCubic) {
    betweenLoop<Kernel::kCubic>(rows[0], rows[1], rows[2], rows[3], n, out);
  } else if (kernel == Kernel::kNatural) {
    betweenLoop<Kernel::kNatural>(rows[0], rows[1], rows[2], rows[3], n, out);
  } else {
    betweenLoop<Kernel::kLinear>(rows[0], rows[1], rows[2], rows[3], n, out);
  }
}
/// The points between b[i] and b[i + 1] of a row that has ghosts.
HWY_INLINE void betweenX(Kernel kernel, const std::int32_t* row, size_t n, std::int32_t* out) {
  const std::int32_t* const rows[4] = {row - 1, row, row + 1, row + 2};
  betweenRows(kernel, rows, n, out);
}

template <class C>
HWY_INLINE std::uint32_t asWord(C code) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(code));
}

/// Two codes next to the point, along one axis, times a weight that has the bin in it.
template <class C>
struct Pair {
  const C* a;
  const C* b;
  std::uint32_t weight;
};

template <class C>
HWY_INLINE void correctPairs(const std::int32_t* HWY_RESTRICT t,
                             const Pair<C>& p,
                             const Pair<C>& q,
                             size_t n,
                             std::int32_t* HWY_RESTRICT out) {
  const Pair<C> u = p;
  const Pair<C> v = q;
  for (size_t i = 0; i < n; ++i) {
    const std::uint32_t sum =
        u.weight * (asWord(u.a[i]) + asWord(u.b[i])) + v.weight * (asWord(v.a[i]) + asWord(v.b[i]));
    out[i] = bits::wrapAdd(t[i], static_cast<std::int32_t>(sum) >> 5);
  }
}

/// Three pairs and three fours around a point of class xyz.
template <class C>
struct Around {
  Pair<C> pairs[3];
  Pair<C> fours[3][2];  ///< each four is two pairs with one weight
};

template <class C>
HWY_INLINE void correctCube(const std::int32_t* HWY_RESTRICT t,
                            const Around<C>& around,
                            size_t n,
                            std::int32_t* HWY_RESTRICT out) {
  const Around<C> r = around;
  const auto two = [](const Pair<C>& p, size_t i)
                       HWY_ATTR { return asWord(p.a[i]) + asWord(p.b[i]); };
  const std::uint32_t w = r.fours[0][0].weight;
  const bool is_even = r.pairs[0].weight == 2 * w && r.pairs[1].weight == 2 * w &&
                       r.pairs[2].weight == 2 * w && r.fours[1][0].weight == w &&
                       r.fours[2][0].weight == w;
  if (is_even) {
    for (size_t i = 0; i < n; ++i) {
      const std::uint32_t pairs = two(r.pairs[0], i) + two(r.pairs[1], i) + two(r.pairs[2], i);
      const std::uint32_t fours = two(r.fours[0][0], i) + two(r.fours[0][1], i) +
                                  two(r.fours[1][0], i) + two(r.fours[1][1], i) +
                                  two(r.fours[2][0], i) + two(r.fours[2][1], i);
      const std::uint32_t sum = w * (2 * pairs + fours);
      out[i] = bits::wrapAdd(t[i], static_cast<std::int32_t>(sum) >> 5);
    }
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    std::uint32_t sum = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      sum += r.pairs[axis].weight * two(r.pairs[axis], i) +
             r.fours[axis][0].weight * (two(r.fours[axis][0], i) + two(r.fours[axis][1], i));
    }
    out[i] = bits::wrapAdd(t[i], static_cast<std::int32_t>(sum) >> 5);
  }
}

template <bool kHasGaps, bool kIsPowerOfTwo, class C>
HWY_INLINE bool quantizeLoop(const std::int32_t* HWY_RESTRICT x,
                             const std::int32_t* HWY_RESTRICT p,
                             size_t n,
                             const Bin& bin_in,
                             C* HWY_RESTRICT codes,
                             std::int32_t* HWY_RESTRICT r) {
  const Bin bin = bin_in;
  std::uint32_t n_clamped = 0;
  for (size_t i = 0; i < n; ++i) {
    std::int32_t wanted = codeOf<kIsPowerOfTwo>(bits::wrapSub(x[i], p[i]), bin);
    if constexpr (kHasGaps) {
      wanted = x[i] == kNoValue ? 0 : wanted;
    }
    const std::int32_t code = clampCode<C>(wanted);
    n_clamped |= static_cast<std::uint32_t>(wanted ^ code);
    codes[i] = static_cast<C>(code);
    r[i] = bits::wrapAdd(p[i], wrapMul(code, bin.units));
  }
  return n_clamped != 0;
}

/// Codes of x, predicted as p, and what they reconstruct. True: some code had to be clamped.
template <class C>
HWY_INLINE bool quantizeRow(const std::int32_t* x,
                            const std::int32_t* p,
                            size_t n,
                            bool has_gaps,
                            const Bin& bin,
                            C* codes,
                            std::int32_t* r) {
  if (bin.factor == 0) {
    return has_gaps ? quantizeLoop<true, true>(x, p, n, bin, codes, r)
                    : quantizeLoop<false, true>(x, p, n, bin, codes, r);
  }
  return has_gaps ? quantizeLoop<true, false>(x, p, n, bin, codes, r)
                  : quantizeLoop<false, false>(x, p, n, bin, codes, r);
}

template <class C>
HWY_INLINE void reconstructRow(const std::int32_t* HWY_RESTRICT p,
                               const C* HWY_RESTRICT codes,
                               size_t n,
                               std::int32_t units,
                               std::int32_t* HWY_RESTRICT r) {
  for (size_t i = 0; i < n; ++i) {
    r[i] = bits::wrapAdd(p[i], wrapMul(static_cast<std::int32_t>(codes[i]), units));
  }
}

template <class From>
HWY_INLINE void addRow(const From* HWY_RESTRICT from,
                       std::size_t n,
                       std::int32_t* HWY_RESTRICT to) {
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = bits::wrapAdd(to[i], static_cast<std::int32_t>(from[i]));
  }
}

template <class T>
HWY_INLINE T result(std::int32_t r, const Scale& scale) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return r;
  } else {
    return fromFixed<T>(r, scale);
  }
}

template <class T>
HWY_INLINE void storeRow(const std::int32_t* HWY_RESTRICT r,
                         size_t n,
                         const Scale& scale_in,
                         T* HWY_RESTRICT out) {
  const Scale scale = scale_in;
  for (size_t i = 0; i < n; ++i) {
    out[i] = result<T>(r[i], scale);
  }
}
/// Even and odd values of a row together.
template <class T>
HWY_INLINE void joinRow(const std::int32_t* HWY_RESTRICT even,
                        const std::int32_t* HWY_RESTRICT odd,
                        size_t n_even,
                        size_t n_odd,
                        const Scale& scale_in,
                        T* HWY_RESTRICT out) {
  const Scale scale = scale_in;
  for (size_t i = 0; i < n_odd; ++i) {
    out[2 * i] = result<T>(even[i], scale);
    out[2 * i + 1] = result<T>(odd[i], scale);
  }
  if (n_odd < n_even) {
    out[2 * n_odd] = result<T>(even[n_odd], scale);
  }
}

template <size_t kStep, class T>
HWY_INLINE bool isWithinLoop(const T* HWY_RESTRICT field,
                             size_t step_in,
                             const std::int32_t* HWY_RESTRICT r,
                             size_t n,
                             const Scale& scale_in,
                             double bound) {
  // Far enough inside for the one rounding of the difference.
  const double safe = fp::mul(bound, 1.0 - 0x1p-40);
  const Scale scale = scale_in;
  const size_t step = kStep == 0 ? step_in : kStep;
  std::uint64_t n_within = 0;
  for (size_t i = 0; i < n; ++i) {
    const double distance = fp::sub(static_cast<double>(field[i * step]),
                                    static_cast<double>(fromFixed<T>(r[i], scale)));
    n_within += static_cast<std::uint64_t>(fp::abs(distance) < safe);
  }
  return n_within == n;
}

/// Marks the values of a row that miss the bound. Places without a value (x) are none.
HWY_INLINE void checkRow(const FieldCheck& check,
                         const Places& places,
                         const std::int32_t* x,
                         const std::int32_t* r,
                         size_t n,
                         const OutlierBits& outliers) {
  const auto look = [&]<class T>(const T* field) HWY_ATTR {
    const T* const first = field + places.first;
    const size_t step = places.step[0];
    const Scale& scale = check.scale;
    if (step == 1   ? isWithinLoop<1>(first, step, r, n, scale, check.bound)
        : step == 2 ? isWithinLoop<2>(first, step, r, n, scale, check.bound)
                    : isWithinLoop<0>(first, step, r, n, scale, check.bound)) {
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      if (x[i] != kNoValue &&
          !fp::withinBound(static_cast<double>(first[i * step]),
                           static_cast<double>(fromFixed<T>(r[i], scale)), check.bound)) {
        outliers.mark(places.at(i, 0, 0));
      }
    }
  };
  if (check.type == DataType::FLOAT32) {
    look(static_cast<const float*>(check.field));
  } else {
    look(static_cast<const double*>(check.field));
  }
}

template <size_t kCodes, class C>
HWY_INLINE void copyBlocks(const C* from, size_t from_step, C* to, size_t to_step, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, kCodes * sizeof(C));
  }
}

/// Codes of a row to their blocks, from a block's first code on, with zeros behind the last.
template <class C>
HWY_INLINE void scatterRow(const C* codes, size_t n, std::uint32_t log2_block, C* out) {
  const size_t block = size_t{1} << log2_block;
  const size_t n_whole = n >> log2_block;
  if (log2_block == 2) {
    copyBlocks<4>(codes, 4, out, kBlockCodes, n_whole);
  } else if (log2_block == 3) {
    copyBlocks<8>(codes, 8, out, kBlockCodes, n_whole);
  } else if (log2_block == 6) {
    std::memcpy(out, codes, n_whole * block * sizeof(C));
  } else {
    for (size_t i = 0; i < n_whole; ++i) {
      std::memcpy(out + i * kBlockCodes, codes + i * block, block * sizeof(C));
    }
  }
  const size_t n_done = n_whole * block;
  if (n_done < n) {
    C* const last = out + n_whole * kBlockCodes;
    std::memcpy(last, codes + n_done, (n - n_done) * sizeof(C));
    std::memset(last + (n - n_done), 0, (n_done + block - n) * sizeof(C));
  }
}
/// The way back; nothing but the codes is read.
template <class C>
HWY_INLINE void gatherRow(const C* in, size_t n, std::uint32_t log2_block, C* codes) {
  const size_t block = size_t{1} << log2_block;
  const size_t n_whole = n >> log2_block;
  if (log2_block == 2) {
    copyBlocks<4>(in, kBlockCodes, codes, 4, n_whole);
  } else if (log2_block == 3) {
    copyBlocks<8>(in, kBlockCodes, codes, 8, n_whole);
  } else if (log2_block == 6) {
    std::memcpy(codes, in, n_whole * block * sizeof(C));
  } else {
    for (size_t i = 0; i < n_whole; ++i) {
      std::memcpy(codes + i * block, in + i * kBlockCodes, block * sizeof(C));
    }
  }
  const size_t n_done = n_whole * block;
  std::memcpy(codes + n_done, in + n_whole * kBlockCodes, (n - n_done) * sizeof(C));
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
