#pragma once

#include <cstddef>
#include <functional>

#include "backends/cpu/parallel_for.h"

namespace fz {

/// How the threads of a call share its fields.
struct BatchSplit {
  std::size_t n_workers = 1;  ///< fields at a time
  std::size_t threads_each = 1;
};
/// One thread for each field when there are many.
BatchSplit splitBatch(std::size_t n_fields, std::size_t n_threads);

/// Calls each(worker, field) once for every field; no two calls of one worker at the same time.
void forEachField(const BatchSplit& split,
                  std::size_t n_fields,
                  const std::function<void(std::size_t worker, std::size_t field)>& each);

}  // namespace fz
