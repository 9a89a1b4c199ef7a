#pragma once

#include <stdexcept>
#include <string>

#include "fz/error.h"

namespace fz::cli {

/// What the process returns. Scripts depend on these numbers.
enum class ExitCode : int {
  kOk = 0,
  kUsage = 1,
  kIo = 2,
  kCorrupt = 3,
  kBound = 4,
  kMemory = 5,
  kNoDevice = 6,
};

/// A failure of the tool itself. The message says what was wrong and what to do.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// What a command was doing: the same library error means a wrong setting when encoding and a
/// damaged archive when decoding.
enum class Task { kEncode, kDecode };

/// The exception being handled, with its exit code and, for those of the library, advice. Call it
/// inside a catch block only.
Failure currentFailure(Task task);

/// Runs `read`; what goes wrong with the file gets advice for a reader.
template <class F>
auto reading(F&& read) {
  try {
    return read();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kIo) {
      throw;
    }
    throw Failure(ExitCode::kIo, std::string(e.what()) + "; check the path and the permissions");
  }
}

/// "fz: warning: subject: message" on standard error.
void printWarning(const std::string& subject, const std::string& message);
/// "fz: subject: message" on standard error; an empty subject is left out.
void printFailure(const std::string& subject, const std::string& message);

}  // namespace fz::cli
