#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/bits.h"
#include "shared/fp.h"
#include "shared/host_device.h"

/// Difference to the left neighbour inside blocks: the text that defines the bytes of Difference
/// and of Lorenzo in one dimension.
namespace fz::delta {

/// How a difference is written down.
enum class Code : std::uint8_t { kPlain, kNegabinary };

/// a - b: modulo 2^W for integers, singly rounded for floats.
template <class T>
FZ_HD T minus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return fp::sub(a, b);
  } else {
    return bits::wrapSub(a, b);
  }
}
template <class T>
FZ_HD T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return fp::add(a, b);
  } else {
    return bits::wrapAdd(a, b);
  }
}

/// A difference as its code and back; U is unsigned and stands for both signs.
template <Code kCode, class U>
FZ_HD U toCode(U difference) {
  if constexpr (kCode == Code::kNegabinary) {
    return bits::negabinary(static_cast<std::make_signed_t<U>>(difference));
  } else {
    return difference;
  }
}
template <Code kCode, class U>
FZ_HD U fromCode(U code) {
  if constexpr (kCode == Code::kNegabinary) {
    return static_cast<U>(bits::unnegabinary(code));
  } else {
    return code;
  }
}

/// Encodes one block of n values. The first is kept as it is.
template <Code kCode, class T, class Team>
FZ_HD void encodeBlock(Team team, const T* in, std::uint32_t n, T* out) {
  team.each(n, [=](std::uint32_t i) {
    out[i] = toCode<kCode>(i == 0 ? in[0] : minus(in[i], in[i - 1]));
  });
}

/// Sum of the differences behind n codes. Integers only.
template <Code kCode, class U>
FZ_HD U sumOfCodes(const U* in, std::uint32_t n) {
  U sum = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    sum = plus(sum, fromCode<kCode>(in[i]));
  }
  return sum;
}

/// Parts of a block that a team sums at the same time.
inline constexpr std::uint32_t kParts = 32;

/// Decodes n codes of a block, `before` being the value left of them (0 at the start of a block).
/// `part_sums` has kParts entries that the whole team sees. Integers only: any order of summing
/// gives the same.
template <Code kCode, class U, class Team>
FZ_HD void decodePiece(Team team, const U* in, std::uint32_t n, U before, U* part_sums, U* out) {
  const std::uint32_t part = bits::ceilDiv(n, kParts);
  team.each(kParts, [=](std::uint32_t p) {
    const std::uint32_t begin = p * part < n ? p * part : n;
    const std::uint32_t end = begin + part < n ? begin + part : n;
    part_sums[p] = sumOfCodes<kCode>(in + begin, end - begin);
  });
  team.sync();
  team.each(1, [=](std::uint32_t) {
    U sum = before;
    for (std::uint32_t p = 0; p < kParts; ++p) {
      const U own = part_sums[p];
      part_sums[p] = sum;
      sum = plus(sum, own);
    }
  });
  team.sync();
  team.each(kParts, [=](std::uint32_t p) {
    U value = part_sums[p];
    for (std::uint32_t i = p * part; i < n && i < (p + 1) * part; ++i) {
      value = plus(value, fromCode<kCode>(in[i]));
      out[i] = value;
    }
  });
}

/// Decodes one block of n floats. Rounding makes the order part of the format: left to right.
template <class T, class Team>
FZ_HD void decodeFloatBlock(Team team, const T* in, std::uint64_t n, T* out) {
  team.each(n == 0 ? 0 : 1, [=](std::uint32_t) {
    T value = in[0];
    out[0] = value;
    for (std::uint64_t i = 1; i < n; ++i) {
      value = plus(value, in[i]);
      out[i] = value;
    }
  });
}

/// True when the decoder, having `left`, restores `value` from the stored difference. NaN never
/// counts as restored: its payload depends on the machine.
template <class T>
FZ_HD bool isRestored(T left, T difference, T value) {
  const T sum = fp::add(left, difference);
  return fp::bits(sum) == fp::bits(value) && value == value;
}

}  // namespace fz::delta
