// Candidates for a plan, and the choice among them.
#include "fused/interp/cpu/plan_search.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fused/interp/blocks.h"
#include "fused/interp/config.h"
#include "fused/interp/cpu/lorenzo_search.h"
#include "fused/interp/cpu/refine.h"
#include "fused/interp/cpu/search.h"

namespace fz::interp {

namespace {

constexpr std::size_t kSearchValues = std::size_t{1} << 17;
constexpr std::size_t kJudgeValues = std::size_t{1} << 18;
// Ways that no nearly best plan takes in a part of so many values are left out, where that is a
// small part.
constexpr std::size_t kFirstValues = std::size_t{1} << 15;
constexpr std::size_t kFirstShare = 8;
// Fields up to this size are searched and judged whole. Much of their codes may be what fills
// blocks up, which parts of other extents would not tell.
constexpr std::size_t kWholeValues = std::size_t{1} << 20;
// With gaps, what is best in the parts is compared on the whole of a small field.
constexpr std::size_t kLorenzoFinalists = 3;
// Alpha is tried where it may pay. It gains up to a quarter where a value takes less than two bits,
// and nothing above.
constexpr Cost kAlphaShare = 4;
constexpr Cost kAlphaBits = 3;

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
  Tuner(const Search& search,
        const CropSource& source,
        const Extents& n,
        std::uint32_t sub_bits,
        std::size_t max_plan_bytes)
      : team_(search.executor,
              search.memory.workers(std::min(search.executor.threadCount(), Crew::kMostMembers)),
              search.code_type),
        crops_(search.memory.crops()),
        source_(source),
        n_(n),
        max_plan_bytes_(max_plan_bytes) {
    settings_.sub_bits = sub_bits;
    settings_.n_axes = std::max(1u, countAxes(activeAxes(n)));
    settings_.has_gaps = source.has_gaps;
    crops_.popTo(0);
  }

  /// The best of plain Lorenzo.
  Tuned lorenzo() {
    judgeByParts(lorenzoParts(n_));
    return bestLorenzo();
  }

  /// The best of all plans.
  Tuned all() {
    if (countOf(n_) <= kWholeValues) {
      judgeByAll();
      searched_ = judged_.front();
    } else {
      const FieldParts middle = partsOf(n_, kSearchValues);
      searched_ = cropOf(middle.n, middle.first.front());
      judgeByParts(partsOf(n_, kJudgeValues));
    }
    Plan plan;
    team_.run([&](Worker& lead) {
      lead_ = &lead;
      plan = bestOfAll();
      lead_ = nullptr;
    });
    return {plan, reason_};
  }

 private:
  /// A plan, and what people call it.
  struct Named {
    Plan plan;
    std::string name;
  };
  /// The same, and what its codes on the first parts look like.
  struct Candidate {
    Plan plan;
    std::string name;
    ClassCost codes = {};
    std::size_t n_parts = 0;
    Cost cost = 0;
  };

  /// f(item, worker) for all items.
  template <class F>
  void forEach(std::size_t n_items, F f) {
    const std::size_t n_coded = n_items * countOf(judged_.front().n);
    if (lead_ != nullptr) {
      lead_->forEach(n_items, n_coded, f);
    } else {
      team_.run([&](Worker& lead) { lead.forEach(n_items, n_coded, f); });
    }
  }

  Plan bestOfAll() {
    const Plan simple = bestLorenzo().plan;
    const Plan iso = isoPlan(n_);
    std::vector<Named> open;
    if (const std::optional<Plan> found = search()) {
      open.push_back({*found, "found"});
    }
    if (open.empty() || !isAlike(open.front().plan, iso)) {
      open.push_back({iso, "iso"});
    }
    std::vector<Candidate> candidates = refined(open);
    candidates.insert(candidates.begin(), {simple, planText(simple)});
    judge(candidates, 0);
    std::vector<Candidate> finer = refined(withAlpha(candidates));
    std::move(finer.begin(), finer.end(), std::back_inserter(candidates));
    return ranked(std::move(candidates)).front().plan;
  }

  Crop cropOf(const Extents& n, const std::array<std::size_t, 3>& first) {
    const Crop crop = {n, crops_.values(nullptr, countOf(n))};
    source_.read(first, n, crop.x);
    return crop;
  }

  /// A part of a crop.
  Crop partOf(const Crop& crop, const Extents& n, const std::array<std::size_t, 3>& first) {
    const Crop part = {n, crops_.values(nullptr, countOf(n))};
    const Lattice from = latticeOf(crop.x, crop.n);
    const Lattice to = latticeOf(part.x, n);
    for (std::uint32_t z = 0; z < n[2]; ++z) {
      for (std::uint32_t y = 0; y < n[1]; ++y) {
        std::copy_n(from.at(first[1] + y, first[2] + z) + first[0], n[0], to.at(y, z));
      }
    }
    return part;
  }

  void judgeByAll() {
    crops_.popTo(0);
    judged_ = {cropOf(n_, {})};
  }

  /// The middle one first: a plan that is bad there is not looked at again.
  void judgeByParts(const FieldParts& parts) {
    for (const std::array<std::size_t, 3>& first : parts.first) {
      judged_.push_back(cropOf(parts.n, first));
    }
  }

  std::optional<Plan> search() {
    Programme programme(*lead_, settings_, activeAxes(n_), 0, false);
    const FieldParts few = partsOf(searched_.n, kFirstValues);
    if (countOf(few.n) * kFirstShare <= countOf(searched_.n)) {
      Crop crop = partOf(searched_, few.n, few.first.front());
      programme.solve(crop.x, crop.n);
      programme.setOpen(programme.nearlyBest());
    }
    const FoundPlan found = programme.solve(searched_.x, searched_.n);
    // Lorenzo alone is a candidate anyway.
    return toPlan(programme.almost().value_or(found), max_plan_bytes_);
  }

  /// Plans of Lorenzo alone: without gaps as far as can be said without codes.
  Tuned bestLorenzo() {
    if (settings_.has_gaps) {  // what stands in them depends on the axes
      const Plan plan = lorenzoWithGaps().plan;
      return {plan, reason_};
    }
    std::vector<EndCosts> costs(judged_.size());
    forEach(judged_.size(), [&](std::size_t part, Worker& worker) {
      const Crop& crop = judged_[part];
      costs[part] = costsOfEnds({{crop.x, countOf(crop.n)}, crop.n, settings_.bin(0)}, 1, worker);
    });
    FieldParts parts = {judged_.front().n, {}};
    parts.first.resize(judged_.size());
    EndCosts all = {};
    for (const EndCosts& more : costs) {
      std::transform(all.begin(), all.end(), more.begin(), all.begin(), std::plus<>());
    }
    return cheapestLorenzo(n_, parts, all);
  }

  /// Judged by the whole field where it is small.
  Candidate lorenzoWithGaps() {
    std::vector<Candidate> plans;
    for (std::uint32_t set = 8; set-- > 0;) {
      if ((set & ~activeAxes(n_)) == 0) {
        Plan plan;
        plan.lorenzo = static_cast<Axes>(set);
        plans.push_back({plan, planText(plan)});
      }
    }
    if (judged_.size() > 1 && countOf(n_) <= kWholeValues) {
      if (hasValuesToJudgeBy()) {
        plans = ranked(std::move(plans));
        plans.resize(std::min(plans.size(), kLorenzoFinalists));
        for (Candidate& plan : plans) {
          plan = {plan.plan, plan.name};
        }
      }
      judgeByAll();
    }
    return ranked(std::move(plans)).front();
  }

  /// Whether a quarter of each part or more is values, not gaps.
  bool hasValuesToJudgeBy() const {
    return std::all_of(judged_.begin(), judged_.end(), [](const Crop& crop) {
      const auto n_gaps = std::count(crop.x, crop.x + countOf(crop.n), kNoValue);
      return static_cast<std::size_t>(n_gaps) * 4 <= countOf(crop.n) * 3;
    });
  }

  /// The same levels, with the best of all weights, and judged as far as that comes with it.
  std::vector<Candidate> refined(const std::vector<Named>& plans) {
    std::vector<Candidate> candidates(plans.size());
    const bool is_judged = searched_.x == judged_.front().x;
    forEach(plans.size(), [&](std::size_t i, Worker& worker) {
      Candidate& made = candidates[i];
      made = {plans[i].plan, plans[i].name};
      if (Refiner(settings_, worker)
              .refine(made.plan, searched_, is_judged ? &made.codes : nullptr)) {
        made.n_parts = is_judged ? 1 : 0;
      }
      setCost(made);
    });
    return candidates;
  }

  /// Those that smaller bins on coarse lattices may make the best of all.
  std::vector<Named> withAlpha(const std::vector<Candidate>& candidates) const {
    Cost least = std::numeric_limits<Cost>::max();
    for (const Candidate& candidate : candidates) {
      least = std::min(least, candidate.cost);
    }
    std::vector<Named> plans;
    if (least > kAlphaBits * kCostOfBit * countOf(judged_.front().n)) {
      return plans;
    }
    for (const Candidate& candidate : candidates) {
      if (candidate.plan.n_levels > 0 && candidate.cost < least + least / kAlphaShare) {
        plans.push_back({candidate.plan, "alpha " + candidate.name});
        plans.back().plan.has_alpha = true;
      }
    }
    return plans;
  }

  void addPart(Candidate& candidate, const Crop& crop, Worker& worker) const {
    const Plan fitted = fittedPlan(candidate.plan, crop.n);
    PlanStep step = wholePlan(fitted, crop.n, settings_.sub_bits);
    step.n_axes = settings_.n_axes;
    const std::uint64_t n_codes = stepsCodes(step.steps, crop.n);
    encodePlan(worker.core(countOf(crop.n)), step,
               sourceOf(latticeOf(crop.x, crop.n), settings_.has_gaps),
               worker.codes.reserve(n_codes), {});
    worker.addCodesTo(candidate.codes, n_codes);
    ++candidate.n_parts;
    setCost(candidate);
  }

  /// The plan is stored once, so a part of the field bears a part of it.
  void setCost(Candidate& candidate) const {
    const std::size_t n_values = candidate.n_parts * countOf(judged_.front().n);
    candidate.cost = candidate.codes.total() + std::uint64_t{8} * kCostOfBit *
                                                   planBytes(candidate.plan) * n_values /
                                                   countOf(n_);
  }

  /// By all parts up to this one.
  void judge(std::vector<Candidate>& candidates, std::size_t part) {
    forEach(candidates.size(), [&](std::size_t i, Worker& worker) {
      if (candidates[i].n_parts <= part) {
        addPart(candidates[i], judged_[part], worker);
      }
    });
  }

  bool canBeStored(const Plan& plan) const {
    return planBytes(plan) <= max_plan_bytes_ && stepsCodes(plan.steps(), n_) <= tunedCodes(n_);
  }

  /// Those that can be stored, the cheapest first; at least one.
  std::vector<Candidate> ranked(std::vector<Candidate> left) {
    for (Candidate& candidate : left) {
      candidate.plan = fittedPlan(candidate.plan, n_);
    }
    const Candidate first = left.front();
    std::erase_if(left, [&](const Candidate& c) { return !canBeStored(c.plan); });
    if (left.empty()) {
      return {first};
    }
    const auto isCheaper = [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; };
    std::vector<Candidate> dropped;
    for (std::size_t part = 0; part < judged_.size(); ++part) {
      judge(left, part);
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
    return left;
  }

  void setReason(std::span<const Candidate> candidates) {
    const std::size_t n_part = countOf(judged_.front().n);
    const std::string where = judged_.size() == 1
                                  ? std::string("the whole field")
                                  : fmt::format("{} parts of {} values", judged_.size(), n_part);
    reason_ = fmt::format("bits per value, estimated on {}:", where);
    for (const Candidate& c : candidates) {
      const auto n_values = static_cast<double>(c.n_parts * n_part);
      const double bits = static_cast<double>(c.cost) / (kCostOfBit * n_values);
      reason_ += fmt::format(" {} {:.3f}{}", c.name, bits, &c == &candidates.back() ? "" : ",");
    }
  }

  SearchTeam team_;
  Worker* lead_ = nullptr;  // while the team is at work
  ScratchStack& crops_;
  SearchSettings settings_;
  const CropSource& source_;
  Extents n_;
  std::size_t max_plan_bytes_;
  Crop searched_;
  std::vector<Crop> judged_;  // to choose among what was found
  std::string reason_;
};

}  // namespace

std::uint64_t tunedCodes(const Extents& n) {
  const std::uint64_t most =
      std::max(stepsCodes(isoPlan(n).steps(), n), stepsCodes(lorenzoPlan(n).steps(), n));
  return most + most / 4 + 4096;
}

Tuned tunePlan(const Search& search,
               const CropSource& source,
               const Extents& n,
               std::uint32_t sub_bits,
               TuneFamily family,
               std::size_t max_plan_bytes) {
  if (countOf(n) == 0) {
    return {lorenzoPlan(n), {}};
  }
  Tuner tuner(search, source, n, sub_bits, max_plan_bytes);
  return family == TuneFamily::kLorenzo ? tuner.lorenzo() : tuner.all();
}

Tuned tunePlan(const Search& search,
               const Source& source,
               const Extents& n,
               std::uint32_t sub_bits,
               TuneFamily family,
               std::size_t max_plan_bytes) {
  ScratchStack none;
  Scratch nothing;
  const Core core = {search.executor, nullptr, none, nothing, search.code_type, {}, nullptr};
  const auto read = [&](const std::array<std::size_t, 3>& first, const Extents& n_crop,
                        std::int32_t* out) {
    Source part = source;
    part.data =
        static_cast<const std::uint8_t*>(source.data) +
        (first[0] + first[1] * source.row + first[2] * source.plane) * getDataTypeSize(source.type);
    pickEven(core, part, n_crop, 0, latticeOf(out, n_crop));
  };
  return tunePlan(search, CropSource{source.has_gaps, read}, n, sub_bits, family, max_plan_bytes);
}

}  // namespace fz::interp
