#include "preset_bounds.h"

#include <array>

#include "fz/bound_kind.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "options.h"

namespace fz::cli {

bool takesBound(const Preset& preset, ErrorBoundMode mode) {
  if (&preset == &losslessPreset()) {
    return false;
  }
  constexpr std::array<float, 4> kValues = {1, 2, 3, 4};
  CompressOptions options;
  options.preset = preset.name;
  options.error_bound = 0.01;
  options.mode = mode;
  options.backend = Backend::CPU;
  options.threads = 1;
  try {
    const FrameInfo info = inspect(compress(std::span(kValues), options));
    // A stage that takes REL of the largest value bounds no value by its own size.
    return info.bound && (mode != ErrorBoundMode::REL || isPointwise(*info.bound));
  } catch (const Error&) {
    return false;
  } catch (const InvalidArgument&) {
    return false;
  }
}

std::vector<std::string> boundsOf(const Preset& preset) {
  std::vector<std::string> kinds;
  for (const ErrorBoundMode mode :
       {ErrorBoundMode::ABS, ErrorBoundMode::NOA, ErrorBoundMode::REL}) {
    if (takesBound(preset, mode)) {
      kinds.emplace_back(boundKindName(mode));
    }
  }
  return kinds;
}

}  // namespace fz::cli
