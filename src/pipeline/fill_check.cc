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

#include "backends/cpu/value_ends.h"
#include "fz/error.h"

namespace fz {

namespace {

/// A range that is more than so many times that of the other values is not theirs any more.
constexpr double kWidening = 10.0;
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
  explicit Values(ByteView bytes) : bytes_(bytes) {}
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
};

template <class T>
void addBlock(ValueEnds<T>& ends, const Values<T>& values, std::size_t begin, std::size_t end) {
  constexpr std::size_t kGroup = 64;  // at least one step of countWithoutNews()
  for (std::size_t i = begin; i < end;) {
    const T* const aligned = values.from(i);
    i += aligned != nullptr ? countWithoutNews(aligned, end - i, ends) : 0;
    for (const std::size_t stop = std::min(end, i + kGroup); i < stop; ++i) {
      ends.add(values[i]);
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
      ends.add(values[begin + k]);
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

/// A declared value as the field has it; nothing where a T cannot be it.
template <class T>
std::optional<T> inField(double fill) {
  const bool fits = std::fabs(fill) <= static_cast<double>(std::numeric_limits<T>::max());
  return fits ? std::optional(static_cast<T>(fill)) : std::nullopt;
}

template <class T>
bool isDeclared(std::span<const double> fill, T x) {
  return std::any_of(fill.begin(), fill.end(),
                     [&](double value) { return inField<T>(value) == x; });
}

template <class T>
ValueEnds<T> endsWithout(const Values<T>& values,
                         std::span<const double> fill,
                         const CpuExecutor& executor) {
  ValueEnds<T> all;
  forParts(
      executor, values.size(),
      [&](std::size_t begin, std::size_t end) {
        ValueEnds<T> part;
        for (std::size_t i = begin; i < end; ++i) {
          if (!isDeclared(fill, values[i])) {
            part.add(values[i]);
          }
        }
        return part;
      },
      [&](const ValueEnds<T>& part) { all.add(part); });
  return all;
}

/// What a range is measured by: that of these values, and of a single one its size.
template <class T>
long double scaleOf(T low, T high) {
  return low < high ? width(low, high) : std::fabs(static_cast<long double>(low));
}

/// Whether part of the values shows already that nothing is wrong: whichever value is taken from an
/// end of the field, at least the part without its own end remains, and a declared value inside of
/// the part is at no end.
template <class T>
bool isSound(const ValueEnds<T>& sample, long double range, std::span<const double> fill) {
  if (!sample.hasRange()) {
    return false;
  }
  const bool has_fill_outside = std::any_of(fill.begin(), fill.end(), [&](double value) {
    const std::optional<T> x = inField<T>(value);
    return x && !(*x > sample.low && *x < sample.high);
  });
  const long double rest =
      std::min(width(sample.next_low, sample.high), width(sample.low, sample.next_high));
  return !has_fill_outside && range <= static_cast<long double>(kWidening) * rest;
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

template <class T>
[[noreturn]] void refuse(const Suspect<T>& suspect,
                         FillValueFinding finding,
                         const ValueEnds<T>& all,
                         double requested) {
  finding.value = static_cast<double>(suspect.value);
  finding.range = static_cast<double>(width(all.low, all.high));
  const bool has_rest = !suspect.rest.isEmpty();
  finding.range_without =
      has_rest ? static_cast<double>(width(suspect.rest.low, suspect.rest.high)) : 0.0;
  finding.bound_without =
      has_rest ? requested * static_cast<double>(scaleOf(suspect.rest.low, suspect.rest.high))
               : requested;
  throw FillValueError(
      finding, fmt::format("the bound relative to the range is refused: {}{} occurs {} times in {} "
                           "values and makes the range {:.6g} instead of {:.6g}{}",
                           finding.is_declared ? "the fill value " : "", suspect.value,
                           finding.n_found, finding.n_values, finding.range, finding.range_without,
                           finding.is_declared ? "" : ", as fill values do"));
}

/// Stages round a bound in their own ways, some to f32; a range that was given is another one.
bool isOfRange(const BoundInfo& bound, long double range) {
  constexpr long double kRounding = 1e-3L;
  const long double meant = static_cast<long double>(bound.requested) *
                            std::min<long double>(range, std::numeric_limits<double>::max());
  return std::fabs(static_cast<long double>(bound.absolute) - meant) <= kRounding * meant;
}

template <class T>
void check(const BoundInfo& bound,
           const Values<T>& values,
           std::span<const double> fill,
           const CpuExecutor& executor) {
  constexpr long double kRounding = 1.001L;
  const long double stated =
      static_cast<long double>(bound.absolute) / static_cast<long double>(bound.requested);
  const auto is_sound = [&](const ValueEnds<T>& ends) {
    return isSound(ends, stated * kRounding, fill);
  };
  const ValueEnds<T> sample = endsOfSample(values, is_sound);
  if (is_sound(sample)) {
    return;
  }
  const std::optional<ValueEnds<T>> scanned = endsOf(values, sample, executor, is_sound);
  if (!scanned || !scanned->hasRange() || !isOfRange(bound, width(scanned->low, scanned->high))) {
    return;
  }
  const ValueEnds<T>& all = *scanned;
  FillValueFinding finding;
  finding.n_values = values.size();
  const bool is_low = isDeclared(fill, all.low);
  if (is_low || isDeclared(fill, all.high)) {
    const T value = is_low ? all.low : all.high;
    finding.is_declared = true;
    finding.n_found = countOf(values, value, executor);
    refuse<T>({value, endsWithout(values, fill, executor)}, finding, all, bound.requested);
  }
  if (const std::optional<Suspect<T>> suspect = suspectOf(all)) {
    finding.n_found = countOf(values, suspect->value, executor);
    if (finding.n_found > 1) {
      refuse<T>(*suspect, finding, all, bound.requested);
    }
  }
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
    check(bound, Values<float>(values), fill, executor);
  } else if (type == DataType::FLOAT64) {
    check(bound, Values<double>(values), fill, executor);
  }
}

}  // namespace fz
