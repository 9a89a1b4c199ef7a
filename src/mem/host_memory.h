#pragma once

#include <cstddef>

namespace fz {

/// Memory of the host, for std::free(); null when there is none. Long blocks ask the system for
/// large pages, where it gives them only to those who ask: handing out small ones takes as long as
/// compressing what is then written to them.
void* allocateOnHost(std::size_t n_bytes,
                     std::size_t alignment = alignof(std::max_align_t)) noexcept;

}  // namespace fz
