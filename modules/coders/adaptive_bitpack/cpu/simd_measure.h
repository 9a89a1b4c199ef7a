// Sizes of blocks by their metadata, compiled once per target (hence the odd guard). Include after
// hwy/highway.h.
#if defined(FZ_ADAPTIVE_BITPACK_SIMD_MEASURE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_ADAPTIVE_BITPACK_SIMD_MEASURE_H
#undef FZ_ADAPTIVE_BITPACK_SIMD_MEASURE_H
#else
#define FZ_ADAPTIVE_BITPACK_SIMD_MEASURE_H
#endif

#include <cstddef>
#include <cstdint>
#include <hwy/highway.h>

#include "coders/adaptive_bitpack/codec.h"
#include "coders/adaptive_bitpack/cpu/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace fz::adaptive_bitpack::HWY_NAMESPACE {  // NOLINT

template <class T>
HWY_INLINE void measureOneByOne(const std::uint8_t* meta,
                                std::size_t n_blocks,
                                BlockLayout layout,
                                BlocksMeasure& measure) {
  const std::uint32_t row_bytes = layout.planeBytes();
  for (std::size_t b = 0; b < n_blocks; ++b, meta += layout.metaBytes()) {
    if (!isForm<T>(meta, layout)) {
      break;
    }
    measure.payload_bytes += blockCost(getForm(meta, layout), row_bytes);
    ++measure.n_good;
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Sums over whole vectors of metadata, of no use unless is_valid.
struct MetaSums {
  std::size_t n_bytes = 0;
  std::uint64_t n_rows = 0;  ///< planes and signs
  std::uint64_t outlier_bytes = 0;
  bool is_valid = true;
};

template <class T, bool kOutliers>
HWY_INLINE MetaSums sumMeta(const std::uint8_t* meta, std::size_t n_bytes) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint8_t> d;
  const hn::Repartition<std::uint16_t, decltype(d)> d16;
  const hn::Repartition<std::uint64_t, decltype(d)> d64;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<std::uint8_t>());
  const auto one = hn::Set(d, std::uint8_t{1});
  auto n_rows = hn::Zero(d64);
  auto outlier_bytes = hn::Zero(d64);
  auto widest = hn::Zero(d);  // of rates, and of selections in the odd places
  auto unknown = hn::Zero(d16);
  MetaSums sums;
  for (; sums.n_bytes + kLanes <= n_bytes; sums.n_bytes += kLanes) {
    const auto v = hn::LoadU(d, meta + sums.n_bytes);
    widest = hn::Max(widest, v);
    if constexpr (kOutliers) {
      const auto pairs = hn::BitCast(d16, v);
      const auto rate = hn::And(pairs, hn::Set(d16, std::uint16_t{0xFF}));
      const auto sel = hn::ShiftRight<8>(pairs);
      const auto one16 = hn::Set(d16, std::uint16_t{1});
      const auto has_rows = hn::IfThenElseZero(hn::Ne(pairs, hn::Zero(d16)), one16);
      n_rows = hn::Add(n_rows, hn::SumsOf8(hn::BitCast(d, hn::Add(rate, has_rows))));
      const auto n_outlier = hn::ShiftRight<1>(hn::Add(sel, one16));
      outlier_bytes = hn::Add(outlier_bytes, hn::SumsOf8(hn::BitCast(d, n_outlier)));
      const auto is_even = hn::Eq(hn::And(sel, one16), hn::Zero(d16));
      unknown = hn::Or(unknown, hn::IfThenElseZero(is_even, sel));
    } else {
      const auto has_rows = hn::IfThenElseZero(hn::Ne(v, hn::Zero(d)), one);
      n_rows = hn::Add(n_rows, hn::SumsOf8(hn::Add(v, has_rows)));
    }
  }
  constexpr auto kMaxRate = static_cast<std::uint16_t>(kValueBits<T>);
  constexpr auto kMaxSel = static_cast<std::uint16_t>(kOutliers ? 2 * sizeof(T) - 1 : kMaxRate);
  const auto limit =
      hn::BitCast(d, hn::Set(d16, static_cast<std::uint16_t>(kMaxSel << 8 | kMaxRate)));
  sums.is_valid = hn::AllTrue(d, hn::Eq(hn::Max(widest, limit), limit)) &&
                  hn::AllTrue(d16, hn::Eq(unknown, hn::Zero(d16)));
  sums.n_rows = hn::GetLane(hn::SumOfLanes(d64, n_rows));
  sums.outlier_bytes = hn::GetLane(hn::SumOfLanes(d64, outlier_bytes));
  return sums;
}
#endif

template <class T>
BlocksMeasure measureRun(const std::uint8_t* meta, std::size_t n_blocks, BlockLayout layout) {
  BlocksMeasure measure;
#if HWY_TARGET != HWY_SCALAR
  const std::size_t n_bytes = n_blocks * layout.metaBytes();
  const MetaSums sums =
      layout.outlier_selection ? sumMeta<T, true>(meta, n_bytes) : sumMeta<T, false>(meta, n_bytes);
  if (sums.is_valid) {
    measure.payload_bytes = sums.n_rows * layout.planeBytes() + sums.outlier_bytes;
    measure.n_good = sums.n_bytes / layout.metaBytes();
    meta += sums.n_bytes;
    n_blocks -= measure.n_good;
  }
#endif
  measureOneByOne<T>(meta, n_blocks, layout, measure);
  return measure;
}

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
