// Candidates for a plan, and the choice among them.
#include "fused/interp/cpu/plan_search.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fused/interp/config.h"
#include "fused/interp/cpu/lorenzo_search.h"
#include "fused/interp/cpu/search.h"

namespace fz::interp {

namespace {

constexpr std::size_t kSearchValues = std::size_t{1} << 17;
constexpr std::size_t kJudgeValues = std::size_t{1} << 18;
// Fields up to this size are searched and judged whole. Much of their codes may be what fills
// blocks up, which parts of other extents would not tell.
constexpr std::size_t kWholeValues = std::size_t{1} << 20;
// With gaps, what is best in the parts is compared on the whole of a small field.
constexpr std::size_t kLorenzoFinalists = 3;

/// A part of a field as fixed point.
struct Crop {
  Extents n = {};
  Values x;
};

Crop cropOf(const CropSource& source,
            const Extents& n_part,
            const std::array<std::size_t, 3>& first) {
  Crop crop;
  crop.n = n_part;
  crop.x.resize(countOf(crop.n));
  source.read(first, crop.n, crop.x.data());
  return crop;
}

/// As a plan that a config can hold.
std::optional<Plan> toPlan(const FoundPlan& found, std::size_t max_bytes) {
  Plan plan;
  plan.lorenzo = found.lorenzo;
  for (const Level& level : found.levels) {
    if (!plan.add(level)) {
      return std::nullopt;
    }
  }
  return planBytes(plan) <= max_bytes ? std::optional(plan) : std::nullopt;
}

/// Whether plans differ only in what refining chooses.
bool isAlike(const Plan& a, const Plan& b) {
  return a.lorenzo == b.lorenzo &&
         std::equal(a.levels.begin(), a.levels.begin() + a.n_levels, b.levels.begin(),
                    b.levels.begin() + b.n_levels, [](const Level& one, const Level& other) {
                      return one.axes == other.axes && !one.is_nested && !other.is_nested;
                    });
}

class Tuner {
 public:
  Tuner(const Core& core,
        const CropSource& source,
        const Extents& n,
        std::uint32_t sub_bits,
        TuneFamily family,
        std::size_t max_plan_bytes)
      : core_(core),
        codes_(core.code_type),
        source_(source),
        n_(n),
        family_(family),
        max_plan_bytes_(max_plan_bytes) {
    context_.sub_bits = sub_bits;
    context_.n_axes = std::max(1u, countAxes(activeAxes(n)));
    context_.has_gaps = source.has_gaps;
    if (family == TuneFamily::kLorenzo) {
      judgeByParts(lorenzoParts(n));
    } else if (countOf(n) <= kWholeValues) {
      judgeByAll();
    } else {
      const FieldParts middle = partsOf(n, kSearchValues);
      crop_ = cropOf(source, middle.n, middle.first.front());
      judgeByParts(partsOf(n, kJudgeValues));
    }
  }

  Tuned run() {
    Tuned simple = lorenzo();
    if (family_ == TuneFamily::kLorenzo) {
      return simple;
    }
    std::vector<Named> plans = {{simple.plan, planText(simple.plan)}};
    const Plan iso = isoPlan(n_);
    std::vector<Named> open;
    if (const std::optional<Plan> found = search()) {
      open.push_back({*found, "found"});
    }
    if (open.empty() || !isAlike(open.front().plan, iso)) {
      open.push_back({iso, "iso"});
    }
    for (const Named& named : open) {
      Plan plan = refined(named.plan);
      plans.push_back({plan, named.name});
      plan.has_alpha = context_.has_alpha = true;
      plans.push_back({refined(plan), "alpha " + named.name});
      context_.has_alpha = false;
    }
    const Plan plan = cheapest(plans).plan;
    return {plan, reason_};
  }

 private:
  /// A plan, and what people call it.
  struct Named {
    Plan plan;
    std::string name;
  };

  void judgeByAll() {
    judged_.clear();
    judged_.push_back(cropOf(source_, n_, {}));
  }

  /// The middle one first: a plan that is bad there is not looked at again.
  void judgeByParts(const FieldParts& parts) {
    for (const std::array<std::size_t, 3>& first : parts.first) {
      judged_.push_back(cropOf(source_, parts.n, first));
    }
  }

  Crop& searched() { return crop_.x.empty() ? judged_.front() : crop_; }

  std::optional<Plan> search() {
    Programme programme(context_, codes_, activeAxes(n_), 0, false);
    const Crop& crop = searched();
    programme.solve(crop.x, crop.n, std::numeric_limits<Cost>::max());
    // Lorenzo alone is a candidate anyway.
    return toPlan(programme.almost().value_or(programme.found()), max_plan_bytes_);
  }

  /// The best of plain Lorenzo: without gaps as far as can be said without codes.
  Tuned lorenzo() {
    std::vector<Named> plans;
    for (std::uint32_t set = 8; set-- > 0;) {
      if (context_.has_gaps && (set & ~activeAxes(n_)) == 0) {
        Plan plan;
        plan.lorenzo = static_cast<Axes>(set);
        plans.push_back({plan, planText(plan)});
      }
    }
    if (context_.has_gaps) {  // what stands in them depends on the axes
      const Plan plan = lorenzoWithGaps(std::move(plans)).plan;
      return {plan, reason_};
    }
    EndCosts costs = {};
    Values r;
    FieldParts parts = {judged_.front().n, {}};
    parts.first.resize(judged_.size());
    for (const Crop& crop : judged_) {
      r.resize(crop.x.size());
      const EndCosts more = probeEnds({crop.x, crop.n, context_.bin(0)}, r, codes_.probeMemory());
      for (std::size_t set = 0; set < costs.size(); ++set) {
        costs[set] += more[set];
      }
    }
    return cheapestLorenzo(n_, parts, costs);
  }

  /// The best of these, judged by the whole field where it is small.
  Named lorenzoWithGaps(std::vector<Named> plans) {
    if (judged_.size() > 1 && countOf(n_) <= kWholeValues) {
      if (hasValuesToJudgeBy()) {
        plans = ranked(plans);
        plans.resize(std::min(plans.size(), kLorenzoFinalists));
      }
      judgeByAll();
    }
    return cheapest(plans);
  }

  /// Whether a quarter of each part or more is values, not gaps.
  bool hasValuesToJudgeBy() const {
    return std::all_of(judged_.begin(), judged_.end(), [](const Crop& crop) {
      const auto n_gaps = std::count(crop.x.begin(), crop.x.end(), kNoValue);
      return static_cast<std::size_t>(n_gaps) * 4 <= crop.x.size() * 3;
    });
  }

  /// The same levels, with the best of all weights. Inner levels of nested ones stay as they are.
  Plan refined(const Plan& plan) {
    Crop& crop = searched();
    Plan made = fittedPlan(plan, crop.n);
    if (made.n_levels != plan.n_levels) {
      return plan;  // the crop is too small for all of them
    }
    Values r;
    refineFrom(made, made.n_levels, crop.x, crop.n, 0, r);
    made.lorenzo = plan.lorenzo;
    return made;
  }

  /// Refines the first n_levels of a plan on their lattice; r: what they reconstruct.
  void refineFrom(
      Plan& plan, std::size_t n_levels, Values& x, const Extents& n, std::uint32_t h, Values& r) {
    r.resize(x.size());
    const Source source = sourceOf(latticeOf(x, n), context_.has_gaps);
    PlanStep step = wholePlan(plan, n, context_.sub_bits);
    step.steps.levels = step.steps.levels.first(n_levels);
    step.n_axes = context_.n_axes;
    step.halvings = h;
    if (n_levels == 0) {
      encodePlan(core_, step, source, codes_.reserve(stepsCodes(step.steps, n)), latticeOf(r, n));
      return;
    }
    const std::size_t n_group = finest(step.steps.levels).size();
    const std::size_t at = n_levels - n_group;
    Level& level = plan.levels[at];
    const Axes axes = level.axes;
    const Extents n_below = halved(n, axes);
    Values x_below(countOf(n_below));
    pickEven(core_, source, n, axes, latticeOf(x_below, n_below));
    Values r_below;
    refineFrom(plan, at, x_below, n_below, h + countAxes(axes), r_below);
    if (level.is_nested) {
      encodePlan(core_, step, source, codes_.reserve(stepsCodes(step.steps, n)), latticeOf(r, n));
      return;
    }
    const std::size_t mark = core_.stack.top();
    LevelStep one;
    one.level = level;
    one.bin = context_.bin(h);
    one.n = n;
    one.base = withGhosts(core_, r_below, n_below, axes, n);
    LevelTuner tuner(context_, codes_);
    if (h == 0 && context_.has_alpha) {
      tuner.chooseKernels(one, source);  // bins are as without alpha here, and so are weights
    } else {
      tuner.refine(one, source);
    }
    tuner.run(one, source, latticeOf(r, n));
    core_.stack.popTo(mark);
    level = one.level;
  }

  /// A plan, and what its codes on some of the parts look like.
  struct Candidate {
    Plan plan;
    std::string name;
    ClassCost codes;
    std::size_t n_values = 0;
    Cost cost = 0;
  };

  void addPart(Candidate& candidate, Crop& crop) {
    const Plan fitted = fittedPlan(candidate.plan, crop.n);
    PlanStep step = wholePlan(fitted, crop.n, context_.sub_bits);
    step.n_axes = context_.n_axes;
    const std::uint64_t n_codes = stepsCodes(step.steps, crop.n);
    encodePlan(core_, step, sourceOf(latticeOf(crop.x, crop.n), context_.has_gaps),
               codes_.reserve(n_codes), {});
    codes_.addTo(candidate.codes, n_codes);
    candidate.n_values += countOf(crop.n);
    // The plan is stored once, so a part of the field bears a part of it.
    candidate.cost = candidate.codes.total() +
                     8 * 1024 * planBytes(candidate.plan) * candidate.n_values / countOf(n_);
  }

  /// Those that can be stored, once each.
  std::vector<Candidate> candidatesOf(const std::vector<Named>& plans) const {
    std::vector<Candidate> candidates;
    for (const Named& named : plans) {
      const Plan fitted = fittedPlan(named.plan, n_);
      const bool is_known = std::any_of(candidates.begin(), candidates.end(),
                                        [&](const Candidate& c) { return c.plan == fitted; });
      if (!is_known && planBytes(fitted) <= max_plan_bytes_ &&
          stepsCodes(fitted.steps(), n_) <= tunedCodes(n_)) {
        candidates.push_back({fitted, named.name, {}, 0, 0});
      }
    }
    return candidates;
  }

  Named cheapest(const std::vector<Named>& plans) { return ranked(plans).front(); }

  /// Those that can be stored, the cheapest first; at least one.
  std::vector<Named> ranked(const std::vector<Named>& plans) {
    std::vector<Candidate> left = candidatesOf(plans);
    if (left.empty()) {
      return {{fittedPlan(plans.front().plan, n_), plans.front().name}};
    }
    const auto isCheaper = [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; };
    std::vector<Candidate> dropped;
    for (Crop& crop : judged_) {
      for (Candidate& candidate : left) {
        addPart(candidate, crop);
      }
      std::stable_sort(left.begin(), left.end(), isCheaper);
      // One part is enough to drop what is far behind.
      const Cost most = left.front().cost + left.front().cost / 32;
      while (left.back().cost > most) {
        dropped.insert(dropped.begin(), std::move(left.back()));
        left.pop_back();
      }
    }
    left.insert(left.end(), dropped.begin(), dropped.end());
    setReason(left);
    std::vector<Named> result;
    result.reserve(left.size());
    for (Candidate& candidate : left) {
      result.push_back({candidate.plan, std::move(candidate.name)});
    }
    return result;
  }

  void setReason(std::span<const Candidate> candidates) {
    const std::string where =
        judged_.size() == 1
            ? std::string("the whole field")
            : fmt::format("{} parts of {} values", judged_.size(), countOf(judged_.front().n));
    reason_ = fmt::format("bits per value, estimated on {}:", where);
    for (const Candidate& c : candidates) {
      const double bits = static_cast<double>(c.cost) / (1024.0 * static_cast<double>(c.n_values));
      reason_ += fmt::format(" {} {:.3f}{}", c.name, bits, &c == &candidates.back() ? "" : ",");
    }
  }

  const Core& core_;
  SearchContext context_ = {core_};
  CodeBuffer codes_;
  const CropSource& source_;
  Extents n_;
  TuneFamily family_;
  std::size_t max_plan_bytes_;
  Crop crop_;                 // to search; empty: what is judged
  std::vector<Crop> judged_;  // to choose among what was found
  std::string reason_;
};

}  // namespace

std::uint64_t tunedCodes(const Extents& n) {
  const std::uint64_t most =
      std::max(stepsCodes(isoPlan(n).steps(), n), stepsCodes(lorenzoPlan(n).steps(), n));
  return most + most / 4 + 4096;
}

Tuned tunePlan(const Core& core,
               const CropSource& source,
               const Extents& n,
               std::uint32_t sub_bits,
               TuneFamily family,
               std::size_t max_plan_bytes) {
  if (countOf(n) == 0) {
    return {lorenzoPlan(n), {}};
  }
  return Tuner(core, source, n, sub_bits, family, max_plan_bytes).run();
}

Tuned tunePlan(const Core& core,
               const Source& source,
               const Extents& n,
               std::uint32_t sub_bits,
               TuneFamily family,
               std::size_t max_plan_bytes) {
  const auto read = [&](const std::array<std::size_t, 3>& first, const Extents& n_crop,
                        std::int32_t* out) {
    Source part = source;
    part.data =
        static_cast<const std::uint8_t*>(source.data) +
        (first[0] + first[1] * source.row + first[2] * source.plane) * getDataTypeSize(source.type);
    pickEven(core, part, n_crop, 0, {out, n_crop, n_crop[0], std::size_t{n_crop[0]} * n_crop[1]});
  };
  return tunePlan(core, CropSource{source.has_gaps, read}, n, sub_bits, family, max_plan_bytes);
}

}  // namespace fz::interp
