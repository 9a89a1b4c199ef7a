// The tool fz: picks a sub-command, runs it, turns failures into messages and exit codes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "commands.h"
#include "fz/backend.h"
#include "fzm_format.h"
#include "hdf5_io.h"
#include "input_bytes.h"
#include "report/hook.h"
#include "standard_streams.h"
#include "suggest.h"

namespace {

using fz::cli::Command;
using fz::cli::ExitCode;
using fz::cli::Failure;

constexpr const char* kToolFooter =
    "Examples:\n"
    "  fz compress -b range:1e-4 -d 3600x1800 temperature.f32\n"
    "  fz verify temperature.f32.fzm temperature.f32\n"
    "  fz decompress -o temperature.npy temperature.f32.fzm\n"
    "\n"
    "Exit codes: 0 ok, 1 usage, 2 files, 3 damaged input, 4 bound or verify failure,\n"
    "5 out of memory or over a limit, 6 no device. 'fz COMMAND --help' has more.";

std::string versionText() {
  return fmt::format("fz {} (reads FZM 3.0 to {}.{}; backends: cpu{}; {} HDF5)", FZ_CLI_VERSION,
                     fz::FZM_VERSION_MAJOR, fz::FZM_VERSION_MINOR,
                     fz::isBackendAvailable(fz::Backend::CUDA) ? ", cuda" : "",
                     fz::cli::isHdf5Built() ? "with" : "without");
}

std::vector<std::string> commandNames(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) {
    names.push_back(command.app->get_name());
  }
  return names;
}

/// The word that stands where a sub-command has to be, refused with what may have been meant.
[[noreturn]] void failUnknownCommand(const std::string& word,
                                     const std::vector<std::string>& names) {
  std::error_code ignored;
  if (std::filesystem::exists(word, ignored)) {
    const char* command = word.ends_with(".fzm") ? "decompress" : "compress";
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' is a file, not a command; did you mean 'fz {} {}'?", word,
                              command, word));
  }
  const std::string hint = fz::cli::didYouMean(word, names);
  throw Failure(ExitCode::kUsage, fmt::format("no command '{}'{}", word,
                                              hint.empty() ? "; 'fz --help' lists them" : hint));
}

std::vector<std::string> optionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

/// A positional argument with what its help says of it.
std::string asked(const CLI::App& app, const std::string& name) {
  const CLI::Option* const option = app.get_option_no_throw(name);
  return option == nullptr
             ? name
             : fmt::format("{} ({})", option->get_type_name(), option->get_description());
}

/// The parser's message, with its terse ones about the number of values written out.
std::string messageOf(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::string option = what.substr(0, what.find(':'));
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
      !what.starts_with('-')) {
    return fmt::format("{} is missing", asked(app, what.substr(0, what.find(' '))));
  }
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) {
    return what;
  }
  return fmt::format("{} {}", option,
                     what.ends_with(" missing") ? "needs a value" : "is given more than once");
}

/// What the parser did not understand, in words of ours.
Failure parseFailure(const CLI::App& root, const CLI::ParseError& error) {
  const auto parsed = root.get_subcommands();
  const CLI::App& app = parsed.empty() ? root : *parsed.front();
  const std::string help =
      fmt::format("'{}{} --help' shows the options", parsed.empty() ? "" : "fz ", app.get_name());
  std::vector<std::string> left = app.remaining();
  const std::vector<std::string> left_over = root.remaining();
  left.insert(left.end(), left_over.begin(), left_over.end());
  if (left.empty()) {
    return {ExitCode::kUsage, fmt::format("{}; {}", messageOf(app, error), help)};
  }
  const auto option = std::find_if(left.begin(), left.end(),
                                   [](const std::string& s) { return s.starts_with('-'); });
  if (option == left.end()) {
    return {ExitCode::kUsage, fmt::format("'{}' is one argument too many; {}", left.front(), help)};
  }
  const std::string hint = fz::cli::didYouMean(*option, optionNames(app));
  return {ExitCode::kUsage,
          fmt::format("no option '{}'{}", *option, hint.empty() ? "; " + help : hint)};
}

void parse(CLI::App& app, std::vector<std::string> words, const std::vector<Command>& commands) {
  const std::vector<std::string> names = commandNames(commands);
  if (words.front() == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  const std::string& first = words.front();
  if (!first.starts_with('-') && std::find(names.begin(), names.end(), first) == names.end()) {
    failUnknownCommand(first, names);
  }
  std::reverse(words.begin(), words.end());
  app.parse(words);
}

/// An empty value mostly comes from a variable that a script never set; as "not given" it would
/// change what the command does.
void refuseEmptyValues(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (!option->get_positional() && std::find(values.begin(), values.end(), "") != values.end()) {
      const std::string name = option->get_snames().empty() ? "--" + option->get_lnames().front()
                                                            : "-" + option->get_snames().front();
      throw Failure(ExitCode::kUsage,
                    fmt::format("{} has an empty value; give it one or leave {} out", name, name));
    }
  }
}

/// The parser takes -9 for a number, and so for a file.
void refuseLevels(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& word : option->results()) {
      const bool is_level = word.size() > 1 && word.front() == '-' &&
                            word.find_first_not_of("0123456789", 1) == std::string::npos;
      if (option->get_positional() && is_level) {
        throw Failure(ExitCode::kUsage,
                      fmt::format("no option '{}': there are no levels but --fast and --best, and "
                                  "'fz presets' lists what lies between; a file of that name is "
                                  "'./{}'",
                                  word, word));
      }
    }
  }
}

/// The chosen command, run to its end.
ExitCode runCommand(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.app->parsed()) {
      continue;
    }
    try {
      refuseEmptyValues(*command.app);
      refuseLevels(*command.app);
      return command.run();
    } catch (...) {
      const Failure failure = fz::cli::currentFailure(command.task);
      fz::cli::printFailure(command.app->get_name(), failure.what());
      return failure.code();
    }
  }
  return ExitCode::kOk;
}

ExitCode run(const std::vector<std::string>& words) {
  CLI::App app{"Error-bounded compression of scientific arrays.", "fz"};
  app.set_version_flag("-V,--version", versionText);
  app.require_subcommand(1);
  app.footer(kToolFooter);
  app.get_formatter()->column_width(32);
  const std::vector<Command> commands = {
      fz::cli::addCompress(app), fz::cli::addDecompress(app), fz::cli::addTest(app),
      fz::cli::addInfo(app),     fz::cli::addVerify(app),     fz::cli::addBench(app),
      fz::cli::addConvert(app),  fz::cli::addStages(app),     fz::cli::addPresets(app),
      fz::cli::addRecover(app),  fz::cli::addSuggest(app),    fz::cli::addTune(app),
      fz::cli::addHdf5(app),     fz::cli::addGenerate(app),
  };
  if (words.empty()) {
    fz::cli::sayText(app.help());
    return ExitCode::kUsage;
  }
  try {
    parse(app, words, commands);
  } catch (const CLI::Success& request) {
    app.exit(request);  // prints the help or the version
    return ExitCode::kOk;
  } catch (const CLI::ParseError& error) {
    const Failure failure = parseFailure(app, error);
    fz::cli::printFailure("", failure.what());
    return failure.code();
  }
  return runCommand(commands);
}

}  // namespace

int fz::cli::runTool(const std::vector<std::string>& words) {
  occupyClosedStreams();
  catchVanishingFiles();
  ignoreFileSizeSignal();
  ExitCode code = ExitCode::kUsage;
  try {
    setCommandLine(words);
    code = run(words);
  } catch (...) {
    const Failure failure = currentFailure(Task::kEncode);
    printFailure("", failure.what());
    code = failure.code();
  }
  // A full disk shows only now.
  if (std::fflush(stdout) != 0 && code == ExitCode::kOk) {
    printFailure("", "cannot write standard output; check the free space");
    code = ExitCode::kIo;
  }
  return static_cast<int>(code);
}
