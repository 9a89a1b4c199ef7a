#include "fused/interp/plan.h"

#include <algorithm>

#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::interp {

namespace {

constexpr std::uint32_t kIsoLevels[4] = {0, 8, 5, 4};  // by dimensions
constexpr std::uint32_t kMaxInner = 31;
// Bits of a level. SPEC: plan.
constexpr std::uint32_t kNestedBit = 3;
constexpr std::uint32_t kFirstKernelBit = 4;
constexpr std::uint32_t kKernelBits = 2;
constexpr std::uint32_t kPairBits = 3;
constexpr std::uint32_t kCubeBits = 4;
constexpr std::array<Axes, 3> kPairs = {kX | kY, kX | kZ, kY | kZ};

std::size_t levelBytes(Axes axes) {
  return countAxes(axes);  // 6, 11 or 23 bits
}

/// Levels of `steps` that a lattice of n allows, from fine to coarse, and the Lorenzo axes; what is
/// left of the lattice is put into n.
template <class Keep>
void fitLevels(const Steps& steps, Extents& n, Keep keep) {
  for (Steps rest = steps; !rest.levels.empty(); rest = withoutFinest(rest)) {
    const std::span<const Level> group = finest(rest.levels);
    Level level = group.front();
    level.axes &= activeAxes(n);
    if (level.axes != 0) {
      keep(level, group, n);
      n = halved(n, level.axes);
    }
  }
}

Level inStandardForm(Level level) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!has(level.axes, axis)) {
      level.kernels[axis] = Kernel::kCubic;
    }
    if ((level.axes & kPairs[axis]) != kPairs[axis]) {
      level.pair_sets[axis] = 0;
    }
  }
  level.cube_set = level.axes == kXyz ? level.cube_set : std::uint8_t{0};
  return level;
}

}  // namespace

bool Plan::add(const Level& level) {
  if (n_levels == kMaxLevels) {
    return false;
  }
  levels[n_levels++] = level;
  return true;
}

bool Plan::operator==(const Plan& other) const {
  return has_alpha == other.has_alpha && lorenzo == other.lorenzo &&
         std::equal(levels.begin(), levels.begin() + n_levels, other.levels.begin(),
                    other.levels.begin() + other.n_levels);
}

std::size_t countOuter(std::span<const Level> levels) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < levels.size(); i += 1u + levels[i].n_inner) {
    ++n;
  }
  return n;
}

std::span<const Level> finest(std::span<const Level> levels) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < levels.size(); i += 1u + levels[i].n_inner) {
    last = i;
  }
  return levels.subspan(last);
}

Axes activeAxes(const Extents& n) {
  return static_cast<Axes>((n[0] > 1 ? kX : 0) | (n[1] > 1 ? kY : 0) | (n[2] > 1 ? kZ : 0));
}

Extents halved(const Extents& n, Axes axes) {
  return pointsOf(n, axes, 0);
}

Extents pointsOf(const Extents& n, Axes axes, Axes odd) {
  Extents points = n;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(axes, axis)) {
      points[axis] = n[axis] / 2 + (has(odd, axis) ? 0 : n[axis] % 2);
    }
  }
  return points;
}

Plan isoPlan(const Extents& n) {
  Plan wanted;
  wanted.lorenzo = kXyz;
  Level level;
  level.axes = kXyz;
  for (std::uint32_t i = 0; i < kIsoLevels[countAxes(activeAxes(n))]; ++i) {
    wanted.add(level);
  }
  return fittedPlan(wanted, n);
}

Plan lorenzoPlan(const Extents& n) {
  Plan plan;
  plan.lorenzo = activeAxes(n);
  return plan;
}

Plan fittedPlan(const Plan& plan, const Extents& n) {
  // Strides grow from the finest level on, the list from the coarsest: gathered backwards.
  Plan backwards;
  backwards.has_alpha = plan.has_alpha;
  Extents left = n;
  fitLevels(plan.steps(), left, [&](Level level, std::span<const Level> group, const Extents& at) {
    level = inStandardForm(level);
    if (level.is_nested) {
      Extents inside = pointsOf(at, level.axes, level.axes);
      level.n_inner = 0;
      fitLevels(innerSteps(group), inside,
                [&](const Level& inner, std::span<const Level>, const Extents&) {
                  backwards.add(inStandardForm(inner));
                  ++level.n_inner;
                });
      level.inner_lorenzo = static_cast<Axes>(level.inner_lorenzo & activeAxes(inside));
    }
    backwards.add(level);
  });
  std::reverse(backwards.levels.begin(), backwards.levels.begin() + backwards.n_levels);
  backwards.lorenzo = static_cast<Axes>(plan.lorenzo & activeAxes(left));
  return backwards;
}

// ---- bytes

std::size_t planBytes(const Plan& plan) {
  std::size_t n_bytes = 2;
  for (const Level& level : plan.steps().levels) {
    n_bytes += levelBytes(level.axes) + (level.is_nested ? 1 : 0);
  }
  return n_bytes;
}

void writePlan(const Plan& plan, ByteWriter& out) {
  const std::span<const Level> levels = plan.steps().levels;
  out.u8(static_cast<std::uint8_t>(plan.lorenzo | (plan.has_alpha ? 1 << kNestedBit : 0)));
  out.u8(static_cast<std::uint8_t>(countOuter(levels)));
  for (const Level& level : levels) {
    std::uint32_t word = level.axes | (level.is_nested ? 1u << kNestedBit : 0u);
    std::uint32_t at = kFirstKernelBit;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (has(level.axes, axis)) {
        word |= static_cast<std::uint32_t>(level.kernels[axis]) << at;
        at += kKernelBits;
      }
    }
    for (std::size_t pair = 0; pair < 3; ++pair) {
      if ((level.axes & kPairs[pair]) == kPairs[pair]) {
        word |= std::uint32_t{level.pair_sets[pair]} << at;
        at += kPairBits;
      }
    }
    word |= level.axes == kXyz ? std::uint32_t{level.cube_set} << at : 0u;
    for (std::size_t i = 0; i < levelBytes(level.axes); ++i) {
      out.u8(static_cast<std::uint8_t>(word >> (8 * i)));
    }
    if (level.is_nested) {
      out.u8(static_cast<std::uint8_t>(level.inner_lorenzo | level.n_inner << 3));
    }
  }
}

namespace {

Level readLevel(ByteReader& in) {
  Level level;
  std::uint32_t word = in.u8();
  level.axes = static_cast<Axes>(word & kXyz);
  level.is_nested = (word >> kNestedBit & 1) != 0;
  for (std::size_t i = 1; i < levelBytes(level.axes); ++i) {
    word |= std::uint32_t{in.u8()} << (8 * i);
  }
  word >>= kFirstKernelBit;
  const auto take = [&](std::uint32_t n_bits, std::uint32_t end) {
    const std::uint32_t value = word & ((1u << n_bits) - 1);
    word >>= n_bits;
    FZ_REQUIRE(value < end, ErrorCode::kCorrupt, "Interp: a level with choice {} of {}", value,
               end);
    return static_cast<std::uint8_t>(value);
  };
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(level.axes, axis)) {
      level.kernels[axis] = static_cast<Kernel>(take(kKernelBits, kKernels));
    }
  }
  for (std::size_t pair = 0; pair < 3; ++pair) {
    if ((level.axes & kPairs[pair]) == kPairs[pair]) {
      level.pair_sets[pair] = take(kPairBits, kPairSets.size());
    }
  }
  if (level.axes == kXyz) {
    level.cube_set = take(kCubeBits, kCubeSets.size());
  }
  FZ_REQUIRE(word == 0 && !in.failed(), ErrorCode::kCorrupt, "Interp: a level with bits left over");
  if (level.is_nested) {
    const std::uint8_t inner = in.u8();
    level.inner_lorenzo = static_cast<Axes>(inner & kXyz);
    level.n_inner = static_cast<std::uint8_t>(inner >> 3);
  }
  return level;
}

/// Levels from fine to coarse on a lattice of n, and Lorenzo on what is left of it.
void checkSteps(const Steps& steps, Extents n, Axes allowed) {
  for (Steps rest = steps; !rest.levels.empty(); rest = withoutFinest(rest)) {
    const std::span<const Level> group = finest(rest.levels);
    const Level& level = group.front();
    FZ_REQUIRE(level.axes != 0 && (level.axes & ~(allowed & activeAxes(n))) == 0,
               ErrorCode::kCorrupt, "Interp: a level along axes {} of a lattice of {} x {} x {}",
               level.axes, n[0], n[1], n[2]);
    if (level.is_nested) {
      FZ_REQUIRE(countAxes(level.axes) == 1 && allowed == kXyz, ErrorCode::kCorrupt,
                 "Interp: a nested level along axes {}", level.axes);
      checkSteps(innerSteps(group), pointsOf(n, level.axes, level.axes),
                 static_cast<Axes>(kXyz & ~level.axes));
    }
    n = halved(n, level.axes);
  }
  FZ_REQUIRE((steps.lorenzo & ~activeAxes(n)) == 0, ErrorCode::kCorrupt,
             "Interp: Lorenzo along axes {} of a lattice of {} x {} x {}", steps.lorenzo, n[0],
             n[1], n[2]);
}

}  // namespace

Plan readPlan(ByteReader& in, const Extents& n) {
  Plan plan;
  const std::uint8_t first = in.u8();
  const std::uint8_t n_outer = in.u8();
  plan.lorenzo = static_cast<Axes>(first & kXyz);
  plan.has_alpha = first >> kNestedBit == 1;
  FZ_REQUIRE(first < 16 && !in.failed(), ErrorCode::kCorrupt, "Interp: a plan that begins with {}",
             first);
  for (std::uint32_t outer = 0; outer < n_outer; ++outer) {
    std::uint32_t n_inner = 0;
    for (std::uint32_t i = 0; i <= n_inner; ++i) {
      const Level level = readLevel(in);
      FZ_REQUIRE(!in.failed() && (i == 0 || !level.is_nested) && plan.add(level),
                 ErrorCode::kCorrupt, "Interp: a plan that ends in level {}, or nests twice",
                 plan.n_levels);
      n_inner = i == 0 ? level.n_inner : n_inner;
    }
  }
  FZ_REQUIRE(in.remaining() == 0, ErrorCode::kCorrupt, "Interp: {} bytes behind the plan",
             in.remaining());
  checkSteps(plan.steps(), n, kXyz);
  return plan;
}

// ---- text

namespace {

/// Reads a plan's text word by word.
class PlanParser {
 public:
  explicit PlanParser(std::string_view text) : all_(text), left_(text) {}

  Plan parse() {
    Plan plan;
    plan.has_alpha = takeWord("alpha");
    plan.lorenzo = lorenzo();
    for (skipSpaces(); !left_.empty(); skipSpaces()) {
      const bool is_nested = take("N");
      Level level = levelHead();
      level.is_nested = is_nested;
      require(plan.n_levels < Plan::kMaxLevels, "no more levels");
      const std::size_t place = plan.n_levels;
      plan.add(level);
      if (is_nested) {
        require(countAxes(level.axes) == 1 && take("("), "one axis and a plan in ()");
        plan.levels[place].inner_lorenzo = lorenzo();
        for (skipSpaces(); !take(")"); skipSpaces()) {
          const Level inner = levelHead();
          require((inner.axes & level.axes) == 0, "inner levels along other axes");
          require(plan.add(inner) && ++plan.levels[place].n_inner <= kMaxInner, "fewer levels");
        }
      }
    }
    return plan;
  }

 private:
  void require(bool condition, std::string_view needed) const {
    FZ_REQUIRE_ARG(condition, "Interp: plan '{}' needs {} at '{}'", all_, needed, left_);
  }
  void skipSpaces() { left_.remove_prefix(std::min(left_.find_first_not_of(' '), left_.size())); }
  bool take(std::string_view text) {
    const bool is_next = left_.starts_with(text);
    left_.remove_prefix(is_next ? text.size() : 0);
    return is_next;
  }
  bool takeWord(std::string_view word) {
    skipSpaces();
    const std::string_view behind = left_.substr(std::min(word.size(), left_.size()));
    return (behind.empty() || behind.front() == ' ' || behind.front() == ':' ||
            behind.front() == ')') &&
           take(word);
  }
  Axes axes() {
    Axes found = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      found = static_cast<Axes>(found |
                                (take(std::string_view("xyz").substr(axis, 1)) ? 1 << axis : 0));
    }
    require(found != 0, "axes (x, y, z in this order)");
    return found;
  }
  Axes lorenzo() {
    if (!takeWord("lorenzo") || !take(":")) {
      return kXyz;
    }
    return take("none") ? Axes{0} : axes();
  }
  std::uint8_t digit(std::string_view digits, std::string_view needed) {
    const std::size_t place = left_.empty() ? left_.npos : digits.find(left_.front());
    require(place != digits.npos, needed);
    left_.remove_prefix(1);
    return static_cast<std::uint8_t>(place);
  }
  Level levelHead() {
    Level level;
    level.axes = axes();
    if (take(":")) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (has(level.axes, axis)) {
          level.kernels[axis] = static_cast<Kernel>(digit("lcn", "a kernel (l, c or n) per axis"));
        }
      }
    }
    if (countAxes(level.axes) > 1 && take(":")) {
      for (std::size_t pair = 0; pair < 3; ++pair) {
        if ((level.axes & kPairs[pair]) == kPairs[pair]) {
          level.pair_sets[pair] = digit("0123456", "a weight set (0 to 6) per pair of axes");
        }
      }
      level.cube_set = level.axes == kXyz
                           ? digit("0123456789abc", "a weight set (0 to 9, a to c) for xyz")
                           : std::uint8_t{0};
    }
    require(left_.empty() || left_.front() == ' ' || left_.front() == '(' || left_.front() == ')',
            "a space");
    return level;
  }

  std::string_view all_;
  std::string_view left_;
};

std::string axesText(Axes axes) {
  std::string text;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (has(axes, axis)) {
      text.push_back("xyz"[axis]);
    }
  }
  return text.empty() ? "none" : text;
}

std::string levelText(const Level& level) {
  std::string kernels;
  std::string sets;
  for (std::size_t i = 0; i < 3; ++i) {
    if (has(level.axes, i)) {
      kernels.push_back("lcn"[static_cast<std::size_t>(level.kernels[i])]);
    }
    if ((level.axes & kPairs[i]) == kPairs[i]) {
      sets.push_back("0123456"[level.pair_sets[i]]);
    }
  }
  if (level.axes == kXyz) {
    sets.push_back("0123456789abc"[level.cube_set]);
  }
  return fmt::format("{}{}:{}{}{}", level.is_nested ? "N" : "", axesText(level.axes), kernels,
                     sets.empty() ? "" : ":", sets);
}

}  // namespace

Plan parsePlan(std::string_view text) {
  return PlanParser(text).parse();
}

std::string planText(const Plan& plan) {
  std::string text =
      fmt::format("{}lorenzo:{}", plan.has_alpha ? "alpha " : "", axesText(plan.lorenzo));
  std::uint32_t n_open = 0;
  for (const Level& level : plan.steps().levels) {
    text += fmt::format(" {}", levelText(level));
    if (level.is_nested) {
      text += fmt::format("(lorenzo:{}", axesText(level.inner_lorenzo));
      n_open = level.n_inner + 1u;
    }
    if (n_open == 1) {
      text.push_back(')');
    }
    n_open -= n_open > 0 ? 1 : 0;
  }
  return text;
}

}  // namespace fz::interp
