#pragma once

#include <utility>

#include "core/require.h"
#include "fz.h"

namespace fz::c_api {

/// Turns the exception that is being handled into a status and keeps its message for
/// fz_last_error(). Allocates nothing. For catch blocks alone.
fz_status statusOfException() noexcept;

/// Runs the body of the C function `who`: nothing that it throws gets out.
template <class F>
fz_status guarded(const char* who, F&& body) noexcept {
  try {
    std::forward<F>(body)(who);
    return FZ_OK;
  } catch (...) {
    return statusOfException();
  }
}

}  // namespace fz::c_api

/// A pointer argument of the C function `who`; throws kInvalidArgument with its name.
#define FZ_REQUIRE_POINTER(pointer)                                                               \
  FZ_REQUIRE((pointer) != nullptr, ::fz::ErrorCode::kInvalidArgument, "{}: " #pointer " is NULL", \
             who)
