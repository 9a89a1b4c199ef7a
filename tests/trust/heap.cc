#include "trust/heap.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <malloc.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FZ_TRUST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FZ_TRUST_SANITIZED 1
#endif
#endif
#ifndef FZ_TRUST_SANITIZED
#define FZ_TRUST_SANITIZED 0
#endif

namespace fz::trust::heap {

namespace {

struct State {
  std::int64_t held_bytes = 0;
  std::int64_t start_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::size_t largest_request = 0;
  std::size_t refuse_above = 0;
  bool is_failing = false;
  bool and_all_later = false;
  std::uint64_t fail_at = 0;
  std::uint64_t n_requests = 0;
};

thread_local State state;

void recordTaken(std::size_t n_bytes) {
  state.held_bytes += static_cast<std::int64_t>(n_bytes);
  if (state.held_bytes > state.peak_bytes) {
    state.peak_bytes = state.held_bytes;
  }
}

void recordGiven(std::size_t n_bytes) {
  state.held_bytes -= static_cast<std::int64_t>(n_bytes);
}

}  // namespace

std::int64_t heldBytes() {
  return state.held_bytes;
}
std::size_t peakBytes() {
  const std::int64_t n = state.peak_bytes - state.start_bytes;
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}
void resetPeak() {
  state.start_bytes = state.held_bytes;
  state.peak_bytes = state.held_bytes;
  state.largest_request = 0;
}
std::size_t largestRequest() {
  return state.largest_request;
}
void refuseAbove(std::size_t n_bytes) {
  state.refuse_above = n_bytes;
}
bool canFail() {
  return FZ_TRUST_SANITIZED == 0;
}
void failAt(std::uint64_t n, bool and_all_later) {
  state.fail_at = n;
  state.and_all_later = and_all_later;
  state.n_requests = 0;
  state.is_failing = true;
}
void stopFailing() {
  state.is_failing = false;
}
Pause::Pause() : was_failing_(state.is_failing) {
  state.is_failing = false;
}
Pause::~Pause() {
  state.is_failing = was_failing_;
}
std::uint64_t requestCount() {
  return state.n_requests;
}

#if FZ_TRUST_SANITIZED

extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                              void (*on_free)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* memory);
}

namespace {

const int kInstalled = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void* memory, std::size_t n_bytes) {
      state.largest_request = n_bytes > state.largest_request ? n_bytes : state.largest_request;
      if (memory != nullptr) {
        recordTaken(n_bytes);
      }
    },
    [](const volatile void* memory) {
      if (memory != nullptr) {
        recordGiven(__sanitizer_get_allocated_size(memory));
      }
    });

}  // namespace

#else

namespace {

/// Whether this request is to be refused.
bool isRefused(std::size_t n_bytes) {
  state.largest_request = n_bytes > state.largest_request ? n_bytes : state.largest_request;
  if (state.refuse_above != 0 && n_bytes > state.refuse_above) {
    return true;
  }
  if (!state.is_failing) {
    return false;
  }
  const std::uint64_t i = state.n_requests++;
  return i == state.fail_at || (state.and_all_later && i > state.fail_at);
}

void* recorded(void* memory) {
  if (memory != nullptr) {
    recordTaken(malloc_usable_size(memory));
  }
  return memory;
}

void* refused() {
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

#endif

}  // namespace fz::trust::heap

#if !FZ_TRUST_SANITIZED

// The program's own definitions replace those of the C library, in every library of the process;
// operator new comes through here too.
extern "C" {

// What the C library calls its own.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
void* __libc_malloc(std::size_t n_bytes);
void* __libc_calloc(std::size_t n, std::size_t n_bytes);
void* __libc_realloc(void* memory, std::size_t n_bytes);
void* __libc_memalign(std::size_t alignment, std::size_t n_bytes);
void __libc_free(void* memory);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* malloc(std::size_t n_bytes) {
  using namespace fz::trust::heap;  // NOLINT(google-build-using-namespace)
  return isRefused(n_bytes) ? refused() : recorded(__libc_malloc(n_bytes));
}
void* calloc(std::size_t n, std::size_t n_bytes) {
  using namespace fz::trust::heap;  // NOLINT(google-build-using-namespace)
  return isRefused(n * n_bytes) ? refused() : recorded(__libc_calloc(n, n_bytes));
}
void* realloc(void* memory, std::size_t n_bytes) {
  using namespace fz::trust::heap;  // NOLINT(google-build-using-namespace)
  if (isRefused(n_bytes)) {
    return refused();
  }
  const std::size_t n_before = memory == nullptr ? 0 : malloc_usable_size(memory);
  void* grown = __libc_realloc(memory, n_bytes);
  if (grown != nullptr) {
    recordGiven(n_before);
    recordTaken(malloc_usable_size(grown));
  }
  return grown;
}
void* memalign(std::size_t alignment, std::size_t n_bytes) {
  using namespace fz::trust::heap;  // NOLINT(google-build-using-namespace)
  return isRefused(n_bytes) ? refused() : recorded(__libc_memalign(alignment, n_bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t n_bytes) {
  return memalign(alignment, n_bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t n_bytes) {
  void* taken = memalign(alignment, n_bytes);
  if (taken == nullptr) {
    return ENOMEM;
  }
  *memory = taken;
  return 0;
}
void free(void* memory) {
  if (memory != nullptr) {
    fz::trust::heap::recordGiven(malloc_usable_size(memory));
    __libc_free(memory);
  }
}

}  // extern "C"

#endif
