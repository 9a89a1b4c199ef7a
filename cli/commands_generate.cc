#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <memory>

#include "commands.h"
#include "compat/compat_options.h"
#include "manual.h"
#include "options.h"
#include "suggest.h"

namespace fz::cli {

namespace {

ExitCode runGenerate(const CLI::App& root, const std::string& what) {
  if (what == "bash") {
    fmt::print("{}", bashCompletion(root));
  } else if (what == "zsh") {
    fmt::print("{}", zshCompletion(root));
  } else if (what == "fish") {
    fmt::print("{}", fishCompletion(root));
  } else if (what == "man") {
    fmt::print("{}", manualPage(root));
  } else if (what == "fzgmod-man") {
    fmt::print("{}", compat::manualPage());
  } else {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("cannot print '{}'; choose bash, zsh, fish, man or fzgmod-man{}", what,
                    didYouMean(what, {"bash", "zsh", "fish", "man", "fzgmod-man"})));
  }
  return ExitCode::kOk;
}

}  // namespace

Command addGenerate(CLI::App& root) {
  auto what = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand(
      "generate", "Print shell completions or the manual page, made from the options");
  app->add_option("what", *what, "bash, zsh, fish, man or fzgmod-man")
      ->type_name("WHAT")
      ->required();
  app->footer(
      "An installation has them in place already.\n"
      "\n"
      "Examples:\n"
      "  source <(fz generate bash)\n"
      "  fz generate zsh > ~/.zsh/completions/_fz\n"
      "  fz generate man | man -l -");
  return {app, [&root, what] { return runGenerate(root, *what); }, Task::kEncode};
}

}  // namespace fz::cli
