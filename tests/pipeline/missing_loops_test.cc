// The vector loops that look for missing values, beside plain ones, on every target of this
// machine.
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
      std::vector<U> same = values;
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(put[i], is_one(i) ? U{5} : values[i]) << i << " of " << n;
        same[i] = is_one(i) ? U{9} : values[i];
      }
      ASSERT_EQ(put[n], values[n]);
      std::vector<U> copy(n + 1, U{1});
      const auto replaced = [&](const std::vector<U>& from) {
        return copyReplaced(std::span<const U>(from).first(n), words.data(),
                            {.from = U{9}, .to = U{3}}, copy.data());
      };
      ASSERT_TRUE(replaced(same));
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(copy[i], is_one(i) ? U{3} : same[i]);
      }
      ASSERT_EQ(copy[n], U{1});
      for (std::size_t i = 0; i < n; ++i) {
        if (is_one(i)) {
          std::vector<U> other = same;
          other[i] = U{8};
          ASSERT_FALSE(replaced(other)) << i;
          break;
        }
      }
    }
  });
}

}  // namespace
}  // namespace fz::test
