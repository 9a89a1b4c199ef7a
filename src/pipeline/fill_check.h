#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "backends/cpu/parallel_for.h"
#include "backends/cpu/value_ends.h"
#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/error.h"
#include "fz/span.h"

namespace fz {

/// Throws FillValueError as Pipeline::requireRangeWithoutFill() says. `bound` is what a frame of
/// these values states; bounds that no range of theirs led to, and types other than float and
/// double, pass.
void checkRangeBound(const BoundInfo& bound,
                     DataType type,
                     ByteView values,
                     std::span<const double> fill,
                     const CpuExecutor& executor);

/// A field that cannot be read here: the ends of part of it, and how to ask for more.
template <class T>
struct DistantField {
  std::size_t n_values = 0;
  ValueEnds<T> sample;  ///< of values that are not missing, as those of all()
  std::function<ValueEnds<T>()> all;
  std::function<std::size_t(T)> count_of;
};
void checkRangeBound(const BoundInfo& bound, const DistantField<float>& field);
void checkRangeBound(const BoundInfo& bound, const DistantField<double>& field);

/// What is to be said of a field by its ends and how often the outermost of them occur: a value at
/// an end that is no rare extreme. `requested` is the part of the range that a bound is.
template <class T>
struct CountedEnds {
  ValueEnds<T> ends;
  std::size_t n_low = 0;
  std::size_t n_high = 0;
  std::size_t n_values = 0;
};
std::optional<FillValueFinding> findFill(const CountedEnds<float>& field, double requested);
std::optional<FillValueFinding> findFill(const CountedEnds<double>& field, double requested);
/// Throws FillValueError for it.
[[noreturn]] void refuseFill(const FillValueFinding& finding);

/// "-9999 occurs 5 times in 10 values and makes the range 10304 instead of 34, as fill values do".
std::string describeFill(const FillValueFinding& finding);
/// The value that such a check would name, whatever the bound; looks at all values.
std::optional<FillValueFinding> suspectedFill(DataType type,
                                              ByteView values,
                                              std::span<const double> fill,
                                              const CpuExecutor& executor);

}  // namespace fz
