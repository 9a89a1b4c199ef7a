#pragma once

// What device code uses of the standard library, for the run-time compiler, which brings none of
// it. <cstdint> and the other headers named in rtc/compiler_cuda.cc all lead here.

// NOLINTBEGIN(readability-identifier-naming): the names are the standard's
namespace std {

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;
using intptr_t = long;
using size_t = decltype(sizeof(0));
using ptrdiff_t = long;

template <bool B, class A, class C>
struct conditional {
  using type = A;
};
template <class A, class C>
struct conditional<false, A, C> {
  using type = C;
};
template <bool B, class A, class C>
using conditional_t = typename conditional<B, A, C>::type;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;

template <class T>
struct remove_reference {
  using type = T;
};
template <class T>
struct remove_reference<T&> {
  using type = T;
};
template <class T>
struct remove_reference<T&&> {
  using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, char> || is_same_v<T, int8_t> || is_same_v<T, uint8_t> ||
    is_same_v<T, int16_t> || is_same_v<T, uint16_t> || is_same_v<T, int32_t> ||
    is_same_v<T, uint32_t> || is_same_v<T, int64_t> || is_same_v<T, uint64_t> ||
    is_same_v<T, long long> || is_same_v<T, unsigned long long>;
template <class T>
inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;

template <class T>
struct make_unsigned {
  using type = conditional_t<
      sizeof(T) == 1,
      uint8_t,
      conditional_t<sizeof(T) == 2, uint16_t, conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
};
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <class T>
struct make_signed {
  using type = conditional_t<
      sizeof(T) == 1,
      int8_t,
      conditional_t<sizeof(T) == 2, int16_t, conditional_t<sizeof(T) == 4, int32_t, int64_t>>>;
};
template <class T>
using make_signed_t = typename make_signed<T>::type;

template <class T>
struct numeric_limits {
  static constexpr T max() {
    return is_signed_v<T> ? static_cast<T>((uint64_t{1} << (8 * sizeof(T) - 1)) - 1)
                          : static_cast<T>(~uint64_t{0});
  }
  static constexpr T min() {
    return is_signed_v<T> ? static_cast<T>(-static_cast<int64_t>(max()) - 1) : T(0);
  }
};
template <>
struct numeric_limits<float> {
  static constexpr float max() { return 3.402823466e+38f; }
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr double max() { return 1.7976931348623157e+308; }
  static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000u); }
};

template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
constexpr const T& clamp(const T& v, const T& low, const T& high) {
  return v < low ? low : high < v ? high : v;
}

template <class T>
constexpr T&& forward(remove_reference_t<T>& v) noexcept {
  return static_cast<T&&>(v);
}
template <class T>
constexpr remove_reference_t<T>&& move(T&& v) noexcept {
  return static_cast<remove_reference_t<T>&&>(v);
}

template <class T>
constexpr bool has_single_bit(T v) noexcept {
  return v != 0 && (v & (v - 1)) == 0;
}
template <class T>
constexpr int countr_zero(T v) noexcept {
  int n = 0;
  while (n < static_cast<int>(8 * sizeof(T)) && (v >> n & T(1)) == 0) {
    ++n;
  }
  return n;
}
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

inline __device__ void* memcpy(void* to, const void* from, size_t n) {
  return ::memcpy(to, from, n);
}

}  // namespace std
// NOLINTEND(readability-identifier-naming)
