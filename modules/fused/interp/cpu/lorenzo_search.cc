// Which axes Lorenzo alone takes differences along.
#include "fused/interp/cpu/lorenzo_search.h"

#include <algorithm>
#include <fmt/format.h>

#include "fused/interp/blocks.h"

namespace fz::interp {

namespace {

// Axes are cut to multiples of this: coarse lattices have something to interpolate, and their codes
// fill whole blocks, as they nearly do in a field that is too large to be looked at whole.
constexpr std::uint32_t kPartUnit = 32;
// Which axes pay shows in little of a field: each part has this share of it, though not less than
// makes a cube of kPartUnit.
constexpr std::size_t kShare = 32;
constexpr std::size_t kLeast = std::size_t{kPartUnit} * kPartUnit * kPartUnit;
constexpr std::size_t kMost = std::size_t{1} << 18;

std::size_t countOf(const Extents& n) {
  return std::size_t{n[0]} * n[1] * n[2];
}

}  // namespace

FieldParts partsOf(const Extents& n, std::size_t n_values) {
  FieldParts parts;
  parts.n = n;
  while (countOf(parts.n) > n_values) {
    const auto longest = std::max_element(parts.n.begin(), parts.n.end());
    if (*longest <= kPartUnit) {
      break;
    }
    const std::uint64_t wanted = std::uint64_t{*longest} * n_values / countOf(parts.n);
    const std::uint64_t next = std::max<std::uint64_t>(wanted, *longest - *longest / 4);
    const std::uint64_t units = std::max<std::uint64_t>(1, (next + kPartUnit / 2) / kPartUnit);
    const std::uint64_t fewer = (*longest - 1) / kPartUnit;
    *longest = static_cast<std::uint32_t>(std::min(units, fewer) * kPartUnit);
  }
  for (const std::uint32_t eighths : {4u, 1u, 7u}) {
    std::array<std::size_t, 3> first = {};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      first[axis] = std::uint64_t{n[axis] - parts.n[axis]} * eighths / 8;
    }
    parts.first.push_back(first);
  }
  parts.first.resize(parts.n == n ? 1 : parts.first.size());
  return parts;
}

FieldParts lorenzoParts(const Extents& n) {
  return partsOf(n, countOf(n) <= kLeast ? kLeast : std::clamp(countOf(n) / kShare, kLeast, kMost));
}

Tuned cheapestLorenzo(const Extents& n, const FieldParts& parts, const EndCosts& costs) {
  Tuned tuned;
  tuned.reason =
      parts.first.size() == 1
          ? std::string("bits per value, estimated on the whole field:")
          : fmt::format("bits per value, estimated on {} parts of {} values:", parts.first.size(),
                        countOf(parts.n));
  const double n_looked_at = static_cast<double>(parts.first.size() * countOf(parts.n));
  for (std::uint32_t set = 8; set-- > 0;) {
    if ((set & ~activeAxes(n)) != 0) {
      continue;
    }
    Plan plan;
    plan.lorenzo = static_cast<Axes>(set);
    const bool is_first = tuned.reason.back() == ':';
    tuned.reason += fmt::format("{} {} {:.3f}", is_first ? "" : ",", planText(plan),
                                static_cast<double>(costs[set]) / (kCostOfBit * n_looked_at));
    if (is_first || costs[set] < costs[tuned.plan.lorenzo]) {
      tuned.plan = plan;
    }
  }
  return tuned;
}

}  // namespace fz::interp
