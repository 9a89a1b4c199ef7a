#include "manual.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace fz::cli {

namespace {

/// "-b, --bound KIND:E" with the fonts of a manual.
std::string optionHead(const CLI::Option& option) {
  std::string head;
  for (const std::string& name : option.get_snames()) {
    head += fmt::format("{}\\fB\\-{}\\fR", head.empty() ? "" : ", ", roff(name));
  }
  for (const std::string& name : option.get_lnames()) {
    head += fmt::format("{}\\fB\\-\\-{}\\fR", head.empty() ? "" : ", ", roff(name));
  }
  if (option.get_items_expected_max() > 0) {
    head += fmt::format(" \\fI{}\\fR", roff(option.get_type_name()));
  }
  return head;
}

std::string optionList(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      text += fmt::format(".TP\n\\fI{}\\fR\n{}\n", roff(option->get_type_name()),
                          roff(option->get_description()));
      continue;
    }
    const std::string usual = option->get_default_str();
    text += fmt::format(".TP\n{}\n{}{}\n", optionHead(*option), roff(option->get_description()),
                        usual.empty() ? "" : fmt::format(" (default: {})", roff(usual)));
  }
  return text;
}

std::string synopsis(const CLI::App& app) {
  std::string text = fmt::format("\\fBfz {}\\fR [\\fIoptions\\fR]", app.get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const bool is_needed = option->get_required();
      text += fmt::format(" {}\\fI{}\\fR{}{}", is_needed ? "" : "[", roff(option->get_type_name()),
                          option->get_items_expected_max() > 1 ? "..." : "", is_needed ? "" : "]");
    }
  }
  return text;
}

}  // namespace

std::string roff(const std::string& text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
    is_line_start = c == '\n';
  }
  return out;
}

std::string manualPage(const CLI::App& root) {
  const auto commands = root.get_subcommands([](const CLI::App*) { return true; });
  std::string text = fmt::format(
      ".TH FZ 1 \"\" \"fz {}\" \"User Commands\"\n.SH NAME\nfz \\- error\\-bounded compression of "
      "scientific arrays\n.SH SYNOPSIS\n",
      FZ_CLI_VERSION);
  for (const CLI::App* command : commands) {
    text += synopsis(*command) + "\n.br\n";
  }
  text += ".SH DESCRIPTION\n" + roff(root.get_description()) +
          "\nEvery finite value comes back within the bound that was asked for, NaN and infinities "
          "come back bit for bit, and a file is complete under its name or not there.\n"
          ".SH COMMANDS\n";
  for (const CLI::App* command : commands) {
    text += fmt::format(".SS {}\n{}\n{}", command->get_name(), roff(command->get_description()),
                        optionList(*command));
    const std::string footer = command->get_footer();
    if (!footer.empty()) {
      text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
    }
  }
  text += fmt::format(".SH OPTIONS\n{}", optionList(root));
  text +=
      ".SH EXIT STATUS\n0 ok, 1 usage, 2 files, 3 damaged input, 4 bound or verify failure, 5 out "
      "of memory or over a limit, 6 no device.\n"
      ".SH ENVIRONMENT\n"
      ".TP\n\\fBFZ_BACKEND\\fR\nwhere \\fB\\-\\-backend auto\\fR runs: cpu or cuda\n"
      ".TP\n\\fBFZ_FUSION\\fR\noff runs every stage alone, with the same bytes\n"
      ".TP\n\\fBFZ_NVRTC\\fR\noff compiles no kernels at run time, with the same bytes; or the path "
      "of libnvrtc.so\n"
      ".TP\n\\fBFZ_CACHE_DIR\\fR\nwhere kernels compiled at run time are kept; empty: nowhere\n"
      ".SH SEE ALSO\n\\fBfzgmod\\-cli\\fR(1)\n";
  return text;
}

}  // namespace fz::cli
