#include "mem/host_memory.h"

#include <algorithm>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace fz {

namespace {

constexpr std::size_t kLargePageBytes = std::size_t{2} << 20;
// Shorter ones the C library keeps for the next request, pages and all.
constexpr std::size_t kLongBytes = 2 * kLargePageBytes;

}  // namespace

void* allocateOnHost(std::size_t n_bytes, std::size_t alignment) noexcept {
  const bool is_long = n_bytes >= kLongBytes;
  void* memory = nullptr;
  // Not aligned_alloc(), which wants whole multiples of the alignment.
  if (posix_memalign(&memory, is_long ? std::max(alignment, kLargePageBytes) : alignment,
                     std::max<std::size_t>(1, n_bytes)) != 0) {
    return nullptr;
  }
#if defined(MADV_HUGEPAGE)
  if (is_long) {
    madvise(memory, n_bytes, MADV_HUGEPAGE);  // a wish: without it all is slower, not wrong
  }
#endif
  return memory;
}

}  // namespace fz
