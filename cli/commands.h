#pragma once

#include <functional>
#include <string>
#include <vector>

#include "failure.h"

namespace CLI {
class App;
}

namespace fz::cli {

class JsonRows;

/// The tool fz as a function: arguments without the name of the program, exit code. Failures are
/// printed, none is thrown.
int runTool(const std::vector<std::string>& words);

/// A sub-command: its options, and what it does once they are parsed.
struct Command {
  CLI::App* app = nullptr;
  /// Throws Failure, or what the library throws.
  std::function<ExitCode()> run;
  Task task = Task::kEncode;  ///< decides how errors of the library are read
};

Command addCompress(CLI::App& root);
Command addDecompress(CLI::App& root);
Command addTest(CLI::App& root);
Command addInfo(CLI::App& root);
Command addVerify(CLI::App& root);
Command addBench(CLI::App& root);
Command addConvert(CLI::App& root);
Command addStages(CLI::App& root);
Command addPresets(CLI::App& root);
Command addRecover(CLI::App& root);
Command addGenerate(CLI::App& root);
Command addSuggest(CLI::App& root);
Command addTune(CLI::App& root);
Command addHdf5(CLI::App& root);

/// Runs `work` on every file; a failure is printed and the others go on. Gives the code of the
/// first failure.
ExitCode forEachFile(const std::vector<std::string>& files,
                     Task task,
                     const std::function<void(const std::string&)>& work);
/// The same with --json: failures are rows as well, and all rows are printed at the end.
ExitCode forEachFile(const std::vector<std::string>& files,
                     Task task,
                     JsonRows& rows,
                     const std::function<void(const std::string&)>& work);

/// The files, or standard input when none is named.
std::vector<std::string> filesOrStandardInput(const std::vector<std::string>& files);

}  // namespace fz::cli
