#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fz {

// Names and values fixed by files and existing callers.
// NOLINTBEGIN(readability-identifier-naming)
enum class ErrorBoundMode : std::uint8_t {
  ABS = 0,  ///< |x - x'| <= eb
  REL = 1,  ///< |x - x'| <= eb * |x|, for every value (LorenzoQuant: eb * max|x|)
  NOA = 2,  ///< |x - x'| <= eb * (max - min)
};

/// What linear quantisation does with a value that its code cannot keep within the bound.
enum class LinearPolicy : std::uint8_t {
  Throw,      ///< compress() throws, with the count, the first index and the value
  Wrap,       ///< the code wraps; the caller takes the error
  Guarantee,  ///< a tighter step, so that no finite value misses; throws when none can do it
};
// NOLINTEND(readability-identifier-naming)

/// The bound of a frame: what the user asked for and what it came to.
struct BoundInfo {
  ErrorBoundMode mode = ErrorBoundMode::ABS;
  double requested = 0.0;
  /// Absolute bound on every value; 0 for pointwise REL, where it depends on the value.
  double absolute = 0.0;
};

std::string_view errorBoundModeName(ErrorBoundMode mode);
std::optional<ErrorBoundMode> errorBoundModeFromName(std::string_view text);
std::string_view linearPolicyName(LinearPolicy policy);
std::optional<LinearPolicy> linearPolicyFromName(std::string_view text);

}  // namespace fz
