#include "pipeline/fill_check.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <vector>

#include "backends/cpu/missing.h"
#include "backends/cpu/value_ends.h"
#include "fz/error.h"

namespace fz {

namespace {

/// A range that is more than so many times that of the other values is not theirs any more.
constexpr double kWidening = 10.0;
/// What occurs no more often than once in so many values is no mask, but an extreme.
constexpr std::size_t kRareShare = 1000;
constexpr std::size_t kParts = 64;  // a fixed number, so nothing is allocated
constexpr std::size_t kBlockValues = std::size_t{1} << 13;
// A sample: short runs of values, one in each of at most so many equal shares of the field.
constexpr std::size_t kSampleRuns = 512;
constexpr std::size_t kRunValues = 8;

/// high - low, which for the largest values is more than a T holds.
template <class T>
long double width(T low, T high) {
  return static_cast<long double>(high) - static_cast<long double>(low);
}

/// Values of a caller, who need not have aligned them.
template <class T>
class Values {
 public:
  Values(ByteView bytes, std::span<const double> fill) : bytes_(bytes) {
    for (const double value : fill) {
      addFill(value, fill_);
    }
  }
  bool isDeclared(T x) const { return std::find(fill_.begin(), fill_.end(), x) != fill_.end(); }
  std::size_t size() const { return bytes_.size() / sizeof(T); }
  T operator[](std::size_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  /// From an index on; null where they are not aligned.
  const T* from(std::size_t index) const {
    const std::uint8_t* const first = bytes_.data() + index * sizeof(T);
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0;
    return is_aligned ? reinterpret_cast<const T*>(first) : nullptr;
  }

 private:
  ByteView bytes_;
  std::vector<T> fill_;
};

/// The values that were not declared to be missing.
template <class T>
void addBlock(ValueEnds<T>& ends, const Values<T>& values, std::size_t begin, std::size_t end) {
  constexpr std::size_t kGroup = 64;  // at least one step of countWithoutNews()
  for (std::size_t i = begin; i < end;) {
    const T* const aligned = values.from(i);
    i += aligned != nullptr ? countWithoutNews(aligned, end - i, ends) : 0;
    for (const std::size_t stop = std::min(end, i + kGroup); i < stop; ++i) {
      if (!values.isDeclared(values[i])) {
        ends.add(values[i]);
      }
    }
  }
}

/// work(begin, end) on parts of the field; merge(result) for each of the results.
template <class Work, class Merge>
void forParts(const CpuExecutor& executor, std::size_t n_values, Work work, Merge merge) {
  using Result = decltype(work(std::size_t{}, std::size_t{}));
  struct alignas(64) Part {
    Result result{};
  };
  std::array<Part, kParts> parts;
  const std::size_t n_parts =
      std::clamp<std::size_t>(n_values / kBlockValues, 1, executor.threadCount() == 1 ? 1 : kParts);
  parallelFor(executor, n_parts, [&](std::size_t part) {
    parts[part].result = work(n_values / n_parts * part,
                              part + 1 == n_parts ? n_values : n_values / n_parts * (part + 1));
  });
  for (std::size_t part = 0; part < n_parts; ++part) {
    merge(parts[part].result);
  }
}

/// Of all values; nothing when part of them was enough for is_sound(ends).
template <class T, class IsSound>
std::optional<ValueEnds<T>> endsOf(const Values<T>& values,
                                   const ValueEnds<T>& sample,
                                   const CpuExecutor& executor,
                                   const IsSound& is_sound) {
  std::atomic<bool> is_enough = false;
  ValueEnds<T> all;
  forParts(
      executor, values.size(),
      [&](std::size_t begin, std::size_t end) {
        ValueEnds<T> part = sample;
        for (std::size_t i = begin; i < end && !is_enough.load(std::memory_order_relaxed);
             i += kBlockValues) {
          addBlock(part, values, i, std::min(end, i + kBlockValues));
          if (is_sound(part)) {
            is_enough.store(true, std::memory_order_relaxed);
          }
        }
        return part;
      },
      [&](const ValueEnds<T>& part) { all.add(part); });
  return is_enough.load() ? std::nullopt : std::optional(all);
}

/// Of a few values; the fewer, the sooner is_sound(ends) is content.
template <class T, class IsSound>
ValueEnds<T> endsOfSample(const Values<T>& values, const IsSound& is_sound) {
  ValueEnds<T> ends;
  const std::size_t n_runs = std::min(kSampleRuns, values.size() / kRunValues);
  const std::size_t share = n_runs == 0 ? 0 : values.size() / n_runs;
  for (std::size_t i = 0; i < n_runs; ++i) {
    // All over the field from the first few on, and at odd places of the shares, so that no period
    // of the field can hide from all runs.
    constexpr std::size_t kStride = 1723;  // prime and above kSampleRuns: every run has its turn
    constexpr std::size_t kScatter = 2654435761;
    const std::size_t run = i * kStride % n_runs;
    const std::size_t begin = run * share + run * kScatter % (share - kRunValues + 1);
    for (std::size_t k = 0; k < kRunValues; ++k) {
      if (!values.isDeclared(values[begin + k])) {
        ends.add(values[begin + k]);
      }
    }
    if (std::has_single_bit(i + 1) && is_sound(ends)) {
      break;
    }
  }
  return ends;
}

template <class T>
std::size_t countOf(const Values<T>& values, T wanted, const CpuExecutor& executor) {
  std::size_t n_found = 0;
  forParts(
      executor, values.size(),
      [&](std::size_t begin, std::size_t end) {
        const T* const aligned = values.from(begin);
        if (aligned != nullptr) {
          return countEqual(aligned, end - begin, wanted);
        }
        std::size_t n = 0;
        for (std::size_t i = begin; i < end; ++i) {
          n += values[i] == wanted ? 1u : 0u;
        }
        return n;
      },
      [&](std::size_t n) { n_found += n; });
  return n_found;
}

/// What a range is measured by: that of these values, and of a single one its size.
template <class T>
long double scaleOf(T low, T high) {
  return low < high ? width(low, high) : std::fabs(static_cast<long double>(low));
}

/// Whether part of the values shows already that nothing is wrong: whichever value is taken from an
/// end of the field, at least the part without its own end remains.
template <class T>
bool isSound(const ValueEnds<T>& sample, long double range) {
  if (!sample.hasRange()) {
    return false;
  }
  const long double rest =
      std::min(width(sample.next_low, sample.high), width(sample.low, sample.next_high));
  return range <= static_cast<long double>(kWidening) * rest;
}

template <class T>
struct Suspect {
  T value;
  ValueEnds<T> rest;  // low and high only
};

/// A value at an end that makes the range that much wider; of two the one that does more.
template <class T>
std::optional<Suspect<T>> suspectOf(const ValueEnds<T>& all) {
  const long double range = width(all.low, all.high);
  const long double without_low = scaleOf(all.next_low, all.high);
  const long double without_high = scaleOf(all.low, all.next_high);
  const bool is_low = without_low <= without_high;
  const long double rest = is_low ? without_low : without_high;
  if (!(rest > 0.0L) || !(range > static_cast<long double>(kWidening) * rest)) {
    return std::nullopt;
  }
  ValueEnds<T> others;
  others.low = is_low ? all.next_low : all.low;
  others.high = is_low ? all.high : all.next_high;
  return Suspect<T>{is_low ? all.low : all.high, others};
}

/// What is to be said of a suspect that occurs so often.
template <class T>
std::optional<FillValueFinding> findingOf(const Suspect<T>& suspect,
                                          const ValueEnds<T>& all,
                                          std::size_t n_found,
                                          std::size_t n_values,
                                          double requested) {
  FillValueFinding finding;
  finding.n_values = n_values;
  finding.n_found = n_found;
  if (n_found < 2 || n_found <= n_values / kRareShare) {
    return std::nullopt;
  }
  finding.value = static_cast<double>(suspect.value);
  finding.text = fmt::format("{}", suspect.value);
  finding.range = static_cast<double>(width(all.low, all.high));
  finding.range_without = static_cast<double>(width(suspect.rest.low, suspect.rest.high));
  finding.bound_without =
      requested * static_cast<double>(scaleOf(suspect.rest.low, suspect.rest.high));
  return finding;
}

/// What is to be said of a value at an end that is no rare extreme.
template <class T>
std::optional<FillValueFinding> findingIn(const Values<T>& values,
                                          const ValueEnds<T>& all,
                                          double requested,
                                          const CpuExecutor& executor) {
  const std::optional<Suspect<T>> suspect = suspectOf(all);
  if (!suspect) {
    return std::nullopt;
  }
  const std::size_t n_found = countOf(values, suspect->value, executor);
  return findingOf(*suspect, all, n_found, values.size(), requested);
}

template <class T>
std::optional<FillValueFinding> findingIn(const CountedEnds<T>& field, double requested) {
  if (!field.ends.hasRange()) {
    return std::nullopt;
  }
  const std::optional<Suspect<T>> suspect = suspectOf(field.ends);
  if (!suspect) {
    return std::nullopt;
  }
  const std::size_t n_found = suspect->value == field.ends.low ? field.n_low : field.n_high;
  return findingOf(*suspect, field.ends, n_found, field.n_values, requested);
}

/// Stages round a bound in their own ways, some to f32; a range that was given is another one.
bool isOfRange(const BoundInfo& bound, long double range) {
  constexpr long double kRounding = 1e-3L;
  const long double meant = static_cast<long double>(bound.requested) *
                            std::min<long double>(range, std::numeric_limits<double>::max());
  return std::fabs(static_cast<long double>(bound.absolute) - meant) <= kRounding * meant;
}

template <class T>
void check(const BoundInfo& bound, const Values<T>& values, const CpuExecutor& executor) {
  constexpr long double kRounding = 1.001L;
  const long double stated =
      static_cast<long double>(bound.absolute) / static_cast<long double>(bound.requested);
  const auto is_sound = [&](const ValueEnds<T>& ends) { return isSound(ends, stated * kRounding); };
  const ValueEnds<T> sample = endsOfSample(values, is_sound);
  if (is_sound(sample)) {
    return;
  }
  const std::optional<ValueEnds<T>> scanned = endsOf(values, sample, executor, is_sound);
  if (!scanned || !scanned->hasRange() || !isOfRange(bound, width(scanned->low, scanned->high))) {
    return;
  }
  if (const auto finding = findingIn(values, *scanned, bound.requested, executor)) {
    refuseFill(*finding);
  }
}

template <class T>
void check(const BoundInfo& bound, const DistantField<T>& field) {
  if (bound.mode != ErrorBoundMode::NOA || !(bound.requested > 0.0)) {
    return;
  }
  constexpr long double kRounding = 1.001L;
  const long double stated =
      static_cast<long double>(bound.absolute) / static_cast<long double>(bound.requested);
  if (isSound(field.sample, stated * kRounding)) {
    return;
  }
  const ValueEnds<T> all = field.all();
  if (isSound(all, stated * kRounding) || !all.hasRange() ||
      !isOfRange(bound, width(all.low, all.high))) {
    return;
  }
  const std::optional<Suspect<T>> suspect = suspectOf(all);
  if (!suspect) {
    return;
  }
  const auto finding =
      findingOf(*suspect, all, field.count_of(suspect->value), field.n_values, bound.requested);
  if (finding) {
    refuseFill(*finding);
  }
}

template <class T>
std::optional<FillValueFinding> suspectOfAll(const Values<T>& values, const CpuExecutor& executor) {
  const auto never = [](const ValueEnds<T>& /*ends*/) { return false; };
  const std::optional<ValueEnds<T>> all = endsOf(values, {}, executor, never);
  return all && all->hasRange() ? findingIn(values, *all, 1.0, executor) : std::nullopt;
}

}  // namespace

void checkRangeBound(const BoundInfo& bound,
                     DataType type,
                     ByteView values,
                     std::span<const double> fill,
                     const CpuExecutor& executor) {
  if (bound.mode != ErrorBoundMode::NOA || !(bound.requested > 0.0)) {
    return;
  }
  if (type == DataType::FLOAT32) {
    check(bound, Values<float>(values, fill), executor);
  } else if (type == DataType::FLOAT64) {
    check(bound, Values<double>(values, fill), executor);
  }
}

void checkRangeBound(const BoundInfo& bound, const DistantField<float>& field) {
  check(bound, field);
}
void checkRangeBound(const BoundInfo& bound, const DistantField<double>& field) {
  check(bound, field);
}

std::optional<FillValueFinding> findFill(const CountedEnds<float>& field, double requested) {
  return findingIn(field, requested);
}
std::optional<FillValueFinding> findFill(const CountedEnds<double>& field, double requested) {
  return findingIn(field, requested);
}

void refuseFill(const FillValueFinding& finding) {
  throw FillValueError(finding,
                       "the bound relative to the range is refused: " + describeFill(finding));
}

std::string describeFill(const FillValueFinding& finding) {
  return fmt::format(
      "{} occurs {} times in {} values and makes the range {:.6g} instead of {:.6g}, as fill "
      "values do",
      finding.text, finding.n_found, finding.n_values, finding.range, finding.range_without);
}

std::optional<FillValueFinding> suspectedFill(DataType type,
                                              ByteView values,
                                              std::span<const double> fill,
                                              const CpuExecutor& executor) {
  if (type == DataType::FLOAT32) {
    return suspectOfAll(Values<float>(values, fill), executor);
  }
  return type == DataType::FLOAT64 ? suspectOfAll(Values<double>(values, fill), executor)
                                   : std::nullopt;
}

}  // namespace fz
