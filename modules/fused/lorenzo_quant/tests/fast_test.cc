// The bins that kernels find with fewer operations are those of the full text.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "fused/lorenzo_quant/codec_fast.h"

namespace fz::lorenzo_quant {
namespace {

/// Random values and all near the edges of cells, over many magnitudes.
template <class T>
void expectFastBinsAreRight(float bound) {
  const Step<T> step = makeStep<T>(bound, 2);
  std::mt19937_64 rng(6);
  int n_fast = 0;
  for (int i = 0; i < 300'000; ++i) {
    const auto bits = static_cast<typename Number<T>::Word>(rng());
    const auto half_cells = static_cast<T>(rng() >> (rng() % 64));
    T x = i % 2 == 0 ? fp::bitCast<T>(bits) : half_cells * step.bound;
    x = i % 3 == 0 ? std::nextafter(x, T{0}) : x;
    x = i % 5 == 0 ? -x : x;
    FastBins<T> fast;
    const auto biased = fast.add(x, step);
    if (fast.template all<2>()) {
      const Bin<T> bin = quantize(x, step);
      ASSERT_EQ(bin.usable, 1u) << x;
      ASSERT_EQ(bin.value, static_cast<IntOf<T>>(biased - FastBins<T>::kBias)) << x;
      ++n_fast;
    }
    // One value that is not usable is enough, whatever stands beside it.
    FastBins<T> together;
    together.add(i % 7 == 0 ? x : T{0}, step);
    together.add(x, step);
    together.add(step.bound / 4, step);
    if (together.template all<2>()) {
      ASSERT_EQ(quantize(x, step).usable, 1u) << x;
    }
  }
  EXPECT_GT(n_fast, 10'000);
}

TEST(LorenzoQuant, FastBinsAreThoseOfTheFullText) {
  for (const float bound : {1e-3f, 0.5f, 3.0f, 1e-30f, 1e30f}) {
    expectFastBinsAreRight<float>(bound);
    expectFastBinsAreRight<double>(bound);
  }
}

/// Values around the edges of cells of every magnitude, and of the type.
template <class T>
T valueNearAnEdge(std::mt19937_64& rng, const Step<T>& step, int i) {
  using Word = typename Number<T>::Word;
  if (i % 16 == 5) {
    return fp::bitCast<T>(static_cast<Word>(rng()));
  }
  if (i % 16 == 7) {  // where a bin times the step may be infinite
    return static_cast<T>(3.4028e38 * (1.0 - static_cast<double>(rng() % 100) * 1e-4));
  }
  const std::uint64_t bin = rng() >> (sizeof(T) == 4 ? 42 + rng() % 22 : 20 + rng() % 44);
  const double part = i % 4 == 3 ? static_cast<double>(rng() % 1000) * 1e-3 : 0.5;
  T x = static_cast<T>((static_cast<double>(bin) + part) * static_cast<double>(step.step));
  for (std::uint64_t n = rng() % 5; n != 0; --n) {
    x = std::nextafter(x, i % 3 == 0 ? T{0} : std::numeric_limits<T>::max());
  }
  return i % 2 == 0 ? x : -x;
}

template <class T>
int countOfNearBins(float bound) {
  const Step<T> step = makeStep<T>(bound, 3);
  std::mt19937_64 rng(9);
  int n_near = 0;
  for (int i = 0; i < 100'000; ++i) {
    const T x = valueNearAnEdge<T>(rng, step, i);
    NearBins<T> near;
    const auto biased = near.add(x, step);
    if (near.all(step)) {
      const Bin<T> bin = quantize(x, step);
      const auto value = static_cast<IntOf<T>>(biased - FastBins<T>::kBias);
      EXPECT_EQ(bin.usable, 1u) << x;
      EXPECT_EQ(bin.value, value) << x;
      EXPECT_GE(near.reach(), static_cast<T>(value < 0 ? -value : value));
      ++n_near;
    }
    // One value that is not usable is enough, whatever stands beside it.
    NearBins<T> together;
    together.add(x, step);
    together.add(step.bound / 4, step);
    if (together.all(step)) {
      EXPECT_EQ(quantize(x, step).usable, 1u) << x;
    }
  }
  return n_near;
}

TEST(LorenzoQuant, NearBinsAreThoseOfTheFullText) {
  for (const float bound : {1e-3f, 0.05f, 0.5f, 1.0f / 3, 3.0f, 1e-30f, 1e29f}) {
    EXPECT_GT(countOfNearBins<float>(bound), 10'000) << bound;
    EXPECT_GT(countOfNearBins<double>(bound), 10'000) << bound;
  }
  for (const float bound : {1e-44f, 1e-40f, 1e32f, 3e35f, 1e36f, 1.6e38f}) {  // where few are
    countOfNearBins<float>(bound);
    countOfNearBins<double>(bound);
  }
}

}  // namespace
}  // namespace fz::lorenzo_quant
