#pragma once

#include <cstddef>
#include <functional>

#include "fz/progress.h"

namespace fz::python {

/// Runs work on n_bytes without the GIL. Meanwhile signals are handled as Python does between two
/// statements (in the main thread, that is): where a handler raises, as that of Ctrl-C does, the
/// work is asked to stop and the exception is thrown. Called with the GIL; throws what work throws.
void runInterruptibly(std::size_t n_bytes, const std::function<void(RunProgress&)>& work);

}  // namespace fz::python
