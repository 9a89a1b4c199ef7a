#include "fz/bound_kind.h"

namespace fz {

std::string_view boundKindName(ErrorBoundMode mode) {
  switch (mode) {
    case ErrorBoundMode::ABS:
      return "abs";
    case ErrorBoundMode::REL:
      return "rel";
    case ErrorBoundMode::NOA:
      return "range";
  }
  return "unknown";
}

std::optional<ErrorBoundMode> boundKindFromName(std::string_view text) {
  for (const auto mode : {ErrorBoundMode::ABS, ErrorBoundMode::REL, ErrorBoundMode::NOA}) {
    if (text == boundKindName(mode)) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string_view boundKindName(const BoundInfo& bound) {
  const bool is_of_largest = bound.mode == ErrorBoundMode::REL && !isPointwise(bound);
  return is_of_largest ? "max" : boundKindName(bound.mode);
}

}  // namespace fz
