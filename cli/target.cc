#include "target.h"

#include <cmath>
#include <fmt/format.h>

#include "fz/target.h"
#include "standard_streams.h"

namespace fz::cli {

void applyTarget(const PipelineChoice& choice,
                 const Field& field,
                 bool quiet,
                 CompressOptions& options,
                 Progress& progress) {
  if (!choice.target) {
    return;
  }
  progress.beginBytes(
      fmt::format("looking for {}:{}", targetKindName(choice.target->kind), choice.target->value),
      field.bytes.size());
  const TargetBound found = findBound(field.type, field.bytes, *choice.target, options);
  progress.pause();
  options.error_bound = found.absolute;
  options.mode = ErrorBoundMode::ABS;
  if (!quiet) {
    const std::string reached =
        std::isinf(found.reached)
            ? std::string("nothing is lost")
            : fmt::format("{}:{:.4g}", targetKindName(choice.target->kind), found.reached);
    say("  {}:{} by abs:{:.6g}: {} ({} trials)\n", targetKindName(choice.target->kind),
        choice.target->value, found.absolute, reached, found.n_trials);
  }
}

}  // namespace fz::cli
