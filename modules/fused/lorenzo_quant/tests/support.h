#pragma once

#include <gtest/gtest.h>
#include <vector>

#include "fused/lorenzo_quant/codec.h"
#include "shared/fp.h"
#include "shared/team.h"
#include "support/shuffled.h"
#include "support/stage_case.h"

namespace fz::test {

/// Every value within the bound on the real numbers, or the same bits.
template <class T>
void expectWithin(const std::vector<T>& original, const std::vector<T>& decoded, double bound) {
  ASSERT_EQ(original.size(), decoded.size());
  for (std::size_t i = 0; i < original.size(); ++i) {
    ASSERT_TRUE(
        fp::bits(original[i]) == fp::bits(decoded[i]) ||
        fp::withinBound(static_cast<double>(original[i]), static_cast<double>(decoded[i]), bound))
        << "value " << i << ": " << original[i] << " became " << decoded[i] << ", bound " << bound;
  }
}

/// Extents whose product is n, as even as its divisors allow.
inline Dims splitDims(std::size_t n, int ndim) {
  Dims dims = {n, 1, 1};
  for (int axis = ndim - 1; axis > 0 && n != 0; --axis) {
    std::size_t best = 1;
    for (std::size_t d = 1; d * d <= dims[0] && (axis == 1 || d * d * d <= dims[0]); ++d) {
      best = dims[0] % d == 0 ? d : best;
    }
    dims[static_cast<std::size_t>(axis)] = best;
    dims[0] /= best;
  }
  return dims;
}

/// A stream made by the codec text alone, tile by tile.
template <class T, class TCode>
struct Reference {
  lorenzo_quant::Step<T> step;
  std::vector<TCode> codes;
  std::vector<T> list_values;  ///< range deltas, then raw values
  std::vector<std::uint32_t> list_indices;
  std::size_t n_range = 0;
};

inline lorenzo_quant::Grid gridFor(const Dims& dims) {
  return {dims[0], dims[1], dims[2], dims[2] > 1 ? 3 : (dims[1] > 1 ? 2 : 1)};
}

template <class T, class TCode, class Team>
Reference<T, TCode> encodeByTiles(const std::vector<T>& values,
                                  const Dims& dims,
                                  float bound,
                                  int radius,
                                  Team team,
                                  std::uint32_t left_out = 0) {
  using Int = lorenzo_quant::IntOf<T>;
  const lorenzo_quant::Grid grid = gridFor(dims);
  Reference<T, TCode> r;
  r.step = lorenzo_quant::makeStep<T>(bound, grid.ndim);
  r.codes.resize(values.size());
  std::vector<Int> deltas(values.size());
  for (std::uint64_t t = 0; t < lorenzo_quant::tileCount(grid); ++t) {
    const lorenzo_quant::Tile tile = lorenzo_quant::tileAt(grid, t);
    Int bins[lorenzo_quant::kMaxTileValues];
    lorenzo_quant::binTile(team, grid, tile, values.data(), r.step, bins);
    team.each(tile.size(), [&](std::uint32_t i) {
      const std::uint64_t at = lorenzo_quant::linearIndex(grid, tile, i);
      deltas[at] = lorenzo_quant::deltaAt(tile, bins, i, left_out);
    });
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool has_code = lorenzo_quant::hasCode(deltas[i], static_cast<Int>(radius));
    r.codes[i] = has_code ? lorenzo_quant::toCode<TCode>(deltas[i], false) : TCode{0};
    if (!has_code) {
      r.list_values.push_back(static_cast<T>(deltas[i]));
      r.list_indices.push_back(static_cast<std::uint32_t>(i));
    }
  }
  r.n_range = r.list_values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (lorenzo_quant::quantize(values[i], r.step).usable == 0) {
      r.list_values.push_back(values[i]);
      r.list_indices.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return r;
}

template <class T, class TCode, class Team>
std::vector<T> decodeByTiles(const Reference<T, TCode>& r,
                             const Dims& dims,
                             Team team,
                             std::uint32_t left_out = 0) {
  using Int = lorenzo_quant::IntOf<T>;
  const lorenzo_quant::Grid grid = gridFor(dims);
  std::vector<Int> deltas;
  for (const TCode code : r.codes) {
    deltas.push_back(lorenzo_quant::fromCode<Int>(code, false));
  }
  for (std::size_t i = 0; i < r.n_range; ++i) {
    deltas[r.list_indices[i]] += static_cast<Int>(r.list_values[i]);
  }
  std::vector<T> out(r.codes.size());
  for (std::uint64_t t = 0; t < lorenzo_quant::tileCount(grid); ++t) {
    const lorenzo_quant::Tile tile = lorenzo_quant::tileAt(grid, t);
    Int sums[lorenzo_quant::kMaxTileValues];
    team.each(tile.size(), [&](std::uint32_t i) {
      sums[i] = deltas[lorenzo_quant::linearIndex(grid, tile, i)];
    });
    lorenzo_quant::sumTile(team, tile, sums, left_out);
    team.each(tile.size(), [&](std::uint32_t i) {
      out[lorenzo_quant::linearIndex(grid, tile, i)] =
          lorenzo_quant::reconstruct(sums[i], r.step.step);
    });
  }
  for (std::size_t i = r.n_range; i < r.list_values.size(); ++i) {
    out[r.list_indices[i]] = r.list_values[i];
  }
  return out;
}

}  // namespace fz::test
