#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "field_io.h"
#include "fz/host_api.h"

namespace fz::cli {

/// What a user should look at although the archive keeps its promises: one sentence each.
struct FieldWarnings {
  std::vector<std::string> of_loss;  ///< values may be lost, or were read in a way that was guessed
  std::vector<std::string> of_doubt;  ///< the same, but -q leaves them out
  std::vector<std::string> others;
};
FieldWarnings findWarnings(const Field& field,
                           const FrameInfo& info,
                           std::string_view pipeline,
                           bool suspects_fill);
/// For --strict: what may have been lost is an error. Throws Failure(kBound).
void refuseLoss(const FieldWarnings& warnings);
/// On standard error. Of these a quiet command says only that values may be lost. `pipeline` is the
/// name of the preset, so that none is advised that is in use. `suspects_fill`: values may look
/// like fill values that nobody declared.
void printWarnings(const Field& field,
                   const FrameInfo& info,
                   std::string_view pipeline,
                   bool is_quiet,
                   bool suspects_fill);

}  // namespace fz::cli
