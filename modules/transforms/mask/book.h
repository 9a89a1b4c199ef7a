#pragma once

#include <cstdint>

#include "transforms/mask/codec.h"

/// How the chances of a layer are found: from what some of its bricks would ask. Host and device
/// come to the same ones.
namespace fz::mask {

/// Bricks that are looked at, spread over all.
inline constexpr std::uint64_t kSampledBricks = 512;

FZ_HD std::uint64_t sampleStep(std::uint64_t n_bricks) {
  return (n_bricks + kSampledBricks - 1) / kSampledBricks;
}

/// Zeros and ones.
struct Counts {
  std::uint32_t n[2];
};
/// What was counted: rows that are as the ones behind for themselves, since they may be coded by
/// one decision each.
struct LayerCounts {
  Counts of[2][kContexts];  ///< [1]: rows that are as the ones behind
};

/// Takes the decisions of a row for a coder. `Add` is called with a Counts' member.
template <class Add>
class CountingCoder {
 public:
  FZ_HD CountingCoder(Counts* counts, Add add) : counts_(counts), add_(add) {}
  FZ_HD bool code(std::uint32_t context, bool bit) {
    add_(counts_[context].n[bit ? 1 : 0]);
    return bit;
  }
  FZ_HD bool codeEven(bool bit) { return bit; }

 private:
  Counts* counts_;
  Add add_;
};

/// Counts what a row of a coded brick asks.
template <class Add>
FZ_HD void countRow(const Grid& grid,
                    const Brick& brick,
                    const std::uint32_t* rows,
                    std::uint32_t row,
                    LayerCounts& counts,
                    Add add) {
  const std::uint32_t y = row % brick.n_y;
  const RowNeighbours around = neighboursOf(grid, brick, rows, row, y);
  const bool is_like = around.has_behind && rows[row] == around.behind;
  if (around.has_behind) {
    const bool was_like = row == brick.n_y || rows[row - 1] == rows[row - 1 - brick.n_y];
    add(counts.of[0][kLikeBehind + (was_like ? 1u : 0u)].n[is_like ? 1 : 0]);
  }
  CountingCoder coder(counts.of[is_like ? 1 : 0], add);
  codeRow(coder, rows[row], around, brick.rowBits(grid, row));
}

/// 16 times the bits that a decision of chance q / 256 takes, rounded down.
FZ_HD std::uint32_t costOf(std::uint32_t q) {
  const std::uint32_t whole = bits::bitWidth(q) - 1;
  std::uint64_t rest = std::uint64_t{q} << (31 - whole);  // 1 to 2, of 2^31
  std::uint32_t log = whole;
  for (std::uint32_t i = 0; i < 4; ++i) {
    rest = rest * rest >> 31;
    log = 2 * log + (rest >> 32 != 0 ? 1u : 0u);
    rest >>= rest >> 32 != 0 ? 1 : 0;
  }
  return 16 * 8 - log;
}
FZ_HD std::uint64_t costOf(const Counts& counts, std::uint32_t chance) {
  return (counts.n[1] != 0 ? std::uint64_t{counts.n[1]} * costOf(chance) : 0) +
         (counts.n[0] != 0 ? std::uint64_t{counts.n[0]} * costOf(256 - chance) : 0);
}
/// The chance of what was counted; never 0.
FZ_HD std::uint32_t chanceOf(const Counts& counts, std::uint32_t otherwise) {
  const std::uint32_t n = counts.n[0] + counts.n[1];  // 2^21 at most
  if (n == 0) {
    return otherwise;
  }
  const std::uint32_t chance = (counts.n[1] * 256 + n / 2) / n;
  return chance == 0 ? 1 : chance > 255 ? 255 : chance;
}

/// Both ways to code a layer, in the same unit: whether it is asked if rows are as the ones behind.
struct LayerCosts {
  std::uint64_t asking = 0;
  std::uint64_t plain = 0;
  std::uint64_t first = 0;  ///< with the chances that need not be stored
};

/// The part of one context.
FZ_HD LayerCosts costsOf(const LayerCounts& counts, const Chances& first, std::uint32_t context) {
  const Counts& unlike = counts.of[0][context];
  const Counts& like = counts.of[1][context];
  const Counts both{{unlike.n[0] + like.n[0], unlike.n[1] + like.n[1]}};
  const std::uint32_t otherwise = first.of_one[context];
  LayerCosts costs;
  costs.asking = costOf(unlike, chanceOf(unlike, otherwise));
  costs.first = costOf(unlike, otherwise);
  costs.plain = context >= kLikeBehind ? 0 : costOf(both, chanceOf(both, otherwise));
  return costs;
}

/// How a layer is coded.
struct LayerWay {
  bool has_own;  ///< chances
  bool asks;     ///< whether rows are as the ones behind; with chances of its own
};

FZ_HD LayerWay chooseWay(const LayerCosts& costs, const Grid& grid) {
  // A row that is one decision takes less time too.
  const bool asks = costs.asking <= costs.plain + costs.plain / 16;
  const std::uint64_t own = asks ? costs.asking : costs.plain;
  const std::uint64_t table = std::uint64_t{contextsOf(grid)} * 8 * 16;
  const std::uint64_t step = sampleStep(grid.bricks());
  return {own * step + table < costs.first * step, asks};
}

/// The chance of a context when a layer is coded that way.
FZ_HD std::uint32_t chanceIn(const LayerCounts& counts,
                             const LayerWay& way,
                             const Chances& first,
                             std::uint32_t context) {
  const Counts& unlike = counts.of[0][context];
  const Counts& like = counts.of[1][context];
  if (!way.has_own) {
    return first.of_one[context];
  }
  if (way.asks) {
    return chanceOf(unlike, first.of_one[context]);
  }
  return context >= kLikeBehind ? 0
                                : chanceOf({{unlike.n[0] + like.n[0], unlike.n[1] + like.n[1]}},
                                           first.of_one[context]);
}

}  // namespace fz::mask
