#include "trust/families.h"

#include <bit>
#include <cmath>
#include <limits>

namespace fz::trust {

namespace {

template <class T>
using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
T fromBits(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<Word<T>>(bits));
}

/// One step towards larger or smaller numbers.
template <class T>
T nudged(double value, int direction) {
  const T near = static_cast<T>(value);
  const T far =
      direction > 0 ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
  return direction == 0 ? near : std::nextafter(near, far);
}

double unit(std::mt19937_64& rng) {
  return static_cast<double>(rng() >> 11) * 0x1p-53;
}

/// Signed, at most `most` in size.
double whole(std::mt19937_64& rng, std::int64_t most) {
  return static_cast<double>(
      static_cast<std::int64_t>(rng() % (2 * static_cast<std::uint64_t>(most) + 1)) - most);
}

template <class T>
T withSpecials(T ordinary, std::uint64_t percent, T special, std::mt19937_64& rng) {
  return rng() % 100 < percent ? special : ordinary;
}

template <class T>
T quietNan(std::uint64_t payload) {
  constexpr int kFraction = std::numeric_limits<T>::digits - 1;
  const std::uint64_t exponent = sizeof(T) == 4 ? 0x7F800000u : 0x7FF0000000000000u;
  const std::uint64_t quiet = std::uint64_t{1} << (kFraction - 1);
  return fromBits<T>(exponent | quiet | (payload & (quiet - 1)));
}

template <class T>
T signallingNan(std::uint64_t payload) {
  constexpr int kFraction = std::numeric_limits<T>::digits - 1;
  const std::uint64_t exponent = sizeof(T) == 4 ? 0x7F800000u : 0x7FF0000000000000u;
  const std::uint64_t quiet = std::uint64_t{1} << (kFraction - 1);
  return fromBits<T>(exponent | 1u | (payload & (quiet - 1)));
}

template <class T>
double wave(std::size_t i) {
  const double x = static_cast<double>(i % 200) / 100.0 - 1.0;
  return 40.0 * x * (1.0 - std::fabs(x)) + 0.001 * static_cast<double>(i % 7);
}

using Index = std::size_t;
using Rng = std::mt19937_64;

template <class T>
std::vector<Family<T>> plainFamilies() {
  using L = std::numeric_limits<T>;
  return {
      {"zeros", [](Index, Index, double, Rng&) { return T{0}; }},
      {"negative zeros", [](Index, Index, double, Rng&) { return -T{0}; }},
      {"zeros of both signs", [](Index i, Index, double, Rng&) { return i % 3 ? T{0} : -T{0}; }},
      {"constant", [](Index, Index, double, Rng&) { return static_cast<T>(3.14159265358979); }},
      {"ramp", [](Index i, Index, double, Rng&) { return static_cast<T>(i); }},
      {"falling ramp",
       [](Index i, Index, double, Rng&) { return static_cast<T>(-0.1 * double(i)); }},
      {"wave", [](Index i, Index, double, Rng&) { return static_cast<T>(wave<T>(i)); }},
      {"noise in one",
       [](Index, Index, double, Rng& r) { return static_cast<T>(2 * unit(r) - 1); }},
      {"alternating signs",
       [](Index i, Index, double, Rng&) { return static_cast<T>(i % 2 ? 1.5 : -1.5); }},
      {"alternating extremes",
       [](Index i, Index, double, Rng&) { return i % 2 ? L::max() : L::lowest(); }},
      {"largest", [](Index, Index, double, Rng&) { return L::max(); }},
      {"smallest normal and beside",
       [](Index i, Index, double, Rng&) { return nudged<T>(L::min(), int(i % 3) - 1); }},
      {"denormals",
       [](Index, Index, double, Rng& r) {
         return fromBits<T>(r() & ((std::uint64_t{1} << (L::digits - 2)) - 1));
       }},
      {"denormals and extremes",
       [](Index i, Index, double, Rng&) { return i % 2 ? L::denorm_min() : L::max() / 2; }},
      {"powers of two", [](Index i, Index, double,
                           Rng&) { return static_cast<T>(std::ldexp(1.0, int(i % 240) - 120)); }},
      {"beside powers of two",
       [](Index i, Index, double, Rng&) {
         return nudged<T>(std::ldexp(1.0, int(i % 240) - 120), int(i % 3) - 1);
       }},
      {"whole numbers",
       [](Index, Index, double, Rng& r) { return static_cast<T>(whole(r, 1000)); }},
      {"tenths", [](Index, Index, double, Rng& r) { return static_cast<T>(0.1 * whole(r, 1000)); }},
      {"around 2^24",
       [](Index, Index, double, Rng& r) { return static_cast<T>(16777216.0 + whole(r, 9)); }},
      {"offset 1e6", [](Index i, Index, double, Rng&) { return static_cast<T>(1e6 + wave<T>(i)); }},
      {"offset 1e15",
       [](Index i, Index, double, Rng&) { return static_cast<T>(1e15 + wave<T>(i)); }},
      {"noise of 1e30",
       [](Index, Index, double, Rng& r) { return static_cast<T>(1e30 * (2 * unit(r) - 1)); }},
      {"steps",
       [](Index i, Index, double, Rng&) { return static_cast<T>(100.0 * double(i / 37 % 5)); }},
      {"saw", [](Index i, Index, double, Rng&) { return static_cast<T>(0.25 * double(i % 64)); }},
      {"falling by halves", [](Index i, Index, double,
                               Rng&) { return static_cast<T>(std::ldexp(1.37, -int(i % 160))); }},
      {"sparse", [](Index i, Index, double,
                    Rng& r) { return i % 50 ? T{0} : static_cast<T>(100 * unit(r)); }},
      {"random bits", [](Index, Index, double, Rng& r) { return fromBits<T>(r()); }},
  };
}

template <class T>
std::vector<Family<T>> boundFamilies() {
  return {
      {"bin centres",
       [](Index, Index, double b, Rng& r) { return static_cast<T>(whole(r, 3000) * 2 * b); }},
      {"bin edges",
       [](Index, Index, double b, Rng& r) { return static_cast<T>((2 * whole(r, 3000) + 1) * b); }},
      {"one step above bin edges",
       [](Index, Index, double b, Rng& r) { return nudged<T>((2 * whole(r, 3000) + 1) * b, 1); }},
      {"one step below bin edges",
       [](Index, Index, double b, Rng& r) { return nudged<T>((2 * whole(r, 3000) + 1) * b, -1); }},
      {"just inside 16-bit codes",
       [](Index, Index, double b, Rng& r) {
         return static_cast<T>((65534.0 - double(r() % 3)) * b);
       }},
      {"just outside 16-bit codes",
       [](Index, Index, double b, Rng& r) {
         return static_cast<T>((65536.0 + double(r() % 3)) * b);
       }},
      {"around 32-bit codes",
       [](Index, Index, double b, Rng& r) {
         return nudged<T>((4294967296.0 + whole(r, 3)) * b, int(r() % 3) - 1);
       }},
      {"within the bound of zero",
       [](Index, Index, double b, Rng& r) { return static_cast<T>((2 * unit(r) - 1) * b); }},
  };
}

template <class T>
std::vector<Family<T>> specialFamilies() {
  using L = std::numeric_limits<T>;
  return {
      {"fill value 9.97e36",
       [](Index i, Index, double, Rng& r) {
         return withSpecials(static_cast<T>(wave<T>(i)), 30, static_cast<T>(9.96921e36), r);
       }},
      {"fill value -9999",
       [](Index i, Index, double, Rng& r) {
         return withSpecials(static_cast<T>(wave<T>(i)), 30, T{-9999}, r);
       }},
      {"all NaN", [](Index, Index, double, Rng&) { return L::quiet_NaN(); }},
      {"NaN with payloads", [](Index, Index, double, Rng& r) { return quietNan<T>(r()); }},
      {"signalling NaN",
       [](Index i, Index, double, Rng& r) {
         return withSpecials(static_cast<T>(wave<T>(i)), 5, signallingNan<T>(r()), r);
       }},
      {"a few NaN",
       [](Index i, Index, double, Rng& r) {
         return withSpecials(static_cast<T>(wave<T>(i)), 2, quietNan<T>(r()), r);
       }},
      {"infinities",
       [](Index i, Index, double, Rng& r) {
         return withSpecials(static_cast<T>(wave<T>(i)), 3,
                             r() % 2 ? L::infinity() : -L::infinity(), r);
       }},
      {"only infinities",
       [](Index i, Index, double, Rng&) { return i % 2 ? L::infinity() : -L::infinity(); }},
      {"one outlier",
       [](Index i, Index n, double, Rng&) {
         return i == n / 2 ? static_cast<T>(1e20) : static_cast<T>(wave<T>(i));
       }},
      {"NaN first, infinity last",
       [](Index i, Index n, double, Rng&) {
         return i == 0 ? L::quiet_NaN() : i + 1 == n ? L::infinity() : static_cast<T>(wave<T>(i));
       }},
      {"everything at once",
       [](Index i, Index, double b, Rng& r) -> T {
         switch (r() % 6) {
           case 0:
             return fromBits<T>(r());
           case 1:
             return nudged<T>((2 * whole(r, 100) + 1) * b, int(r() % 3) - 1);
           case 2:
             return quietNan<T>(r());
           case 3:
             return -T{0};
           default:
             return static_cast<T>(wave<T>(i));
         }
       }},
  };
}

}  // namespace

template <class T>
const std::vector<Family<T>>& families() {
  static const std::vector<Family<T>> kAll = [] {
    std::vector<Family<T>> list = plainFamilies<T>();
    for (auto& more : {boundFamilies<T>(), specialFamilies<T>()}) {
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }();
  return kAll;
}

template <class T>
std::vector<T> makeFamily(const Family<T>& family,
                          std::size_t n,
                          double bound,
                          std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = family.at(i, n, bound, rng);
  }
  return values;
}

template const std::vector<Family<float>>& families<float>();
template const std::vector<Family<double>>& families<double>();
template std::vector<float> makeFamily(const Family<float>&, std::size_t, double, std::uint64_t);
template std::vector<double> makeFamily(const Family<double>&, std::size_t, double, std::uint64_t);

}  // namespace fz::trust
