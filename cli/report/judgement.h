#pragma once

#include <string>
#include <vector>

#include "report/figures.h"

namespace fz::report {

/// A kept bound says nothing of whether the archive is any good; these sentences do.
enum class Severity : std::uint8_t {
  kNote,   ///< to know
  kDoubt,  ///< to look at
  kLoss,   ///< what the field was about is gone
};

struct Judgement {
  Severity severity = Severity::kNote;
  std::string about;  ///< a word for programs
  std::string text;
};

/// The worst first.
std::vector<Judgement> judge(const Input& input, const Figures& figures);
/// "note", "doubt" or "loss".
std::string_view severityName(Severity severity);

}  // namespace fz::report
