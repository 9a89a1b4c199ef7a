#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shared/bits.h"
#include "shared/host_device.h"
#include "shared/team.h"

/// The bytes of the AdaptiveBitpack stream, block by block; SPEC.md has them in words. Everything
/// here works on one block, so that a fused kernel can call it on a block it holds.
namespace fz::adaptive_bitpack {

inline constexpr std::uint32_t kMaxBlockValues = 1024;

template <class T>
inline constexpr std::uint32_t kValueBits = 8 * static_cast<std::uint32_t>(sizeof(T));

/// What holds for every block of a stream.
struct BlockLayout {
  std::uint32_t block_values = 32;
  bool outlier_selection = false;

  /// Bytes of the sign bitmap and of each bit plane.
  FZ_HD std::uint32_t planeBytes() const { return bits::ceilDiv(block_values, 8u); }
  /// Metadata bytes of one block.
  FZ_HD std::uint32_t metaBytes() const { return outlier_selection ? 2u : 1u; }
};

/// How one block is stored.
struct BlockForm {
  std::uint32_t rate = 0;           ///< number of bit planes
  std::uint32_t outlier_bytes = 0;  ///< bytes of the separate first magnitude; 0 in the plain form

  FZ_HD bool operator==(const BlockForm& other) const {
    return rate == other.rate && outlier_bytes == other.outlier_bytes;
  }
};

/// Payload bytes of a block. The outlier form keeps its sign bitmap even without planes.
FZ_HD std::uint32_t blockCost(BlockForm form, std::uint32_t plane_bytes) {
  if (form.outlier_bytes == 0) {
    return form.rate == 0 ? 0u : plane_bytes * (1u + form.rate);
  }
  return plane_bytes * (1u + form.rate) + form.outlier_bytes;
}

/// Payload bytes that no block can exceed: the outlier form is taken only when it is smaller.
template <class T>
FZ_HD std::uint32_t maxBlockCost(std::uint32_t plane_bytes) {
  return plane_bytes * (1u + kValueBits<T>);
}

/// The cheaper form of a block whose first magnitude is `first` and whose others need rest_bits
/// bits; the plain one when they cost the same.
FZ_HD BlockForm chooseForm(std::uint32_t first, std::uint32_t rest_bits, BlockLayout layout) {
  const std::uint32_t first_bits = bits::bitWidth(first);
  const BlockForm plain{first_bits > rest_bits ? first_bits : rest_bits, 0};
  if (!layout.outlier_selection || first == 0) {
    return plain;
  }
  const BlockForm outlier{rest_bits, bits::ceilDiv(first_bits, 8u)};
  const std::uint32_t plane_bytes = layout.planeBytes();
  return blockCost(plain, plane_bytes) <= blockCost(outlier, plane_bytes) ? plain : outlier;
}

/// Bits of the largest magnitude of n values.
template <class T, class Team>
FZ_HD std::uint32_t blockRate(Team team, const T* values, std::uint32_t n) {
  return team.max(n, [=](std::uint32_t i) {
    return bits::bitWidth(static_cast<std::uint32_t>(bits::magnitude(values[i])));
  });
}

/// Form of a block that has n values, 1 <= n <= block_values; the others count as 0.
template <class T, class Team>
FZ_HD BlockForm blockForm(Team team, const T* values, std::uint32_t n, BlockLayout layout) {
  return chooseForm(bits::magnitude(values[0]), blockRate(team, values + 1, n - 1), layout);
}

/// Writes the metadata of one block, metaBytes() bytes.
FZ_HD void putForm(BlockForm form, BlockLayout layout, std::uint8_t* meta) {
  meta[0] = static_cast<std::uint8_t>(form.rate);
  if (layout.outlier_selection) {
    meta[1] = form.outlier_bytes == 0
                  ? std::uint8_t{0}
                  : static_cast<std::uint8_t>(1u | (form.outlier_bytes - 1u) << 1);
  }
}

/// Reads the metadata of one block. Trusts nothing: see isForm.
FZ_HD BlockForm getForm(const std::uint8_t* meta, BlockLayout layout) {
  const std::uint32_t sel = layout.outlier_selection ? meta[1] : 0u;
  return {meta[0], (sel & 1u) == 0 ? 0u : 1u + (sel >> 1 & 3u)};
}

/// Whether these metadata bytes are ones an encoder of T can have written.
template <class T>
FZ_HD bool isForm(const std::uint8_t* meta, BlockLayout layout) {
  const std::uint32_t sel = layout.outlier_selection ? meta[1] : 0u;
  const bool sel_is_known = sel == 0 || ((sel & 1u) == 1u && sel < 2u * sizeof(T));
  return meta[0] <= kValueBits<T> && sel_is_known;
}

/// Bits `bit` of the magnitudes of values 8k .. 8k+7, value 8k in the lowest.
template <class T>
FZ_HD std::uint8_t gatherPlaneByte(
    const T* values, std::uint32_t n, std::uint32_t first, std::uint32_t k, std::uint32_t bit) {
  std::uint32_t byte = 0;
  for (std::uint32_t j = 0; j < 8; ++j) {
    const std::uint32_t i = 8 * k + j;
    if (i >= first && i < n) {
      byte |= (static_cast<std::uint32_t>(bits::magnitude(values[i])) >> bit & 1u) << j;
    }
  }
  return static_cast<std::uint8_t>(byte);
}

template <class T>
FZ_HD std::uint8_t gatherSignByte(const T* values, std::uint32_t n, std::uint32_t k) {
  std::uint32_t byte = 0;
  for (std::uint32_t j = 0; j < 8; ++j) {
    const std::uint32_t i = 8 * k + j;
    byte |= (i < n && values[i] < 0 ? 1u : 0u) << j;
  }
  return static_cast<std::uint8_t>(byte);
}

/// Writes the payload of a block that has n values, blockCost bytes. Every byte is one item of the
/// team, so no two workers share a byte.
template <class T, class Team>
FZ_HD void encodeBlock(Team team,
                       const T* values,
                       std::uint32_t n,
                       BlockLayout layout,
                       BlockForm form,
                       std::uint8_t* out) {
  const std::uint32_t plane_bytes = layout.planeBytes();
  const std::uint32_t outlier_bytes = form.outlier_bytes;
  team.each(blockCost(form, plane_bytes), [=](std::uint32_t at) {
    if (at < outlier_bytes) {
      const std::uint32_t first = bits::magnitude(values[0]);
      out[at] = static_cast<std::uint8_t>(first >> (8 * at));
      return;
    }
    const std::uint32_t row = (at - outlier_bytes) / plane_bytes;
    const std::uint32_t k = (at - outlier_bytes) % plane_bytes;
    out[at] = row == 0 ? gatherSignByte(values, n, k)
                       : gatherPlaneByte(values, n, outlier_bytes == 0 ? 0u : 1u, k, row - 1);
  });
}

/// -magnitude or magnitude, modulo 2^W: a magnitude beyond T wraps, and minus zero is zero.
template <class T>
FZ_HD T applySign(std::uint32_t magnitude, bool negative) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(negative ? 0u - magnitude : magnitude));
}

/// Magnitude of value 0 in the outlier form.
FZ_HD std::uint32_t outlierMagnitude(const std::uint8_t* in, std::uint32_t outlier_bytes) {
  std::uint32_t magnitude = 0;
  for (std::uint32_t k = 0; k < outlier_bytes; ++k) {
    magnitude |= static_cast<std::uint32_t>(in[k]) << (8 * k);
  }
  return magnitude;
}

/// Reads n values of a block whose metadata passed isForm; `in` has blockCost bytes.
template <class T, class Team>
FZ_HD void decodeBlock(Team team,
                       const std::uint8_t* in,
                       BlockForm form,
                       BlockLayout layout,
                       std::uint32_t n,
                       T* values) {
  const std::uint32_t plane_bytes = layout.planeBytes();
  const std::uint8_t* signs = in + form.outlier_bytes;
  team.each(n, [=](std::uint32_t i) {
    if (form.rate == 0 && form.outlier_bytes == 0) {
      values[i] = 0;
      return;
    }
    std::uint32_t magnitude = 0;
    for (std::uint32_t p = 0; p < form.rate; ++p) {
      const std::uint32_t byte = signs[(1 + p) * plane_bytes + i / 8];
      magnitude |= (byte >> (i % 8) & 1u) << p;
    }
    if (i == 0 && form.outlier_bytes != 0) {
      magnitude = outlierMagnitude(in, form.outlier_bytes);
    }
    values[i] = applySign<T>(magnitude, (signs[i / 8] >> (i % 8) & 1) != 0);
  });
}

}  // namespace fz::adaptive_bitpack
