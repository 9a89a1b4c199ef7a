#pragma once

#include <optional>
#include <string_view>

#include "fz/bound.h"

/// The words for bounds that every front end uses.
namespace fz {

/// "abs", "rel" or "range": how users ask for a mode.
std::string_view boundKindName(ErrorBoundMode mode);
/// Nothing for any other text.
std::optional<ErrorBoundMode> boundKindFromName(std::string_view text);

/// Whether every value is bounded by its own size, so that there is no absolute bound.
inline bool isPointwise(const BoundInfo& bound) {
  return bound.mode == ErrorBoundMode::REL && bound.absolute == 0.0;
}
/// The absolute bound of every value; nothing where it depends on the value.
inline std::optional<double> absoluteBound(const BoundInfo& bound) {
  return isPointwise(bound) ? std::nullopt : std::optional(bound.absolute);
}

/// What the bound of a frame is called: "abs", "rel", "range", or "max" where the stage takes REL
/// of the largest |x| (LorenzoQuant), which bounds no value by its own size.
std::string_view boundKindName(const BoundInfo& bound);

}  // namespace fz
