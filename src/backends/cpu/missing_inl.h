// What the vector loops that look for missing values share; included once per vector target.
#if defined(FZ_MISSING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_MISSING_INL
#undef FZ_MISSING_INL
#else
#define FZ_MISSING_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <hwy/highway.h>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;

/// Which values are missing. `fill` has n_fill numbers, or kFills where that is not kAnyFills.
constexpr std::size_t kAnyFills = ~std::size_t{0};
template <std::size_t kFills, class D, class V, class T>
HWY_INLINE auto isMissing(D d, V v, const T* fill, std::size_t n_fill) {
  // As integers, nothing that is finite has more bits than the largest number.
  const hn::RebindToSigned<D> di;
  const auto largest = hn::BitCast(di, hn::Set(d, std::numeric_limits<T>::max()));
  auto missing = hn::RebindMask(d, hn::Gt(hn::BitCast(di, hn::Abs(v)), largest));
  for (std::size_t k = 0; k < (kFills == kAnyFills ? n_fill : kFills); ++k) {
    missing = hn::Or(missing, hn::Eq(v, hn::Set(d, fill[k])));
  }
  return missing;
}

/// f(i, v, missing) for the vectors of 64 values. Returns the word of the missing ones.
template <std::size_t kFills, class T, class F>
HWY_INLINE std::uint64_t forMissingOf64(const T* HWY_RESTRICT values,
                                        const T* fill,
                                        std::size_t n_fill,
                                        F f) {
  const hn::ScalableTag<T> d;
  const std::size_t n_lanes = hn::Lanes(d);
  std::uint8_t bytes[16] = {};  // StoreMaskBits may write eight whatever the vector length
  auto any = hn::FirstN(d, 0);
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < 64; at += n_lanes) {
    const auto v = hn::LoadU(d, values + at);
    const auto missing = isMissing<kFills>(d, v, fill, n_fill);
    f(at, v, missing);
    any = hn::Or(any, missing);
    if (n_lanes >= 8) {
      hn::StoreMaskBits(d, missing, bytes + at / 8);
      continue;
    }
    hn::StoreMaskBits(d, missing, bytes);
    word |= (std::uint64_t{bytes[0]} & ((std::uint64_t{1} << n_lanes) - 1)) << at;
  }
  // Most words: reading what was just stored in pieces would take longer than all of the above.
  if (n_lanes >= 8 && !hn::AllFalse(d, any)) {
    std::memcpy(&word, bytes, sizeof(word));
  }
  return word;
}

/// f(i, mask) for the vectors of 64 values, with a mask of the word's ones.
template <class D, class F>
HWY_INLINE void forMasks(D d, std::uint64_t word, F f) {
  const std::size_t n_lanes = hn::Lanes(d);
  std::uint8_t bytes[16] = {};  // LoadMaskBits may read eight whatever the vector length
  std::memcpy(bytes, &word, 8);
  for (std::size_t i = 0; i < 64; i += n_lanes) {
    if (n_lanes >= 8) {
      f(i, hn::LoadMaskBits(d, bytes + i / 8));
    } else {
      const std::uint64_t shifted = word >> i;
      std::memcpy(bytes, &shifted, 8);
      f(i, hn::LoadMaskBits(d, bytes));
    }
  }
}

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
