#include <fmt/format.h>

#include "compat/compat_options.h"
#include "manual.h"

namespace fz::cli::compat {

std::string manualPage() {
  std::string text = fmt::format(
      ".TH FZGMOD\\-CLI 1 \"\" \"fz {}\" \"User Commands\"\n.SH NAME\nfzgmod\\-cli \\- the command "
      "line of FZGPUModules, run by fz\n.SH SYNOPSIS\n\\fBfzgmod\\-cli\\fR (\\fB\\-z\\fR | "
      "\\fB\\-x\\fR | \\fB\\-b\\fR) \\fB\\-i\\fR \\fIINPUT\\fR [\\fB\\-o\\fR \\fIOUTPUT\\fR] "
      "[\\fIoptions\\fR]\n.SH DESCRIPTION\nFlags, defaults, report labels and exit codes are those "
      "of the tool of that name; the work is done by the same code as that of \\fBfz\\fR(1). "
      "Unknown options are errors, decompression gives the original length, and "
      "\\fB\\-\\-profile\\fR prints.\n.SH OPTIONS\n",
      FZ_CLI_VERSION);
  for (const OptionRow& row : optionRows()) {
    std::string head;
    for (const char c : row.spellings) {
      head += c == ' ' ? ", " : std::string(1, c);
    }
    text += fmt::format(
        ".TP\n\\fB{}\\fR{}\n{}{}\n", roff(head),
        row.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(std::string(row.value))),
        roff(std::string(row.help)),
        row.usual.empty() ? "" : fmt::format(" (default: {})", roff(std::string(row.usual))));
  }
  return text + ".SH EXIT STATUS\n0 done or help, 1 any error.\n.SH SEE ALSO\n\\fBfz\\fR(1)\n";
}

}  // namespace fz::cli::compat
