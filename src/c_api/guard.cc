#include "c_api/guard.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>

namespace fz::c_api {

namespace {

// Plain storage: keeping a message can then neither fail nor outlive its thread.
thread_local char last_message[1024] = "";

fz_status keep(ErrorCode code, const char* message) noexcept {
  const std::size_t n = std::min(std::strlen(message), sizeof(last_message) - 1);
  std::memcpy(last_message, message, n);
  last_message[n] = '\0';
  return static_cast<fz_status>(code) + 1;
}

// The numbers of the C interface are those of ErrorCode plus one, for good.
static_assert(static_cast<int>(ErrorCode::kInvalidArgument) + 1 == FZ_ERROR_INVALID_ARGUMENT);
static_assert(static_cast<int>(ErrorCode::kInvalidState) + 1 == FZ_ERROR_INVALID_STATE);
static_assert(static_cast<int>(ErrorCode::kGraph) + 1 == FZ_ERROR_GRAPH);
static_assert(static_cast<int>(ErrorCode::kTypeMismatch) + 1 == FZ_ERROR_TYPE_MISMATCH);
static_assert(static_cast<int>(ErrorCode::kBadSize) + 1 == FZ_ERROR_BAD_SIZE);
static_assert(static_cast<int>(ErrorCode::kBufferTooSmall) + 1 == FZ_ERROR_BUFFER_TOO_SMALL);
static_assert(static_cast<int>(ErrorCode::kBoundViolation) + 1 == FZ_ERROR_BOUND_VIOLATION);
static_assert(static_cast<int>(ErrorCode::kCorrupt) + 1 == FZ_ERROR_CORRUPT);
static_assert(static_cast<int>(ErrorCode::kUnsupported) + 1 == FZ_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(ErrorCode::kLimit) + 1 == FZ_ERROR_LIMIT);
static_assert(static_cast<int>(ErrorCode::kOutOfMemory) + 1 == FZ_ERROR_OUT_OF_MEMORY);
static_assert(static_cast<int>(ErrorCode::kIo) + 1 == FZ_ERROR_IO);
static_assert(static_cast<int>(ErrorCode::kConfig) + 1 == FZ_ERROR_CONFIG);
static_assert(static_cast<int>(ErrorCode::kNoDevice) + 1 == FZ_ERROR_NO_DEVICE);
static_assert(static_cast<int>(ErrorCode::kCuda) + 1 == FZ_ERROR_CUDA);
static_assert(static_cast<int>(ErrorCode::kInternal) + 1 == FZ_ERROR_INTERNAL);
static_assert(static_cast<int>(ErrorCode::kFillValue) + 1 == FZ_ERROR_FILL_VALUE);
static_assert(static_cast<int>(ErrorCode::kTarget) + 1 == FZ_ERROR_TARGET);
static_assert(static_cast<int>(ErrorCode::kCancelled) + 1 == FZ_ERROR_CANCELLED);

}  // namespace

fz_status statusOfException() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(error.code(), error.what());
  } catch (const InvalidArgument& error) {
    return keep(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return keep(ErrorCode::kOutOfMemory, "out of memory");
  } catch (const std::length_error&) {
    return keep(ErrorCode::kOutOfMemory, "out of memory: larger than any array can be");
  } catch (const std::exception& error) {
    return keep(ErrorCode::kInternal, error.what());
  } catch (...) {
    return keep(ErrorCode::kInternal, "unknown exception");
  }
}

}  // namespace fz::c_api

const char* fz_last_error(void) {
  return fz::c_api::last_message;
}

const char* fz_status_name(fz_status status) {
  if (status == FZ_OK) {
    return "ok";
  }
  if (status < FZ_ERROR_INVALID_ARGUMENT || status > FZ_ERROR_CANCELLED) {
    return "unknown";
  }
  return fz::errorCodeName(static_cast<fz::ErrorCode>(status - 1));
}
