// Whole blocks of 32, 64 and 128 values on top of simd_pack.h, compiled once per
// target (hence the odd guard), and empty for all but the one that has it.
#if defined(FZ_ADAPTIVE_BITPACK_SIMD_FAST_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_ADAPTIVE_BITPACK_SIMD_FAST_H
#undef FZ_ADAPTIVE_BITPACK_SIMD_FAST_H
#else
#define FZ_ADAPTIVE_BITPACK_SIMD_FAST_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "coders/adaptive_bitpack/codec.h"
#include "coders/adaptive_bitpack/cpu/simd_pack.h"
#include "fz/byte_io.h"
#include "fz/span.h"

#if HWY_TARGET <= HWY_AVX3_DL
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",gfni,lzcnt")
namespace fz::adaptive_bitpack::HWY_NAMESPACE::galois {  // NOLINT

/// Encodes whole blocks; returns where their payload ends. Writes more rows than a block has: what
/// is too much belongs to the next block or to the slack.
template <std::uint32_t kGroups, bool kOutliers, class T>
std::uint8_t* encodeBlocks(const T* values,
                           std::size_t n_blocks,
                           std::uint8_t* meta,
                           std::uint8_t* out) {
  constexpr BlockLayout kLayout{kGroups * kGroupSize, kOutliers};
  constexpr std::uint32_t kRowBytes = 4 * kGroups;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    Magnitudes<T> groups[kGroups];
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      groups[g] = load(values + g * kGroupSize);
    }
    Rows<kGroups> low = rowsOfHalf<0>(groups);
    Rows<kGroups> high;
    std::uint32_t used = usedRows<!kOutliers>(low);
    const bool is_wide = isWide(groups);
    if constexpr (sizeof(T) == 4) {
      if (HWY_UNLIKELY(is_wide)) {
        high = rowsOfHalf<1>(groups);
        used |= usedRows<!kOutliers>(high) << 16;
      }
    }
    BlockForm form{bits::bitWidth(used), 0};
    if constexpr (kOutliers) {
      const std::uint32_t first = bits::magnitude(values[0]);
      form = chooseForm(first, form.rate, kLayout);
      storeLe<std::uint32_t>(out, first);
      dropFirst(low, form.outlier_bytes != 0);
    }
    putForm(form, kLayout, meta);
    std::uint8_t* rows = out + form.outlier_bytes;
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      storeLe<std::uint32_t>(rows + 4 * g, groups[g].signs);
    }
    store(low, rows + kRowBytes);
    if constexpr (sizeof(T) == 4) {
      if (HWY_UNLIKELY(is_wide)) {
        if constexpr (kOutliers) {
          dropFirst(high, form.outlier_bytes != 0);
        }
        store(high, rows + 17 * kRowBytes);
      }
    }
    out += blockCost(form, kRowBytes);
    values += kGroups * kGroupSize;
    meta += kLayout.metaBytes();
  }
  return out;
}

/// What the decoder may read behind a block: signs and a first magnitude where there are none.
inline constexpr std::size_t kReadAheadBytes = 16;

/// Decodes blocks as long as the payload has enough behind them; returns how many, and moves
/// `position`.
template <std::uint32_t kGroups, bool kOutliers, class T>
std::size_t decodeBlocks(const std::uint8_t* meta,
                         ByteView payload,
                         std::size_t n_blocks,
                         T* values,
                         std::size_t* position) {
  constexpr BlockLayout kLayout{kGroups * kGroupSize, kOutliers};
  constexpr std::uint32_t kRowBytes = 4 * kGroups;
  const std::uint8_t* in = payload.data();
  const std::uint8_t* end = in + payload.size();
  std::size_t b = 0;
  for (; b < n_blocks; ++b) {
    const BlockForm form = getForm(meta + b * kLayout.metaBytes(), kLayout);
    const std::size_t cost = blockCost(form, kRowBytes);
    if (static_cast<std::size_t>(end - in) < cost + kReadAheadBytes) {
      break;
    }
    const std::uint8_t* rows = in + form.outlier_bytes;
    const auto present = static_cast<std::uint32_t>((std::uint64_t{1} << form.rate) - 1);
    __m512i low[kGroups];
    __m512i magnitudes[kHalves<T>];
    loadQuads(rows + kRowBytes, present, low);
    if (sizeof(T) == 2 || HWY_LIKELY(form.rate <= 16)) {
      for (std::uint32_t g = 0; g < kGroups; ++g) {
        magnitudesOf(low[g], magnitudes);
        storeSigned(magnitudes, loadLe<std::uint32_t>(rows + 4 * g), values + g * kGroupSize);
      }
    } else if constexpr (sizeof(T) == 4) {
      __m512i high[kGroups];
      loadQuads(rows + 17 * kRowBytes, present >> 16, high);
      for (std::uint32_t g = 0; g < kGroups; ++g) {
        magnitudesOf(low[g], high[g], magnitudes);
        storeSigned(magnitudes, loadLe<std::uint32_t>(rows + 4 * g), values + g * kGroupSize);
      }
    }
    if (kOutliers && form.outlier_bytes != 0) {
      // Signs follow, so that four bytes are always there.
      const std::uint64_t kept = (std::uint64_t{1} << (8 * form.outlier_bytes)) - 1;
      const auto magnitude = static_cast<std::uint32_t>(loadLe<std::uint32_t>(in) & kept);
      values[0] = applySign<T>(magnitude, (rows[0] & 1u) != 0);
    }
    values += kGroups * kGroupSize;
    in += cost;
  }
  *position = static_cast<std::size_t>(in - payload.data());
  return b;
}

/// Whether there are kernels for such blocks on this machine.
inline bool fits(BlockLayout layout) {
  const std::uint32_t n = layout.block_values;
  return (n == 32 || n == 64 || n == 128) && __builtin_cpu_supports("gfni") != 0;
}

/// Calls f with the number of groups and whether there are outliers, as types.
template <class F>
HWY_INLINE auto withLayout(BlockLayout layout, F f) {
  const auto with_groups = [&]<std::uint32_t kGroups>(
                               std::integral_constant<std::uint32_t, kGroups> groups) {
    return layout.outlier_selection ? f(groups, std::true_type()) : f(groups, std::false_type());
  };
  switch (layout.block_values / kGroupSize) {
    case 1:
      return with_groups(std::integral_constant<std::uint32_t, 1>());
    case 2:
      return with_groups(std::integral_constant<std::uint32_t, 2>());
    default:
      return with_groups(std::integral_constant<std::uint32_t, 4>());
  }
}

template <class T>
std::uint8_t* encode(const T* values,
                     std::size_t n_blocks,
                     BlockLayout layout,
                     std::uint8_t* meta,
                     std::uint8_t* out) {
  return withLayout(layout, [&](auto groups, auto has_outliers) {
    return encodeBlocks<groups.value, has_outliers.value>(values, n_blocks, meta, out);
  });
}

template <class T>
std::size_t decode(const std::uint8_t* meta,
                   ByteView payload,
                   std::size_t n_blocks,
                   BlockLayout layout,
                   T* values,
                   std::size_t* position) {
  return withLayout(layout, [&](auto groups, auto has_outliers) {
    return decodeBlocks<groups.value, has_outliers.value>(meta, payload, n_blocks, values,
                                                          position);
  });
}

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE::galois
HWY_POP_ATTRIBUTES
#endif

#endif
