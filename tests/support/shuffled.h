#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "backends/cpu/parallel_for.h"

namespace fz::test {

/// Stand-in for a thread block: visits a tile's items in random order, so a codec whose bytes
/// depend on the order gives itself away. Same contract as SerialTeam.
struct ShuffledTeam {
  std::mt19937_64* rng;

  template <class F>
  void each(std::uint32_t n, F f) const {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), *rng);
    for (const std::uint32_t i : order) {
      f(i);
    }
  }
  void sync() const {}
  template <class F>
  std::uint32_t max(std::uint32_t n, F f) const {
    std::uint32_t m = 0;
    each(n, [&](std::uint32_t i) { m = std::max(m, static_cast<std::uint32_t>(f(i))); });
    return m;
  }
};

/// Runs the tiles of a stage one by one in random order.
class ShuffledExecutor final : public CpuExecutor {
 public:
  explicit ShuffledExecutor(std::uint64_t seed) : rng_(seed) {}
  std::size_t threadCount() const noexcept override { return 3; }
  void run(std::size_t n_items, Body body) const override {
    std::vector<std::size_t> order(n_items);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), rng_);
    for (const std::size_t i : order) {
      body.call(body.object, i, i + 1);
    }
  }

 private:
  mutable std::mt19937_64 rng_;
};

}  // namespace fz::test
