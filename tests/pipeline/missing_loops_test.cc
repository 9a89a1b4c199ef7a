// The vector loops that look for missing values, beside plain ones, on every target of this
// machine.
#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/missing.h"
#include "support/each_target.h"

namespace fz::test {
namespace {

template <class T>
struct BitsOf {
  using Type = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
};

/// All values of one kind for some words, then a mixture.
template <class T>
std::vector<T> valuesOf(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<T> values(n);
  const T specials[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(), T{-9999}};
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned kind = (i / 100 + seed) % 4;
    const bool is_special = kind == 0 || (kind == 1 && rng() % 2 == 0) || (seed > 90 && kind == 2);
    values[i] = is_special ? specials[seed > 50 ? rng() % 4 : seed % 4]
                           : static_cast<T>(static_cast<double>(rng()) / 1e6 - 2000.0);
  }
  if (n > 3) {
    values[n - 1] = std::numeric_limits<T>::max();
    values[n - 2] = -std::numeric_limits<T>::max();
    values[n - 3] = std::numeric_limits<T>::denorm_min();
  }
  return values;
}

template <class T>
class MissingLoops : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(MissingLoops, FloatTypes);

constexpr std::size_t kSizes[] = {0, 1, 63, 64, 65, 255, 256, 257, 1000, 4096, 5003};

/// One among values that are next to fill values, or as large as a number can be.
TYPED_TEST(MissingLoops, FindASingleOneAtAnyPlaceAndNoneWhereThereIsNone) {
  using T = TypeParam;
  constexpr std::size_t kValues = 550;  // two steps of the loop and a rest
  constexpr T kMost = std::numeric_limits<T>::max();
  const T beside = std::nextafter(T{-9999}, T{0});
  const std::vector<T> fills[] = {{}, {T{-9999}}, {T{0}}, {T{7}, T{-0.0}, T{-9999}}};
  forEachVectorTarget([&] {
    for (const std::vector<T>& fill : fills) {
      std::vector<T> missing = {std::numeric_limits<T>::quiet_NaN(),
                                std::numeric_limits<T>::infinity(),
                                -std::numeric_limits<T>::infinity()};
      for (const T x : fill) {
        missing.push_back(x);
        missing.push_back(x == T{0} ? -x : x);
      }
      std::vector<T> values(kValues);
      for (std::size_t i = 0; i < kValues; ++i) {
        const T some[] = {kMost, -kMost, beside, std::numeric_limits<T>::denorm_min(), T{1}};
        values[i] = some[i % 5];
      }
      ASSERT_FALSE(anyMissing(std::span<const T>(values), fill)) << fill.size();
      for (std::size_t i = 0; i < kValues; ++i) {
        const T before = values[i];
        for (const T x : missing) {
          values[i] = x;
          ASSERT_TRUE(anyMissing(std::span<const T>(values), fill)) << i << ' ' << x;
        }
        values[i] = before;
      }
    }
  });
}

TYPED_TEST(MissingLoops, FindWhatOneByOneIsFound) {
  using T = TypeParam;
  forEachVectorTarget([&] {
    for (const std::size_t n : kSizes) {
      for (unsigned seed = 0; seed < 100; seed += 3) {
        const std::vector<T> values = valuesOf<T>(n, seed);
        const std::vector<T> fill =
            seed % 2 == 0 ? std::vector<T>{} : std::vector<T>{T{7}, T{-9999}};
        std::vector<std::uint64_t> words(n / 64 + 1, 0);
        const bool found = findMissing(values.data(), n, fill, words.data());
        std::size_t n_missing = 0;
        ValidRange range;
        for (std::size_t i = 0; i < n; ++i) {
          const bool is_missing =
              !std::isfinite(values[i]) || (!fill.empty() && values[i] == T{-9999});
          ASSERT_EQ((words[i / 64] >> (i % 64) & 1) != 0, is_missing) << i << " of " << n;
          n_missing += is_missing ? 1u : 0u;
          if (!is_missing) {
            const auto value = static_cast<double>(values[i]);
            range = range.isEmpty()
                        ? ValidRange{value, value}
                        : ValidRange{std::min(range.low, value), std::max(range.high, value)};
          }
        }
        ASSERT_EQ(found, n_missing != 0);
        ASSERT_EQ(anyMissing(std::span<const T>(values), fill), n_missing != 0) << n << " " << seed;
        ASSERT_EQ(countOnes(words), n_missing);
        const ValidRange valid = rangeOfValid(std::span<const T>(values), fill);
        ASSERT_EQ(valid.isEmpty(), range.isEmpty());
        ASSERT_TRUE(valid.isEmpty() || (valid.low == range.low && valid.high == range.high));
      }
    }
  });
}

TYPED_TEST(MissingLoops, PutValuesWhereBitsAreOnesAndNowhereElse) {
  using U = typename BitsOf<TypeParam>::Type;
  forEachVectorTarget([&] {
    for (const std::size_t n : kSizes) {
      std::mt19937_64 rng(n);
      std::vector<U> values(n + 1);
      std::vector<std::uint64_t> words(n / 64 + 1);
      for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = i % 4 == 0 ? 0 : i % 4 == 1 ? ~std::uint64_t{0} : rng();
      }
      for (U& value : values) {
        value = static_cast<U>(rng());
      }
      const auto is_one = [&](std::size_t i) { return (words[i / 64] >> (i % 64) & 1) != 0; };
      std::vector<U> put = values;
      putWhere(std::span<U>(put).first(n), words.data(), U{5});
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(put[i], is_one(i) ? U{5} : values[i]) << i << " of " << n;
      }
      ASSERT_EQ(put[n], values[n]);
    }
  });
}

TYPED_TEST(MissingLoops, TakeOutMissingValuesAndTellWhetherTheirBitsAreAlike) {
  using T = TypeParam;
  using U = typename BitsOf<T>::Type;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> fills[] = {{}, {T{-9999}}, {T{7}, T{-9999}}};
  forEachVectorTarget([&] {
    for (const std::size_t n : kSizes) {
      for (unsigned seed = 0; seed < 100; seed += 3) {
        const std::vector<T>& fill = fills[seed % 3];
        const std::vector<T> values = valuesOf<T>(n, seed);
        std::vector<std::uint64_t> expected(n / 64 + 1);
        findMissing(values.data(), n, fill, expected.data());
        for (const T filler : {T{0}, nan}) {
          std::vector<std::uint64_t> words(n / 64 + 1);
          std::vector<T> out(n + 1, T{5});
          const MissingBits found =
              takeOutMissing(std::span<const T>(values), fill, filler, words.data(), out.data());
          ASSERT_EQ(words, expected) << n << ' ' << seed;
          std::vector<U> patterns;
          for (std::size_t i = 0; i < n; ++i) {
            const bool is_missing = (words[i / 64] >> (i % 64) & 1) != 0;
            ASSERT_EQ(std::bit_cast<U>(out[i]), std::bit_cast<U>(is_missing ? filler : values[i]));
            if (is_missing) {
              patterns.push_back(std::bit_cast<U>(values[i]));
            }
          }
          ASSERT_EQ(out[n], T{5});
          ASSERT_EQ(found.any, !patterns.empty());
          if (found.any) {
            ASSERT_EQ(found.first, patterns.front());
            ASSERT_EQ(found.are_alike,
                      std::count(patterns.begin(), patterns.end(), patterns.front()) ==
                          static_cast<std::ptrdiff_t>(patterns.size()))
                << n << ' ' << seed;
          }
        }
      }
    }
  });
}

/// Words of all kinds, and every length of run.
template <class T>
std::vector<std::uint64_t> wordsFor(std::size_t n, std::mt19937_64& rng) {
  std::vector<std::uint64_t> words(n / 64 + 1);
  for (std::uint64_t& word : words) {
    const std::uint64_t kinds[] = {0,
                                   ~std::uint64_t{0},
                                   rng(),
                                   rng() & rng() & rng(),
                                   ~std::uint64_t{0} << rng() % 64,
                                   ~std::uint64_t{0} >> rng() % 64};
    word = kinds[rng() % 6];
  }
  return words;
}

TYPED_TEST(MissingLoops, HoldValuesAsOneByOne) {
  using T = TypeParam;
  forEachVectorTarget([&] {
    for (const std::size_t n : kSizes) {
      std::mt19937_64 rng(n);
      for (int round = 0; round < 20; ++round) {
        const std::vector<std::uint64_t> words = wordsFor<T>(n, rng);
        const auto is_one = [&](std::size_t i) { return (words[i / 64] >> (i % 64) & 1) != 0; };
        std::vector<T> values(n + 1);
        for (T& value : values) {
          value = static_cast<T>(rng() % 1000);
        }
        std::vector<T> held = values;
        holdBefore(std::span<T>(held).first(n), words.data(), T{-1});
        T last{-1};
        for (std::size_t i = 0; i < n; ++i) {
          last = is_one(i) ? last : values[i];
          ASSERT_EQ(held[i], last) << i << " of " << n;
        }
        ASSERT_EQ(held[n], values[n]);
        for (const std::uint32_t unit : {1u, 2u, 8u, 16u, 32u, 64u}) {
          held = values;
          holdInUnits(std::span<T>(held).first(n), words.data(), unit);
          for (std::size_t begin = 0; begin < n; begin += unit) {
            const std::size_t end = std::min<std::size_t>(begin + unit, n);
            std::size_t first = begin;
            while (first < end && is_one(first)) {
              ++first;
            }
            last = first < end ? values[first] : T{};
            for (std::size_t i = begin; i < end; ++i) {
              last = is_one(i) ? last : values[i];
              ASSERT_EQ(held[i], first < end ? last : values[i]) << i << " unit " << unit;
            }
          }
          ASSERT_EQ(held[n], values[n]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace fz::test
