#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace fz {

/// Why a call failed. Closed list: callers may switch over it.
enum class ErrorCode {
  kInvalidArgument,  ///< a setting or argument outside its range
  kInvalidState,     ///< the call does not fit the object's state (not finalized, ...)
  kGraph,            ///< the stages do not form a valid pipeline
  kTypeMismatch,     ///< two connected ports carry different types
  kBadSize,          ///< a byte or element count that the stage cannot take
  kBufferTooSmall,   ///< the caller's buffer is too small; the message has both sizes
  kBoundViolation,   ///< a value cannot be kept within the error bound
  kCorrupt,          ///< an archive or stream is damaged or was never valid
  kUnsupported,      ///< valid, but not by this build, backend or format version
  kLimit,            ///< decoding would exceed a limit that the caller set
  kOutOfMemory,      ///< host or device memory could not be allocated
  kIo,               ///< a file could not be read or written
  kConfig,           ///< a configuration file is wrong; the message has file and line
  kNoDevice,         ///< no usable GPU
  kCuda,             ///< a CUDA call failed
  kInternal,         ///< a broken promise inside the library: please report
  kFillValue,        ///< a fill value sets the range that a bound is relative to
  kTarget,           ///< no bound reaches the ratio or PSNR that was asked for
  kCancelled,        ///< the caller asked the call to stop
};

/// Short name of a code, such as "corrupt".
const char* errorCodeName(ErrorCode code) noexcept;

/// Every failure but a wrong setting. Message form: "stage: what was needed, what came".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// A value that looks as if it meant "missing", and what it does to the range of a field.
struct FillValueFinding {
  double value = 0.0;
  std::string text;          ///< the value as its own type writes it
  std::size_t n_found = 0;   ///< values equal to it
  std::size_t n_values = 0;  ///< of the whole field
  double range = 0.0;        ///< max - min of the finite values
  double range_without = 0.0;
  /// The absolute bound that the request comes to for the other values.
  double bound_without = 0.0;
};

/// A bound relative to the range was refused, because what looks like a fill value sets the range:
/// the other values would be kept to a bound that means nothing to them. Its code is kFillValue.
class FillValueError : public Error {
 public:
  /// `cause` is what was found; the message adds what to do about it.
  FillValueError(const FillValueFinding& finding, const std::string& cause);
  const FillValueFinding& finding() const noexcept { return finding_; }
  const std::string& cause() const noexcept { return cause_; }

 private:
  FillValueFinding finding_;
  std::string cause_;
};

/// A wrong setting. No Error (docs/architecture.md says why): std::exception is what both are.
class InvalidArgument : public std::invalid_argument {
 public:
  explicit InvalidArgument(const std::string& message) : std::invalid_argument(message) {}
  ErrorCode code() const noexcept { return ErrorCode::kInvalidArgument; }
};

namespace detail {

/// Throws Error(kOutOfMemory) without taking memory: what every public call makes of
/// std::bad_alloc.
[[noreturn]] void throwOutOfMemory();

}  // namespace detail
}  // namespace fz
