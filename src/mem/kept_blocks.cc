#include "mem/kept_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <span>

#include "fz/host_api.h"
#include "mem/host_memory.h"

#if defined(__linux__)
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#endif

// A sanitizer must see where the life of a block ends.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(MADV_FREE)
#define FZ_KEEPS_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FZ_KEEPS_BLOCKS 0
#else
#define FZ_KEEPS_BLOCKS 1
#endif
#else
#define FZ_KEEPS_BLOCKS 1
#endif

namespace fz {

namespace {

// The C library keeps shorter ones.
constexpr std::size_t kShortestBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxBlocks = 64;
constexpr std::size_t kLargePageBytes = std::size_t{2} << 20;

bool isLong(std::size_t n_bytes) {
  return FZ_KEEPS_BLOCKS != 0 && n_bytes >= kShortestBytes;
}

/// Whole large pages, since giving up a part of one splits it. Nearly equal requests get equal
/// blocks; what is not written to takes no memory.
std::size_t roundedBytes(std::size_t n_bytes) {
  const std::size_t step = std::max(kLargePageBytes, std::bit_floor(n_bytes) / 8);
  return (n_bytes + step - 1) / step * step;
}

/// The blocks that nobody uses. Takes no memory itself.
class Shelf {
 public:
  /// A block that fits, or null. Those that are in the way of a new one are then given up.
  void* take(std::size_t n_bytes) {
    Entry* best = nullptr;
    for (Entry& entry : entries()) {
      const bool fits = entry.n_bytes >= n_bytes && entry.n_bytes / 2 <= n_bytes;
      if (fits && (best == nullptr || entry.n_bytes < best->n_bytes)) {
        best = &entry;
      }
    }
    if (best != nullptr) {
      use(best->n_bytes);
      return remove(*best);
    }
    const std::size_t n_most = std::max(peak_bytes_, used_bytes_ + n_bytes);
    while (used_bytes_ + n_bytes + kept_bytes_ > n_most && n_entries_ > 0) {
      std::free(remove(leastOf(used_bytes_ + n_bytes + kept_bytes_ - n_most)));
    }
    return nullptr;
  }

  /// A block that take() had not.
  void use(std::size_t n_bytes) {
    used_bytes_ += n_bytes;
    peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  }

  void put(void* block) {
    const std::size_t n_bytes = lengthOf(block);
    used_bytes_ -= std::min(used_bytes_, n_bytes);
    if (n_entries_ == kMaxBlocks || !letSystemTakePages(block, n_bytes)) {
      std::free(block);
      return;
    }
    entries_[n_entries_++] = {block, n_bytes};
    kept_bytes_ += n_bytes;
  }

  void clear() {
    while (n_entries_ > 0) {
      std::free(remove(entries_.front()));
    }
    peak_bytes_ = used_bytes_;
  }

  std::size_t keptBytes() const { return kept_bytes_; }

  /// Maybe more than was asked for.
  static std::size_t lengthOf(void* block) {
#if FZ_KEEPS_BLOCKS
    return malloc_usable_size(block) / kLargePageBytes * kLargePageBytes;
#else
    return block == nullptr ? 0 : kShortestBytes;
#endif
  }

 private:
  struct Entry {
    void* block;
    std::size_t n_bytes;
  };

  std::span<Entry> entries() {
    return {entries_.data(), n_entries_};
  }

  void* remove(Entry& entry) {
    void* const block = entry.block;
    kept_bytes_ -= entry.n_bytes;
    std::move(&entry + 1, entries_.data() + n_entries_, &entry);
    --n_entries_;
    return block;
  }

  /// The shortest block that is at least so long, or the longest.
  Entry& leastOf(std::size_t excess) {
    Entry* found = entries_.data();
    for (Entry& entry : entries()) {
      const bool is_enough = entry.n_bytes >= excess;
      const bool was_enough = found->n_bytes >= excess;
      if (is_enough != was_enough ? is_enough : (entry.n_bytes < found->n_bytes) == is_enough) {
        found = &entry;
      }
    }
    return *found;
  }

  static bool letSystemTakePages([[maybe_unused]] void* block,
                                 [[maybe_unused]] std::size_t n_bytes) {
#if FZ_KEEPS_BLOCKS
    return madvise(block, n_bytes, MADV_FREE) == 0;
#else
    return false;
#endif
  }

  std::array<Entry, kMaxBlocks> entries_ = {};  // the one that was put first is the first
  std::size_t n_entries_ = 0;
  std::size_t kept_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
};

class LockedShelf {
 public:
  /// Never destroyed: results may outlive static objects.
  static LockedShelf& ofProcess() {
    static LockedShelf* const kShelf = new LockedShelf;
    return *kShelf;
  }

  template <class F>
  auto with(F f) {
    const std::lock_guard lock(mutex_);
    return f(shelf_);
  }

 private:
  LockedShelf() {
#if FZ_KEEPS_BLOCKS
    // A child has the blocks as well, and no other thread of its parent to unlock them.
    pthread_atfork([] { ofProcess().mutex_.lock(); }, [] { ofProcess().mutex_.unlock(); },
                   [] { ofProcess().mutex_.unlock(); });
#endif
  }

  std::mutex mutex_;
  Shelf shelf_;
};

}  // namespace

void* takeBlock(std::size_t n_bytes, std::size_t alignment) noexcept {
  if (!isLong(n_bytes)) {
    return allocateOnHost(n_bytes, alignment);
  }
  if (n_bytes > std::numeric_limits<std::size_t>::max() / 2) {
    return nullptr;
  }
  const std::size_t rounded = roundedBytes(n_bytes);
  LockedShelf& shelf = LockedShelf::ofProcess();
  if (void* const kept = shelf.with([&](Shelf& s) { return s.take(rounded); }); kept != nullptr) {
    return kept;
  }
  void* block = allocateOnHost(rounded, alignment);
  if (block == nullptr) {
    releaseHostMemory();
    block = allocateOnHost(rounded, alignment);
  }
  if (block != nullptr) {
    shelf.with([&](Shelf& s) { s.use(Shelf::lengthOf(block)); });
  }
  return block;
}

void giveBlock(void* block, std::size_t n_bytes) noexcept {
  if (block == nullptr || !isLong(n_bytes)) {
    std::free(block);
    return;
  }
  LockedShelf::ofProcess().with([&](Shelf& kept) { kept.put(block); });
}

std::size_t keptBlockBytes() noexcept {
  return LockedShelf::ofProcess().with([](const Shelf& kept) { return kept.keptBytes(); });
}

void releaseHostMemory() {
  LockedShelf::ofProcess().with([](Shelf& kept) { kept.clear(); });
}

}  // namespace fz
