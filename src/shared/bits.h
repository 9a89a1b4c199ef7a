#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/host_device.h"

/// Integer bit work shared by host and device.
namespace fz::bits {

/// Number of bits needed to write v; 0 for 0.
FZ_HD std::uint32_t bitWidth(std::uint32_t v) {
#ifdef __CUDA_ARCH__
  return 32u - static_cast<std::uint32_t>(__clz(static_cast<int>(v)));
#else
  return v == 0 ? 0u : 32u - static_cast<std::uint32_t>(__builtin_clz(v));
#endif
}
FZ_HD std::uint32_t bitWidth(std::uint64_t v) {
#ifdef __CUDA_ARCH__
  return 64u - static_cast<std::uint32_t>(__clzll(static_cast<long long>(v)));
#else
  return v == 0 ? 0u : 64u - static_cast<std::uint32_t>(__builtin_clzll(v));
#endif
}

/// Place of the lowest set bit; 64 for 0.
FZ_HD std::uint32_t firstSet(std::uint64_t v) {
#ifdef __CUDA_ARCH__
  return v == 0 ? 64u : static_cast<std::uint32_t>(__ffsll(static_cast<long long>(v))) - 1;
#else
  return v == 0 ? 64u : static_cast<std::uint32_t>(__builtin_ctzll(v));
#endif
}

FZ_HD std::uint32_t popCount(std::uint32_t v) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popc(v));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(v));
#endif
}

/// |v| as unsigned; defined for the most negative value too.
template <class T>
FZ_HD std::make_unsigned_t<T> magnitude(T v) {
  using U = std::make_unsigned_t<T>;
  const U u = static_cast<U>(v);
  return v < 0 ? static_cast<U>(U{0} - u) : u;
}

/// 0, -1, 1, -2, 2 ... -> 0, 1, 2, 3, 4 ...
template <class T>
FZ_HD std::make_unsigned_t<T> zigzag(T v) {
  using U = std::make_unsigned_t<T>;
  return static_cast<U>(static_cast<U>(static_cast<U>(v) << 1) ^
                        static_cast<U>(v >> (8 * static_cast<int>(sizeof(T)) - 1)));
}
template <class U>
FZ_HD std::make_signed_t<U> unzigzag(U u) {
  return static_cast<std::make_signed_t<U>>(static_cast<U>(u >> 1) ^
                                            static_cast<U>(U{0} - static_cast<U>(u & 1u)));
}

/// Every second bit, from bit 1: the weights of base -2 that are negative.
template <class U>
inline constexpr U kNegabinaryMask = static_cast<U>(0xAAAAAAAAAAAAAAAAull);

template <class T>
FZ_HD std::make_unsigned_t<T> negabinary(T v) {
  using U = std::make_unsigned_t<T>;
  constexpr U kMask = kNegabinaryMask<U>;
  return static_cast<U>(static_cast<U>(static_cast<U>(v) + kMask) ^ kMask);
}
template <class U>
FZ_HD std::make_signed_t<U> unnegabinary(U u) {
  constexpr U kMask = kNegabinaryMask<U>;
  return static_cast<std::make_signed_t<U>>(static_cast<U>((u ^ kMask) - kMask));
}

/// a - b and a + b modulo 2^W, defined for signed types.
template <class T>
FZ_HD T wrapSub(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
}
template <class T>
FZ_HD T wrapAdd(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
}

template <class T>
FZ_HD constexpr T ceilDiv(T a, T b) {
  return static_cast<T>(a / b + (a % b != 0 ? 1 : 0));
}
template <class T>
FZ_HD constexpr T roundUp(T a, T b) {
  return static_cast<T>(ceilDiv(a, b) * b);
}

}  // namespace fz::bits
