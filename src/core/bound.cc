#include "fz/bound.h"

namespace fz {

std::string_view errorBoundModeName(ErrorBoundMode mode) {
  switch (mode) {
    case ErrorBoundMode::ABS:
      return "ABS";
    case ErrorBoundMode::REL:
      return "REL";
    case ErrorBoundMode::NOA:
      return "NOA";
  }
  return "unknown";
}

std::optional<ErrorBoundMode> errorBoundModeFromName(std::string_view text) {
  for (const auto mode : {ErrorBoundMode::ABS, ErrorBoundMode::REL, ErrorBoundMode::NOA}) {
    if (text == errorBoundModeName(mode)) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string_view linearPolicyName(LinearPolicy policy) {
  switch (policy) {
    case LinearPolicy::Throw:
      return "Throw";
    case LinearPolicy::Wrap:
      return "Wrap";
    case LinearPolicy::Guarantee:
      return "Guarantee";
  }
  return "unknown";
}

std::optional<LinearPolicy> linearPolicyFromName(std::string_view text) {
  for (const auto policy : {LinearPolicy::Throw, LinearPolicy::Wrap, LinearPolicy::Guarantee}) {
    if (text == linearPolicyName(policy)) {
      return policy;
    }
  }
  return std::nullopt;
}

}  // namespace fz
