// One block to bit planes and back, of any length, of 32 and of 64 values. Compiled once per target
// (hence the odd guard). Include after hwy/highway.h.
#if defined(FZ_ADAPTIVE_BITPACK_SIMD_BLOCKS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_ADAPTIVE_BITPACK_SIMD_BLOCKS_H
#undef FZ_ADAPTIVE_BITPACK_SIMD_BLOCKS_H
#else
#define FZ_ADAPTIVE_BITPACK_SIMD_BLOCKS_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "coders/adaptive_bitpack/cpu/blocks.h"
#include "coders/adaptive_bitpack/cpu/simd.h"
#include "coders/adaptive_bitpack/cpu/simd_rows.h"

HWY_BEFORE_NAMESPACE();
namespace fz::adaptive_bitpack::HWY_NAMESPACE {  // NOLINT

/// What the decoder may read behind the block it works on.
inline constexpr std::size_t kDecodeSlackBytes = 32;

/// Values of one block, and how many may be read from its first on: more where others follow.
template <class T>
struct BlockValues {
  const T* values;
  std::size_t n_readable;
};

#if HWY_TARGET == HWY_SCALAR

template <class T>
std::uint8_t* encodeAny(BlockValues<T> block,
                        BlockLayout layout,
                        std::uint8_t* meta,
                        std::uint8_t* out) {
  const BlockForm form = blockForm(SerialTeam{}, block.values, layout.block_values, layout);
  putForm(form, layout, meta);
  encodeBlock(SerialTeam{}, block.values, layout.block_values, layout, form, out);
  return out + blockCost(form, layout.planeBytes());
}
template <class T>
std::uint8_t* encode32(BlockValues<T> block,
                       BlockLayout layout,
                       std::uint8_t* meta,
                       std::uint8_t* out) {
  return encodeAny(block, layout, meta, out);
}
template <class T>
void decodeAny(
    const std::uint8_t* in, BlockForm form, BlockLayout layout, T* values, std::size_t /*room*/) {
  decodeBlock(SerialTeam{}, in, form, layout, layout.block_values, values);
}
template <class T>
void decode32(const std::uint8_t* in, BlockForm form, T* values) {
  decodeBlock(SerialTeam{}, in, form, BlockLayout{}, 32, values);
}
template <class T>
bool decode64(const std::uint8_t* /*in*/, BlockForm /*form*/, T* /*values*/) {
  return false;
}

#else

static_assert(kDecodeSlackBytes >= kPortionBytes);

/// Group g of a block: 32 values, or fewer in the last group, and then filled up with zeros.
template <class T>
HWY_INLINE Group<T> loadGroupOf(BlockValues<T> block, std::uint32_t block_values, std::uint32_t g) {
  const std::size_t begin = g * kGroupValues;
  const std::size_t n = block_values - begin;
  if (n >= kGroupValues) {
    return loadGroup(block.values + begin);
  }
  if (block.n_readable - begin >= kGroupValues) {
    Group<T> group = loadGroup(block.values + begin);
    keepFirst(group, n);
    return group;
  }
  alignas(64) T filled[kGroupValues] = {};
  std::memcpy(filled, block.values + begin, n * sizeof(T));
  return loadGroup(filled);
}

/// The four bytes of a group's row, or as many of them as the row has.
HWY_INLINE void storeRow(std::uint8_t* row, std::uint32_t n_bytes, std::uint32_t bits) {
  if (n_bytes >= kGroupPlaneBytes) {
    storeLe<std::uint32_t>(row, bits);
    return;
  }
  for (std::uint32_t k = 0; k < n_bytes; ++k) {
    row[k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
}

/// A block of at most one group, which stays in registers. Rows are written in order and four bytes
/// at a time, so what a short row writes too much the next one corrects.
template <bool kWhole, class T>
HWY_INLINE std::uint8_t* encodeGroup(BlockValues<T> block,
                                     BlockLayout layout,
                                     std::uint8_t* meta,
                                     std::uint8_t* out) {
  Group<T> group = kWhole ? loadGroup(block.values) : loadGroupOf(block, layout.block_values, 0);
  const std::uint32_t row_bytes = kWhole ? kGroupPlaneBytes : layout.planeBytes();
  BlockForm form;
  if (layout.outlier_selection) {
    Group<T> rest = group;
    dropFirst(rest);
    const std::uint32_t first = bits::magnitude(block.values[0]);
    form = chooseForm(first, bits::bitWidth(orOfMagnitudes(rest)), layout);
    if (form.outlier_bytes != 0) {
      storeLe<std::uint32_t>(out, first);
      group = rest;
    }
  } else {
    form.rate = bits::bitWidth(orOfMagnitudes(group));
  }
  putForm(form, layout, meta);
  std::uint8_t* rows = out + form.outlier_bytes;
  storeLe<std::uint32_t>(rows, group.signs);
  planesOf(group, form.rate, [&](std::uint32_t portion, GroupBytes planes) {
    std::uint8_t* to = rows + (1 + 8 * portion) * row_bytes;
    if (row_bytes == kGroupPlaneBytes) {
      storeBytes(planes, to);
      return;
    }
    alignas(32) std::uint8_t bits_of_plane[kPortionBytes];
    storeBytes(planes, bits_of_plane);
    for (std::uint32_t p = 0; p < 8; ++p) {
      std::memcpy(to + p * row_bytes, bits_of_plane + p * kGroupPlaneBytes, kGroupPlaneBytes);
    }
  });
  return out + blockCost(form, row_bytes);
}

template <class T>
HWY_INLINE BlockForm measureBlock(BlockValues<T> block, BlockLayout layout) {
  const std::uint32_t n_groups = bits::ceilDiv(layout.block_values, std::uint32_t{kGroupValues});
  Group<T> group = loadGroupOf(block, layout.block_values, 0);
  dropFirst(group);
  std::uint32_t rest = orOfMagnitudes(group);
  for (std::uint32_t g = 1; g < n_groups; ++g) {
    rest |= orOfMagnitudes(loadGroupOf(block, layout.block_values, g));
  }
  return chooseForm(bits::magnitude(block.values[0]), bits::bitWidth(rest), layout);
}

/// A block of any length.
template <class T>
HWY_INLINE std::uint8_t* encodeGroups(BlockValues<T> block,
                                      BlockLayout layout,
                                      std::uint8_t* meta,
                                      std::uint8_t* out) {
  const BlockForm form = measureBlock(block, layout);
  putForm(form, layout, meta);
  const std::uint32_t row_bytes = layout.planeBytes();
  const std::uint32_t cost = blockCost(form, row_bytes);
  if (cost == 0) {
    return out;
  }
  if (form.outlier_bytes != 0) {
    storeLe<std::uint32_t>(out, bits::magnitude(block.values[0]));
  }
  std::uint8_t* rows = out + form.outlier_bytes;
  for (std::uint32_t at = 0, g = 0; at < row_bytes; at += kGroupPlaneBytes, ++g) {
    Group<T> group = loadGroupOf(block, layout.block_values, g);
    if (g == 0 && form.outlier_bytes != 0) {
      dropFirst(group);
    }
    const std::uint32_t n_bytes = row_bytes - at;
    storeRow(rows + at, n_bytes, group.signs);
    planesOf(group, form.rate, [&](std::uint32_t portion, GroupBytes planes) {
      alignas(32) std::uint32_t bits_of_plane[8];
      storeBytes(planes, reinterpret_cast<std::uint8_t*>(bits_of_plane));
      const std::uint32_t n_planes = std::min(form.rate - 8 * portion, 8u);
      for (std::uint32_t p = 0; p < n_planes; ++p) {
        std::uint8_t* row = rows + (1 + 8 * portion + p) * row_bytes;
        storeRow(row + at, n_bytes, bits_of_plane[p]);
      }
    });
  }
  return out + cost;
}

/// A block of two groups, which stay in registers. Rows are written in portions of eight; what is
/// too much belongs to the next block or to the slack.
template <class T>
HWY_INLINE std::uint8_t* encode64(BlockValues<T> block,
                                  BlockLayout layout,
                                  std::uint8_t* meta,
                                  std::uint8_t* out) {
  Group<T> low = loadGroup(block.values);
  const Group<T> high = loadGroup(block.values + kGroupValues);
  const std::uint32_t bits_of_high = orOfMagnitudes(high);
  BlockForm form;
  if (layout.outlier_selection) {
    Group<T> rest = low;
    dropFirst(rest);
    const std::uint32_t first = bits::magnitude(block.values[0]);
    form = chooseForm(first, bits::bitWidth(orOfMagnitudes(rest) | bits_of_high), layout);
    if (form.outlier_bytes != 0) {
      storeLe<std::uint32_t>(out, first);
      low = rest;
    }
  } else {
    form.rate = bits::bitWidth(orOfMagnitudes(low) | bits_of_high);
  }
  putForm(form, layout, meta);
  constexpr std::size_t kRowBytes = 2 * kGroupPlaneBytes;
#if HWY_MAX_BYTES >= 64
  std::uint8_t* rows = out + form.outlier_bytes;
  storeLe(rows, std::uint64_t{high.signs} << 32 | low.signs);
  storeWidePlanes(low, high, form.rate, rows + kRowBytes);
#else
  alignas(64) std::uint32_t planes[2][8 * sizeof(T)];
  const auto collect = [&](const Group<T>& group, std::uint32_t* to) HWY_ATTR {
    planesOf(group, form.rate, [&](std::uint32_t portion, GroupBytes bytes) HWY_ATTR {
      storeBytes(bytes, reinterpret_cast<std::uint8_t*>(to + 8 * portion));
    });
  };
  collect(low, planes[0]);
  collect(high, planes[1]);
  std::uint8_t* rows = out + form.outlier_bytes;
  const auto row = [](std::uint32_t first, std::uint32_t second)
                       HWY_ATTR { return std::uint64_t{second} << 32 | first; };
  storeLe(rows, row(low.signs, high.signs));
  for (std::uint32_t begin = 0; begin < form.rate; begin += 8) {
    for (std::uint32_t p = begin; p < begin + 8; ++p) {
      storeLe(rows + (1 + p) * kRowBytes, row(planes[0][p], planes[1][p]));
    }
  }
#endif
  return out + blockCost(form, kRowBytes);
}

template <class T>
HWY_INLINE std::uint8_t* encodeAny(BlockValues<T> block,
                                   BlockLayout layout,
                                   std::uint8_t* meta,
                                   std::uint8_t* out) {
  if (layout.block_values == 2 * kGroupValues) {
    return encode64(block, layout, meta, out);
  }
  return layout.block_values <= kGroupValues ? encodeGroup<false>(block, layout, meta, out)
                                             : encodeGroups(block, layout, meta, out);
}
template <class T>
HWY_INLINE std::uint8_t* encode32(BlockValues<T> block,
                                  BlockLayout layout,
                                  std::uint8_t* meta,
                                  std::uint8_t* out) {
  return encodeGroup<true>(block, layout, meta, out);
}

template <class T>
HWY_INLINE void decode32(const std::uint8_t* in, BlockForm form, T* values) {
  const std::uint8_t* rows = in + form.outlier_bytes;
  const std::uint32_t signs = loadLe<std::uint32_t>(rows);
  const auto load = [&](std::uint32_t portion) {
    return loadPlanes(rows + kGroupPlaneBytes + portion * kPortionBytes, form.rate - 8 * portion);
  };
  valuesOf(load, form.rate, signs, values);
  if (form.outlier_bytes != 0) {
    values[0] = applySign<T>(outlierMagnitude(in, form.outlier_bytes), (signs & 1u) != 0);
  }
}

/// A block of two groups; false: this target has no kernel for it.
template <class T>
HWY_INLINE bool decode64([[maybe_unused]] const std::uint8_t* in,
                         [[maybe_unused]] BlockForm form,
                         [[maybe_unused]] T* values) {
#if HWY_MAX_BYTES >= 64
  const std::uint8_t* rows = in + form.outlier_bytes;
  const std::uint64_t signs = loadLe<std::uint64_t>(rows);
  loadWidePlanes(rows + kWideRowBytes, form.rate, signs, values);
  if (form.outlier_bytes != 0) {
    values[0] = applySign<T>(outlierMagnitude(in, form.outlier_bytes), (signs & 1u) != 0);
  }
  return true;
#else
  return false;
#endif
}

/// A block of any length; writes block_values values, and what it likes behind them as far as
/// `room`, counted from the first value, goes.
template <class T>
void decodeAny(
    const std::uint8_t* in, BlockForm form, BlockLayout layout, T* values, std::size_t room) {
  const std::uint32_t row_bytes = layout.planeBytes();
  const std::uint8_t* rows = in + form.outlier_bytes;
  for (std::uint32_t at = 0, begin = 0; at < row_bytes;
       at += kGroupPlaneBytes, begin += kGroupValues) {
    const auto load = [&](std::uint32_t portion) HWY_ATTR {
      return gatherPlanes(rows + (1 + 8 * portion) * row_bytes + at, row_bytes,
                          form.rate - 8 * portion);
    };
    const std::uint32_t signs = loadLe<std::uint32_t>(rows + at);
    const std::uint32_t n = layout.block_values - begin;
    if (room - begin >= kGroupValues) {
      valuesOf(load, form.rate, signs, values + begin);
    } else {
      alignas(64) T filled[kGroupValues];
      valuesOf(load, form.rate, signs, filled);
      std::memcpy(values + begin, filled, n * sizeof(T));
    }
  }
  if (form.outlier_bytes != 0) {
    values[0] = applySign<T>(outlierMagnitude(in, form.outlier_bytes), (rows[0] & 1u) != 0);
  }
}

#endif  // HWY_SCALAR

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
