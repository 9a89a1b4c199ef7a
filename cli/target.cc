#include "target.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "fz/target.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

std::string textOf(const ResultTarget& target) {
  return fmt::format("{}:{}", targetKindName(target.kind), target.value);
}

void use(const ResultTarget& target,
         const TargetBound& found,
         bool quiet,
         CompressOptions& options) {
  options.error_bound = found.absolute;
  options.mode = ErrorBoundMode::ABS;
  if (!quiet) {
    const std::string reached =
        std::isinf(found.reached)
            ? std::string("nothing is lost")
            : fmt::format("{}:{:.4g}", targetKindName(target.kind), found.reached);
    say("  {} by abs:{:.6g}: {} ({} trial{})\n", textOf(target), found.absolute, reached,
        found.n_trials, found.n_trials == 1 ? "" : "s");
  }
}

}  // namespace

void applyTarget(const PipelineChoice& choice,
                 const Field& field,
                 bool quiet,
                 CompressOptions& options,
                 Progress& progress) {
  if (!choice.target) {
    return;
  }
  progress.beginBytes("looking for " + textOf(*choice.target), field.bytes.size());
  const TargetBound found = findBound(field.type, field.bytes, *choice.target, options);
  progress.pause();
  use(*choice.target, found, quiet, options);
}

void applyTarget(const PipelineChoice& choice,
                 const ChunkedInput& input,
                 bool quiet,
                 ArchiveOptions& options,
                 Progress& progress) {
  if (!choice.target) {
    return;
  }
  int n_passes = 0;
  const auto read = [&](const Box& box, MutableByteView values) {
    if (std::all_of(box.origin.begin(), box.origin.end(), [](auto n) { return n == 0; })) {
      const std::string label = "looking for " + textOf(*choice.target);
      progress.beginBytes(
          n_passes == 0 ? label + ", range" : fmt::format("{}, trial {}", label, n_passes),
          input.byteCount());
      ++n_passes;
    }
    input.read(box, values);
    progress.add(values.size());
  };
  const TargetBound found = findBound(input.field.type, options, *choice.target, read);
  progress.pause();
  use(*choice.target, found, quiet, options.compress);
}

}  // namespace fz::cli
