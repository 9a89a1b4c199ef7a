#pragma once

namespace fz::detail {

/// Throws Error(kOutOfMemory) without taking memory: what every public call makes of
/// std::bad_alloc.
[[noreturn]] void throwOutOfMemory();

}  // namespace fz::detail
