#include "fz/error.h"

#include "core/require.h"

namespace fz {

const char* errorCodeName(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kInvalidState:
      return "invalid state";
    case ErrorCode::kGraph:
      return "graph";
    case ErrorCode::kTypeMismatch:
      return "type mismatch";
    case ErrorCode::kBadSize:
      return "bad size";
    case ErrorCode::kBufferTooSmall:
      return "buffer too small";
    case ErrorCode::kBoundViolation:
      return "bound violation";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kLimit:
      return "limit";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kIo:
      return "i/o";
    case ErrorCode::kConfig:
      return "config";
    case ErrorCode::kNoDevice:
      return "no device";
    case ErrorCode::kCuda:
      return "cuda";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kFillValue:
      return "fill value";
    case ErrorCode::kTarget:
      return "target";
    case ErrorCode::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

FillValueError::FillValueError(const FillValueFinding& finding, const std::string& cause)
    : Error(ErrorCode::kFillValue,
            fmt::format("{}; declare it as a fill value, say that there are none, or use an "
                        "absolute bound such as abs:{:.2g}",
                        cause,
                        finding.bound_without)),
      finding_(finding),
      cause_(cause) {
}

namespace detail {

namespace {

/// Copies of an exception share its message, so throwing one takes no memory.
const Error& noMemory() {
  static const Error kError(ErrorCode::kOutOfMemory, "out of memory");
  return kError;
}
// Made when the program starts, while there is memory.
[[maybe_unused]] const bool kIsReady = noMemory().code() == ErrorCode::kOutOfMemory;

}  // namespace

void throwOutOfMemory() {
  throw Error(noMemory());
}

void throwError(ErrorCode code, const std::string& message) {
  throw Error(code, message);
}

void throwInvalidArgument(const std::string& message) {
  throw InvalidArgument(message);
}

void throwAssert(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::kInternal,
              fmt::format("fz: internal error: {} ({}:{})", condition, file, line));
}

}  // namespace detail
}  // namespace fz
