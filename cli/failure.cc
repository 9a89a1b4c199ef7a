#include "failure.h"

#include <fmt/format.h>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include "fz/error.h"
#include "fz/size_limit.h"
#include "fz/stage_descriptor.h"
#include "standard_streams.h"

namespace fz::cli {

namespace {

ExitCode exitCodeOf(ErrorCode code, Task task) {
  switch (code) {
    case ErrorCode::kIo:
      return ExitCode::kIo;
    case ErrorCode::kCorrupt:
      return ExitCode::kCorrupt;
    case ErrorCode::kBoundViolation:
    case ErrorCode::kFillValue:
    case ErrorCode::kTarget:
      return ExitCode::kBound;
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kLimit:
      return ExitCode::kMemory;
    case ErrorCode::kNoDevice:
    case ErrorCode::kCuda:
      return ExitCode::kNoDevice;
    case ErrorCode::kInternal:
      // The result cannot be trusted, which is what this code is about.
      return task == Task::kDecode ? ExitCode::kCorrupt : ExitCode::kBound;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidState:
    case ErrorCode::kGraph:
    case ErrorCode::kTypeMismatch:
    case ErrorCode::kBadSize:
    case ErrorCode::kBufferTooSmall:
    case ErrorCode::kUnsupported:
    case ErrorCode::kConfig:
    case ErrorCode::kCancelled:
      break;
  }
  return task == Task::kDecode ? ExitCode::kCorrupt : ExitCode::kUsage;
}

/// Empty where the message says all there is to say.
std::string_view adviceFor(ErrorCode code, Task task) {
  switch (code) {
    case ErrorCode::kIo:
      return "check the folder, the permissions and the free space";
    case ErrorCode::kBoundViolation:
      return "use a preset that stores such values exactly (-p pfpl); for finite values a larger "
             "-b helps too";
    case ErrorCode::kOutOfMemory:
      return "free some memory or split the data";
    case ErrorCode::kLimit:
      return task == Task::kDecode ? "if you trust the archive, raise --max-output or --max-memory"
                                   : "raise --max-memory";
    case ErrorCode::kNoDevice:
    case ErrorCode::kCuda:
      return "run on the processor with --backend cpu";
    case ErrorCode::kInternal:
      return "this is a bug in fz, please report it";
    default:
      break;
  }
  if (task == Task::kDecode) {
    return code == ErrorCode::kUnsupported
               ? "use a newer fz; 'fz --version' shows what this one reads"
               : "the file is damaged or not an fz archive; fetch it again or restore it";
  }
  switch (code) {
    case ErrorCode::kBadSize:
      return "check -t and -d, and dims and input_size of the configuration";
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kTypeMismatch:
      return "'fz stages NAME' lists the types and settings of a stage";
    default:
      return "";
  }
}

/// The code and the advice of an error when encoding whose words say more than its ErrorCode.
struct Special {
  ExitCode code;
  std::string_view advice;
};

std::optional<Special> specialCase(std::string_view what) {
  const auto says = [&](std::string_view part) { return what.find(part) != what.npos; };
  if (what.starts_with("Huffman: symbol")) {
    return Special{ExitCode::kUsage, "give a larger --set bklen=N, above every symbol"};
  }
  if (says("FZ_BACKEND is") || says("FZ_FUSION is")) {
    return Special{ExitCode::kUsage, "set the variable to one of these or unset it"};
  }
  if (says("needs error bound mode ABS or NOA")) {
    return Special{ExitCode::kUsage, "use -b abs:E or -b range:E, or -p pfpl, which keeps rel:E"};
  }
  return std::nullopt;
}

/// The same when decoding archives of chunks.
std::optional<Special> specialArchive(ErrorCode code, std::string_view what) {
  if (code != ErrorCode::kCorrupt) {
    return std::nullopt;
  }
  if (what.starts_with("archive: chunk")) {
    return Special{ExitCode::kCorrupt,
                   "fetch the file again or restore it; 'fz decompress --box' reads parts that "
                   "this chunk has none of"};
  }
  if (what.starts_with("archive: it has no index")) {
    return Special{ExitCode::kCorrupt, ""};
  }
  if (what.starts_with("recover: no")) {
    return Special{ExitCode::kCorrupt, "only archives of chunks can be recovered"};
  }
  if (what.starts_with("recover:")) {
    return Special{ExitCode::kCorrupt,
                   "where the index at the end is sound, 'fz decompress --box' reads parts without "
                   "the others"};
  }
  return std::nullopt;
}

Failure fromLibrary(ErrorCode code, const char* what, Task task) {
  if (const auto special = task == Task::kEncode ? specialCase(what) : specialArchive(code, what)) {
    return {special->code,
            fmt::format("{}{}{}", what, special->advice.empty() ? "" : "; ", special->advice)};
  }
  const std::string_view advice = adviceFor(code, task);
  return {exitCodeOf(code, task), fmt::format("{}{}{}", what, advice.empty() ? "" : "; ", advice)};
}

Failure fromSystem(const std::system_error& error, Task task) {
  // The words of fmt::print, which does not know where it prints; here it prints to one place.
  if (std::string_view(error.what()).starts_with("cannot write to file")) {
    return {ExitCode::kIo, fmt::format("cannot write standard output: {}; check the free space",
                                       error.code().message())};
  }
  return fromLibrary(ErrorCode::kIo, error.what(), task);
}

/// Every preset begins with a stage that has a bound, and those have one limit; other limits belong
/// to single stages.
Failure fromSizeLimit(const SizeLimitError& error) {
  const StageDescriptor* const stage = findStage(error.stage());
  const bool is_everywhere = stage != nullptr && stage->params().find("error_bound") != nullptr;
  return {ExitCode::kMemory,
          fmt::format("{}; {}compress in chunks (--chunk 64M)", error.what(),
                      is_everywhere ? ""
                                    : "use a preset without this limit (-p cuszp2, finite data "
                                      "only) or ")};
}

Failure fromFillValue(const FillValueError& error) {
  const FillValueFinding& found = error.finding();
  return {
      ExitCode::kBound,
      fmt::format("{}; --fill {} if it means missing, --fill none if it is data; or an absolute "
                  "bound, such as -b abs:{:.2g}",
                  error.cause(), found.text, found.bound_without)};
}

}  // namespace

Failure currentFailure(Task task) {
  try {
    throw;
  } catch (const Failure& e) {
    return e;
  } catch (const SizeLimitError& e) {
    return task == Task::kEncode ? fromSizeLimit(e) : fromLibrary(e.code(), e.what(), task);
  } catch (const FillValueError& e) {
    return fromFillValue(e);
  } catch (const Error& e) {
    return fromLibrary(e.code(), e.what(), task);
  } catch (const InvalidArgument& e) {
    return fromLibrary(e.code(), e.what(), task);
  } catch (const std::bad_alloc&) {
    return fromLibrary(ErrorCode::kOutOfMemory, "not enough memory", task);
  } catch (const std::length_error&) {
    return fromLibrary(ErrorCode::kOutOfMemory, "not enough memory", task);
  } catch (const std::system_error& e) {
    return fromSystem(e, task);
  } catch (const std::exception& e) {
    return fromLibrary(ErrorCode::kInternal, e.what(), task);
  }
}

void printWarning(const std::string& subject, const std::string& message) {
  say("fz: warning: {}: {}\n", subject, message);
}

void printFailure(const std::string& subject, const std::string& message) {
  say("fz: {}{}{}\n", subject, subject.empty() ? "" : ": ", message);
}

}  // namespace fz::cli
