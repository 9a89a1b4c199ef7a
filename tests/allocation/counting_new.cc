#include "allocation/counting_new.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t n_allocations = 0;

constexpr std::size_t kPlain = alignof(std::max_align_t);

void* allocationOrNull(std::size_t n_bytes, std::size_t alignment) noexcept {
  ++n_allocations;
  const std::size_t n_units = std::max<std::size_t>(1, (n_bytes + alignment - 1) / alignment);
  return std::aligned_alloc(alignment, n_units * alignment);
}

void* countedAllocation(std::size_t n_bytes, std::size_t alignment) {
  if (void* memory = allocationOrNull(n_bytes, alignment)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

std::size_t fz::test::allocationCount() {
  return n_allocations;
}

// Every form: a sanitizer's own operators stand in for those that are missing here.
void* operator new(std::size_t n_bytes) {
  return countedAllocation(n_bytes, kPlain);
}
void* operator new[](std::size_t n_bytes) {
  return countedAllocation(n_bytes, kPlain);
}
void* operator new(std::size_t n_bytes, std::align_val_t alignment) {
  return countedAllocation(n_bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t n_bytes, std::align_val_t alignment) {
  return countedAllocation(n_bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t n_bytes, const std::nothrow_t& /*tag*/) noexcept {
  return allocationOrNull(n_bytes, kPlain);
}
void* operator new[](std::size_t n_bytes, const std::nothrow_t& /*tag*/) noexcept {
  return allocationOrNull(n_bytes, kPlain);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*n_bytes*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*n_bytes*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*n_bytes*/, std::align_val_t /*a*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*n_bytes*/, std::align_val_t /*a*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
