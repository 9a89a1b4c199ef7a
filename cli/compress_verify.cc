#include "compress_verify.h"

#include <algorithm>
#include <fmt/format.h>

#include "failure.h"

namespace fz::cli {

namespace {

/// What the archive records, or where it stands in without loss and records nothing, what was
/// declared.
std::vector<double> fillToVerify(const CompressJob& job,
                                 const Field& field,
                                 const FrameInfo& info) {
  if (info.missing || !info.isFallback()) {
    return fillOf(info);
  }
  CompressOptions options;
  applyFill(job.fill, field.fill, options);
  return options.fill;
}

/// What --verify holds an archive to: all that it promises, and no less than was asked for.
BoundRule ruleToVerify(const CompressJob& job, const Field& field, const FrameInfo& info) {
  const std::optional<BoundRule> promised = ruleOfFrame(info);
  if (!job.pipeline.bound || (promised && promised->kind == BoundRule::Kind::kBits)) {
    if (!promised) {
      throw Failure(ExitCode::kUsage,
                    "verify: this pipeline promises no bound (linear_policy Wrap); give the one to "
                    "check with -b");
    }
    return *promised;
  }
  BoundRule rule =
      ruleOfRequest(*job.pipeline.bound, field.type, field.bytes, fillToVerify(job, field, info));
  if (promised) {
    // A range that was given (value_base) counts, not the one of these data.
    const bool has_range = job.pipeline.bound->mode == ErrorBoundMode::NOA;
    rule.value = has_range ? promised->value : std::min(rule.value, promised->value);
  }
  return rule;
}

}  // namespace

Decoded verifyFrame(const CompressJob& job,
                    const Field& field,
                    const Frame& frame,
                    const FrameInfo& info,
                    Progress& progress) {
  progress.beginRun("decoding", field.bytes.size());
  Array decoded = decompress(frame, {.backend = parseBackend(job.common.backend),
                                     .threads = job.common.threads,
                                     .progress = progress.pipeline()});
  if (decoded.bytes().size() != field.bytes.size()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("verify: {} bytes decoded to {}; nothing was written, please report "
                              "this",
                              field.bytes.size(), decoded.bytes().size()));
  }
  progress.beginBytes("checking", field.bytes.size());
  CheckReport check =
      checkValues(field.type, field.bytes, decoded.bytes(), ruleToVerify(job, field, info),
                  [&](std::size_t n) { progress.add(n); });
  return {std::move(decoded), check};
}

void requirePassed(const CheckReport& check) {
  if (!check.passed()) {
    throw Failure(ExitCode::kBound,
                  fmt::format("verify: {}; no archive was written, use another preset or bound",
                              violationText(check)));
  }
}

}  // namespace fz::cli
