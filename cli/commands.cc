#include "commands.h"

#include "field_io.h"
#include "json_rows.h"

namespace fz::cli {

ExitCode forEachFile(const std::vector<std::string>& files,
                     Task task,
                     const std::function<void(const std::string&)>& work) {
  JsonRows none("", false);
  return forEachFile(files, task, none, work);
}

ExitCode forEachFile(const std::vector<std::string>& files,
                     Task task,
                     JsonRows& rows,
                     const std::function<void(const std::string&)>& work) {
  ExitCode first = ExitCode::kOk;
  for (const std::string& file : files) {
    try {
      work(file);
    } catch (...) {
      const Failure failure = currentFailure(task);
      printFailure(inputName(file), failure.what());
      rows.addFailure(file, failure);
      first = first == ExitCode::kOk ? failure.code() : first;
    }
  }
  rows.print();
  return first;
}

std::vector<std::string> filesOrStandardInput(const std::vector<std::string>& files) {
  return files.empty() ? std::vector<std::string>{std::string(kStandardStream)} : files;
}

}  // namespace fz::cli
