#pragma once

#include <cstddef>

namespace fz::test {

/// How often this thread has called operator new. Memory of the pool does not come from there; the
/// pool counts it itself.
std::size_t allocationCount();

}  // namespace fz::test
