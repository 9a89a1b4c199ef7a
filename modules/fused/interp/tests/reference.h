#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "fused/interp/codec.h"
#include "fused/interp/plan.h"

/// Interp as SPEC.md says it, with nothing but that in mind. What the stage writes must be this.
namespace fz::test::interp_reference {

using interp::Axes;
using interp::Bin;
using interp::Extents;
using interp::Level;
using interp::Plan;
using interp::Scale;
using interp::Steps;

/// Integers on a lattice; those outside are 0.
struct Array {
  Extents n = {};
  std::vector<std::int32_t> values;

  explicit Array(const Extents& extents) : n(extents), values(std::size_t{n[0]} * n[1] * n[2], 0) {}
  std::size_t place(std::size_t x, std::size_t y, std::size_t z) const {
    return (z * n[1] + y) * n[0] + x;
  }
  std::int32_t& at(std::size_t x, std::size_t y, std::size_t z) { return values[place(x, y, z)]; }
  std::int32_t at(std::size_t x, std::size_t y, std::size_t z) const {
    return values[place(x, y, z)];
  }
  std::int32_t near(std::size_t x, std::size_t y, std::size_t z) const {
    return x < n[0] && y < n[1] && z < n[2] ? at(x, y, z) : 0;
  }
  template <class F>
  void each(F f) const {
    for (std::size_t z = 0; z < n[2]; ++z) {
      for (std::size_t y = 0; y < n[1]; ++y) {
        for (std::size_t x = 0; x < n[0]; ++x) {
          f(x, y, z);
        }
      }
    }
  }
};

/// Along the axes of `axes` every second point, from 0, or from 1 on those of `odd`.
inline std::array<std::size_t, 3> finePoint(
    Axes axes, Axes odd, std::size_t x, std::size_t y, std::size_t z) {
  std::array<std::size_t, 3> p = {x, y, z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    p[axis] = axes >> axis & 1 ? 2 * p[axis] + (odd >> axis & 1) : p[axis];
  }
  return p;
}

/// Codes in, or codes out: the same walk serves both.
class Walk {
 public:
  Walk(const Plan& plan, const Extents& n, std::uint32_t sub_bits, std::int32_t code_max)
      : plan_(plan), sub_bits_(sub_bits), code_max_(code_max) {
    n_axes_ = (n[0] > 1) + (n[1] > 1) + (n[2] > 1);
  }

  /// Codes of x, whose places without a value have kNoValue. Clamped ones go to `clamped`, as
  /// places of x.
  Array encode(const Array& x) {
    Array index(x.n);
    for (std::size_t i = 0; i < index.values.size(); ++i) {
      index.values[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(i));
    }
    return run(plan_.steps(), x.n, &x, &index, 0, false);
  }
  Array decode(const Extents& n, const std::vector<std::int32_t>& stream) {
    codes = stream;
    return run(plan_.steps(), n, nullptr, nullptr, 0, false);
  }

  std::vector<std::int32_t> codes;
  std::vector<std::uint32_t> clamped;

 private:
  static constexpr std::int32_t kNone = interp::kNoValue;

  static std::uint32_t pow2(std::uint32_t n) {
    std::uint32_t p = 1;
    while (p < n) {
      p *= 2;
    }
    return p;
  }
  /// Extents of the blocks of an array.
  static std::array<std::uint32_t, 3> blockOf(const Extents& n) {
    std::uint32_t z = std::min(4u, pow2(n[2]));
    std::uint32_t y = std::min(n[2] > 1 ? 4u : 8u, pow2(n[1]));
    std::uint32_t x = std::min(64 / (y * z), pow2(n[0]));
    y = std::min(64 / (x * z), pow2(n[1]));
    z = std::min(64 / (x * y), pow2(n[2]));
    return {64 / (y * z), y, z};
  }
  /// f(value) for all places of all blocks, value being null for padding.
  template <class F>
  static void inBlocks(Array& array, F f) {
    const auto block = blockOf(array.n);
    if (array.values.empty()) {
      return;
    }
    for (std::size_t z0 = 0; z0 < array.n[2]; z0 += block[2]) {
      for (std::size_t y0 = 0; y0 < array.n[1]; y0 += block[1]) {
        for (std::size_t x0 = 0; x0 < array.n[0]; x0 += block[0]) {
          for (std::size_t z = z0; z < z0 + block[2]; ++z) {
            for (std::size_t y = y0; y < y0 + block[1]; ++y) {
              for (std::size_t x = x0; x < x0 + block[0]; ++x) {
                f(x < array.n[0] && y < array.n[1] && z < array.n[2] ? &array.at(x, y, z)
                                                                     : nullptr);
              }
            }
          }
        }
      }
    }
  }
  void put(Array codes_of) {
    inBlocks(codes_of, [&](const std::int32_t* code) { codes.push_back(code ? *code : 0); });
  }
  Array take(const Extents& n) {
    Array array(n);
    inBlocks(array, [&](std::int32_t* code) {
      const std::int32_t next = codes[n_taken_++];
      if (code != nullptr) {
        *code = next;
      }
    });
    return array;
  }

  std::int32_t clamp(std::int32_t code) const {
    return std::min(std::max(code, -code_max_ - 1), code_max_);
  }
  Bin bin(std::uint32_t halvings) const {
    return interp::makeBin(interp::binUnits(halvings, n_axes_, sub_bits_, plan_.has_alpha));
  }
  static Array pick(const Array& from, Axes axes, Axes odd) {
    Array picked(interp::pointsOf(from.n, axes, odd));
    picked.each([&](std::size_t x, std::size_t y, std::size_t z) {
      const auto p = finePoint(axes, odd, x, y, z);
      picked.at(x, y, z) = from.at(p[0], p[1], p[2]);
    });
    return picked;
  }

  /// Reconstruction of a lattice of n points; x and index are null when decoding.
  Array run(const Steps& steps,
            const Extents& n,
            const Array* x,
            const Array* index,
            std::uint32_t halvings,
            bool is_nested) {
    if (steps.levels.empty()) {
      return lorenzo(steps.lorenzo, n, x, index, bin(halvings), is_nested);
    }
    const auto group = interp::finest(steps.levels);
    const Level& level = group.front();
    const Axes a = level.axes;
    const Steps below = interp::withoutFinest(steps);
    const std::uint32_t h = halvings + interp::countAxes(a);
    Array base(interp::halved(n, a));
    if (x != nullptr) {
      const Array x_even = pick(*x, a, 0);
      const Array i_even = pick(*index, a, 0);
      base = run(below, base.n, &x_even, &i_even, h, is_nested);
    } else {
      base = run(below, base.n, nullptr, nullptr, h, is_nested);
    }
    Array fine(n);
    base.each([&](std::size_t i, std::size_t j, std::size_t k) {
      const auto p = finePoint(a, 0, i, j, k);
      fine.at(p[0], p[1], p[2]) = base.at(i, j, k);
    });
    const std::vector<Array> t = interpolated(level, base, n);
    if (level.is_nested) {
      nested(level, group, t[a], x, index, halvings, fine);
    } else {
      plain(level, t, x, index, bin(halvings), fine);
    }
    return fine;
  }

  /// By class: the base lattice interpolated along its axes, x before y before z.
  static std::vector<Array> interpolated(const Level& level, const Array& base, const Extents& n) {
    Extents padded = base.n;
    std::array<std::size_t, 3> o = {};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (level.axes >> axis & 1) {
        padded[axis] += 3;
        o[axis] = 1;
      }
    }
    Array g(padded);
    base.each([&](std::size_t x, std::size_t y, std::size_t z) {
      g.at(x + o[0], y + o[1], z + o[2]) = base.at(x, y, z);
    });
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (level.axes >> axis & 1) {
        const std::size_t step = axis == 0 ? 1 : axis == 1 ? g.n[0] : std::size_t{g.n[0]} * g.n[1];
        g.each([&](std::size_t x, std::size_t y, std::size_t z) {
          if (std::array{x, y, z}[axis] == 1) {
            interp::setGhosts(&g.at(x, y, z), static_cast<std::ptrdiff_t>(step), base.n[axis],
                              n[axis] % 2 == 1);
          }
        });
      }
    }
    std::vector<Array> t(8, Array({0, 0, 0}));
    std::vector<Array> padded_t(8, Array({0, 0, 0}));
    padded_t[0] = g;
    for (Axes odd = 1; odd < 8; ++odd) {
      if ((odd & ~level.axes) != 0) {
        continue;
      }
      const std::size_t axis = odd >= 4 ? 2 : odd >= 2 ? 1 : 0;
      const Array& from = padded_t[odd & ~(1u << axis)];
      Extents smaller = from.n;
      smaller[axis] -= 3;
      Array to(smaller);
      to.each([&](std::size_t x, std::size_t y, std::size_t z) {
        std::int32_t v[4];
        for (std::size_t i = 0; i < 4; ++i) {
          v[i] = from.at(x + (axis == 0 ? i : 0), y + (axis == 1 ? i : 0), z + (axis == 2 ? i : 0));
        }
        to.at(x, y, z) = interp::between(level.kernels[axis], v[0], v[1], v[2], v[3]);
      });
      padded_t[odd] = to;
      // Without the ghosts along the other axes.
      t[odd] = Array(base.n);
      t[odd].each([&](std::size_t x, std::size_t y, std::size_t z) {
        const auto skip = [&](std::size_t i) {
          return (level.axes >> i & 1) != 0 && (odd >> i & 1) == 0 ? 1u : 0u;
        };
        t[odd].at(x, y, z) = to.at(x + skip(0), y + skip(1), z + skip(2));
      });
    }
    return t;
  }

  void plain(const Level& level,
             const std::vector<Array>& t,
             const Array* x,
             const Array* index,
             const Bin& q,
             Array& fine) {
    std::vector<Array> c(8, Array({0, 0, 0}));
    for (const Axes odd : std::array<Axes, 7>{1, 2, 4, 3, 5, 6, 7}) {
      if ((odd & ~level.axes) != 0) {
        continue;
      }
      c[odd] = Array(interp::pointsOf(fine.n, level.axes, odd));
      if (x == nullptr) {
        c[odd] = take(c[odd].n);
      }
      c[odd].each([&](std::size_t i, std::size_t j, std::size_t k) {
        const auto p = finePoint(level.axes, odd, i, j, k);
        const std::int32_t predicted = bits::wrapAdd(
            t[odd].at(i, j, k), interp::correction(weighted(level, c, odd, i, j, k), q.units));
        std::int32_t code = c[odd].at(i, j, k);
        if (x != nullptr) {
          const std::int32_t value = x->at(p[0], p[1], p[2]);
          const std::int32_t wanted =
              value == kNone ? 0 : interp::codeOf(bits::wrapSub(value, predicted), q);
          code = clamp(wanted);
          if (code != wanted) {
            clamped.push_back(static_cast<std::uint32_t>(index->at(p[0], p[1], p[2])));
          }
          c[odd].at(i, j, k) = code;
        }
        fine.at(p[0], p[1], p[2]) = bits::wrapAdd(predicted, interp::wrapMul(code, q.units));
      });
      if (x != nullptr) {
        put(c[odd]);
      }
    }
  }

  static std::int32_t weighted(const Level& level,
                               const std::vector<Array>& c,
                               Axes odd,
                               std::size_t i,
                               std::size_t j,
                               std::size_t k) {
    const auto code = [&](Axes of, Axes step) {
      return static_cast<std::uint32_t>(
          c[of].near(i + (step & 1), j + (step >> 1 & 1), k + (step >> 2)));
    };
    std::uint32_t sum = 0;
    std::size_t place = 0;
    const std::size_t pair = odd == 3 ? 0 : odd == 5 ? 1 : 2;
    const auto weight = [&](std::size_t which) {
      return static_cast<std::uint32_t>(odd == 7 ? interp::kCubeSets[level.cube_set][which]
                                                 : interp::kPairSets[level.pair_sets[pair]][which]);
    };
    const std::uint32_t n_odd = interp::countAxes(odd);
    for (Axes axis = 1; axis < 8 && n_odd > 1; axis = static_cast<Axes>(2 * axis)) {
      if (odd & axis) {
        const Axes of = static_cast<Axes>(odd & ~axis);
        sum += weight(place++) * 2 * (code(of, 0) + code(of, axis));
      }
    }
    for (Axes of = 1; of < 8 && n_odd == 3; of = static_cast<Axes>(2 * of)) {
      const Axes u = of == 1 ? 2 : 1;
      const Axes v = of == 4 ? 2 : 4;
      sum += weight(place++) *
             (code(of, 0) + code(of, u) + code(of, v) + code(of, static_cast<Axes>(u | v)));
    }
    return static_cast<std::int32_t>(sum);
  }

  void nested(const Level& level,
              std::span<const Level> group,
              const Array& t,
              const Array* x,
              const Array* index,
              std::uint32_t halvings,
              Array& fine) {
    const Axes a = level.axes;
    const Extents n = interp::pointsOf(fine.n, a, a);
    Array d(n);
    if (x != nullptr) {
      d = pick(*x, a, a);
      const Array places = pick(*index, a, a);
      d.each([&](std::size_t i, std::size_t j, std::size_t k) {
        std::int32_t& v = d.at(i, j, k);
        v = v == kNone ? kNone : bits::wrapSub(v, t.at(i, j, k));
      });
      d = run(interp::innerSteps(group), n, &d, &places, halvings, true);
    } else {
      d = run(interp::innerSteps(group), n, nullptr, nullptr, halvings, true);
    }
    d.each([&](std::size_t i, std::size_t j, std::size_t k) {
      const auto p = finePoint(a, a, i, j, k);
      fine.at(p[0], p[1], p[2]) = bits::wrapAdd(t.at(i, j, k), d.at(i, j, k));
    });
  }

  Array lorenzo(Axes axes,
                const Extents& n,
                const Array* x,
                const Array* index,
                const Bin& q,
                bool is_nested) {
    Array v(n);
    Array c = x == nullptr ? take(n) : Array(n);
    const auto predictedFrom = [&](const Array& bins, std::size_t i, std::size_t j, std::size_t k) {
      std::uint32_t predicted = 0;
      for (Axes back = 1; back < 8; ++back) {
        const std::size_t bi = back & 1;
        const std::size_t bj = back >> 1 & 1;
        const std::size_t bk = back >> 2;
        if ((back & ~axes) == 0 && bi <= i && bj <= j && bk <= k) {
          const auto u = static_cast<std::uint32_t>(bins.at(i - bi, j - bj, k - bk));
          predicted += interp::countAxes(back) % 2 == 1 ? u : 0 - u;
        }
      }
      return static_cast<std::int32_t>(predicted);
    };
    Array wanted_bins(n);  // as they would be if every difference fitted its code
    std::int32_t first = 0;
    if (x != nullptr && !is_nested) {
      bool has_first = false;
      wanted_bins.each([&](std::size_t i, std::size_t j, std::size_t k) {
        if (!has_first && x->at(i, j, k) != kNone) {
          has_first = true;
          first = interp::codeOf(x->at(i, j, k), q);
        }
      });
    }
    v.each([&](std::size_t i, std::size_t j, std::size_t k) {
      const std::int32_t p = predictedFrom(v, i, j, k);
      if (x != nullptr) {
        const std::int32_t value = x->at(i, j, k);
        wanted_bins.at(i, j, k) = value != kNone   ? interp::codeOf(value, q)
                                  : is_nested      ? 0
                                  : i + j + k == 0 ? first
                                                   : predictedFrom(wanted_bins, i, j, k);
        const std::int32_t wanted = bits::wrapSub(wanted_bins.at(i, j, k), p);
        c.at(i, j, k) = clamp(wanted);
        if (c.at(i, j, k) != wanted && value != kNone) {
          clamped.push_back(static_cast<std::uint32_t>(index->at(i, j, k)));
        }
      }
      v.at(i, j, k) = bits::wrapAdd(p, c.at(i, j, k));
    });
    if (x != nullptr) {
      put(c);
    }
    for (std::int32_t& u : v.values) {
      u = interp::wrapMul(u, q.units);
    }
    return v;
  }

  const Plan& plan_;
  std::uint32_t sub_bits_;
  std::int32_t code_max_;
  std::uint32_t n_axes_ = 0;
  std::size_t n_taken_ = 0;
};

}  // namespace fz::test::interp_reference
