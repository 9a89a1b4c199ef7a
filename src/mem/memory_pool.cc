#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/require.h"
#include "log.h"
#include "mem/kept_blocks.h"
#include "mem/mempool.h"
#include "mem/scratch.h"

#if FZ_HAVE_CUDA
#include "backends/cuda/cuda_memory.h"
#endif

namespace fz {

namespace {

constexpr std::size_t kAlignment = 256;  // what device memory has, and a few cache lines
constexpr std::size_t kDefaultPoolBytes = 1u << 30;  // size hint when the input size is unknown

void* systemAllocate(std::size_t n_bytes, void* /*context*/) {
  return takeBlock(n_bytes, kAlignment);
}
void systemRelease(void* memory, std::size_t n_bytes, void* /*context*/) {
  giveBlock(memory, n_bytes);
}

#if FZ_HAVE_CUDA
HostAllocator deviceAllocator(cuda::CudaMemory* memory) {
  return {[](std::size_t n_bytes, void* source) {
            return static_cast<cuda::CudaMemory*>(source)->allocateDevice(n_bytes);
          },
          [](void* block, std::size_t /*n_bytes*/, void* source) {
            static_cast<cuda::CudaMemory*>(source)->releaseDevice(block);
          },
          memory};
}
HostAllocator pinnedAllocator(cuda::CudaMemory* memory) {
  return {[](std::size_t n_bytes, void* source) {
            return static_cast<cuda::CudaMemory*>(source)->allocatePinned(n_bytes);
          },
          [](void* block, std::size_t /*n_bytes*/, void* source) {
            static_cast<cuda::CudaMemory*>(source)->releasePinned(block);
          },
          memory};
}
#endif

/// Size of the block that serves a request: powers of two with four steps between, so that nearly
/// equal requests share blocks and at most a quarter is wasted.
std::size_t blockBytes(std::size_t n_bytes) {
  std::size_t step = kAlignment;
  while (step * 8 < n_bytes) {
    step *= 2;
  }
  return (n_bytes + step - 1) / step * step;
}

}  // namespace

std::size_t MemoryPoolConfig::getPoolSize() const {
  if (input_data_size == 0) {
    return kDefaultPoolBytes;
  }
  return static_cast<std::size_t>(static_cast<double>(input_data_size) *
                                  static_cast<double>(pool_size_multiplier));
}

struct MemoryPool::Impl {
  struct Block {
    std::size_t block_bytes;
    std::size_t asked_bytes;
    bool persistent;
    bool pinned;
    std::string tag;
    std::uint64_t number = 0;  // of those taken
  };

  MemoryPoolConfig config;
#if FZ_HAVE_CUDA
  std::unique_ptr<cuda::CudaMemory> cuda_memory;  // outlives every block
#endif
  HostAllocator allocator;
  HostAllocator pinned_allocator;
  std::unordered_map<void*, Block> used;
  std::multimap<std::size_t, void*> kept;
  std::size_t kept_bytes = 0;
  std::size_t keep_limit_bytes = std::numeric_limits<std::size_t>::max();
  std::size_t used_bytes = 0;
  std::size_t scratch_ceiling_bytes = std::numeric_limits<std::size_t>::max();  // of used_bytes
  std::size_t peak_bytes = 0;
  std::size_t n_system_allocations = 0;
  std::uint64_t n_taken = 0;
  bool fallback = false;

  void configure(const MemoryPoolConfig& new_config) {
    const bool wants_fallback =
        new_config.force_fallback || std::getenv("FZ_FORCE_MEMPOOL_FALLBACK") != nullptr;
#if FZ_HAVE_CUDA
    // May throw, and then all stays as it was.
    auto on_device = new_config.backend == Backend::CUDA
                         ? std::make_unique<cuda::CudaMemory>(new_config.device_id, wants_fallback)
                         : nullptr;
#endif
    config = new_config;
    fallback = wants_fallback;
    allocator = config.host_allocator.allocate != nullptr
                    ? config.host_allocator
                    : HostAllocator{&systemAllocate, &systemRelease, nullptr};
    pinned_allocator = allocator;
#if FZ_HAVE_CUDA
    cuda_memory = std::move(on_device);
    if (cuda_memory != nullptr) {
      fallback = cuda_memory->isFallback();
      allocator = deviceAllocator(cuda_memory.get());
      pinned_allocator = pinnedAllocator(cuda_memory.get());
    }
#endif
  }

  void* take(std::size_t n_bytes, Block block, bool may_reuse = true) {
    if (n_bytes == 0 || n_bytes > std::numeric_limits<std::size_t>::max() / 2) {
      return nullptr;
    }
    block.block_bytes = blockBytes(n_bytes);
    block.asked_bytes = n_bytes;
    block.number = n_taken++;
    void* memory = nullptr;
    const auto found = kept.lower_bound(block.block_bytes);
    // A block up to twice as large may serve; a larger one is kept for larger requests.
    if (may_reuse && config.enable_reuse && found != kept.end() &&
        found->first / 2 <= block.block_bytes) {
      memory = found->second;
      block.block_bytes = found->first;
      kept_bytes -= found->first;
      kept.erase(found);
    } else {
      const HostAllocator& source = block.pinned ? pinned_allocator : allocator;
      memory = source.allocate(block.block_bytes, source.context);
      if (memory == nullptr) {
        releaseKept(0);
        memory = source.allocate(block.block_bytes, source.context);
      }
      if (memory == nullptr) {
        FZ_LOG(WARN, "memory pool: cannot allocate %zu bytes", n_bytes);
        return nullptr;
      }
      ++n_system_allocations;
    }
    const std::size_t block_bytes = block.block_bytes;
    const HostAllocator& owner = block.pinned ? pinned_allocator : allocator;
    try {
      used.emplace(memory, std::move(block));
    } catch (...) {
      owner.release(memory, block_bytes, owner.context);  // nobody would know of it any more
      throw;
    }
    used_bytes += n_bytes;
    peak_bytes = std::max(peak_bytes, used_bytes);
    return memory;
  }

  /// True when the block is on the list of those for later requests.
  bool keep(void* memory, std::size_t n_bytes) noexcept {
    try {
      kept.emplace(n_bytes, memory);
    } catch (...) {  // the list cannot grow
      return false;
    }
    kept_bytes += n_bytes;
    return true;
  }

  void giveBack(void* memory) {
    if (memory == nullptr) {
      return;
    }
    const auto found = used.find(memory);
    if (found == used.end()) {
      FZ_LOG(WARN, "memory pool: free of unknown pointer %p", memory);
      return;
    }
    used_bytes -= found->second.asked_bytes;
    const std::size_t n_bytes = found->second.block_bytes;
    const bool pinned = found->second.pinned;
    used.erase(found);
    if (pinned) {
      pinned_allocator.release(memory, n_bytes, pinned_allocator.context);
      return;
    }
    if (!config.enable_reuse || !keep(memory, n_bytes)) {
      allocator.release(memory, n_bytes, allocator.context);
      return;
    }
    releaseKept(keep_limit_bytes);
  }

  void releaseKept(std::size_t limit_bytes) {
    while (kept_bytes > limit_bytes && !kept.empty()) {
      const auto largest = std::prev(kept.end());
      allocator.release(largest->second, largest->first, allocator.context);
      kept_bytes -= largest->first;
      kept.erase(largest);
    }
  }

  std::size_t persistentBytes(bool pinned) const {
    std::size_t sum = 0;
    for (const auto& [memory, block] : used) {
      sum += block.persistent && block.pinned == pinned ? block.asked_bytes : 0;
    }
    return sum;
  }
};

MemoryPool::MemoryPool(const MemoryPoolConfig& config) : impl_(std::make_unique<Impl>()) {
  impl_->configure(config);
}

MemoryPool::~MemoryPool() {
  for (const auto& [memory, block] : impl_->used) {
    const HostAllocator& source = block.pinned ? impl_->pinned_allocator : impl_->allocator;
    source.release(memory, block.block_bytes, source.context);
  }
  impl_->releaseKept(0);
}

void MemoryPool::reconfigure(const MemoryPoolConfig& config) {
  FZ_REQUIRE(impl_->used.empty(), ErrorCode::kInvalidState,
             "memory pool: cannot change the backend while {} blocks are in use",
             impl_->used.size());
  impl_->releaseKept(0);
  impl_->configure(config);
}

void* MemoryPool::allocate(std::size_t n_bytes,
                           cudaStream_t /*stream*/,
                           const std::string& tag,
                           bool persistent) {
  return impl_->take(
      n_bytes,
      {.block_bytes = 0, .asked_bytes = 0, .persistent = persistent, .pinned = false, .tag = tag});
}

void MemoryPool::free(void* memory, cudaStream_t /*stream*/) {
  impl_->giveBack(memory);
}

void* MemoryPool::allocatePersistentDevice(std::size_t n_bytes, const std::string& tag) {
  return impl_->take(
      n_bytes,
      {.block_bytes = 0, .asked_bytes = 0, .persistent = true, .pinned = false, .tag = tag}, false);
}
void* MemoryPool::allocatePersistentPinned(std::size_t n_bytes, const std::string& tag) {
  return impl_->take(
      n_bytes, {.block_bytes = 0, .asked_bytes = 0, .persistent = true, .pinned = true, .tag = tag},
      false);
}
void MemoryPool::freePersistentDevice(void* memory) {
  impl_->giveBack(memory);
}
void MemoryPool::freePersistentPinned(void* memory) {
  impl_->giveBack(memory);
}

void MemoryPool::reset(cudaStream_t /*stream*/) {
  std::vector<void*> passing;
  for (const auto& [memory, block] : impl_->used) {
    if (!block.persistent) {
      passing.push_back(memory);
    }
  }
  for (void* memory : passing) {
    impl_->giveBack(memory);
  }
}

void MemoryPool::trim() {
  impl_->releaseKept(0);
}
void MemoryPool::setReleaseThreshold(std::size_t n_bytes) {
  impl_->keep_limit_bytes = n_bytes;
  impl_->releaseKept(n_bytes);
}
std::size_t MemoryPool::getReleaseThreshold() const {
  return impl_->keep_limit_bytes;
}
void MemoryPool::synchronize(cudaStream_t /*stream*/) {
}

void MemoryPool::setScratchAllowance(std::size_t n_bytes) {
  const std::size_t n_most = std::numeric_limits<std::size_t>::max() - impl_->used_bytes;
  impl_->scratch_ceiling_bytes = impl_->used_bytes + std::min(n_bytes, n_most);
}
void MemoryPool::requireScratchAllowance(std::size_t n_bytes) const {
  const std::size_t n_left =
      impl_->scratch_ceiling_bytes - std::min(impl_->used_bytes, impl_->scratch_ceiling_bytes);
  FZ_REQUIRE(n_bytes <= n_left, ErrorCode::kLimit, "scratch: {} bytes, the memory limit leaves {}",
             n_bytes, n_left);
}

std::size_t MemoryPool::getPersistentDeviceBytes() const {
  return impl_->persistentBytes(false);
}
std::size_t MemoryPool::getPersistentPinnedBytes() const {
  return impl_->persistentBytes(true);
}
std::size_t MemoryPool::getCurrentUsage() const {
  return impl_->used_bytes;
}
std::size_t MemoryPool::getPeakUsage() const {
  return impl_->peak_bytes;
}
std::size_t MemoryPool::getAllocationCount() const {
  return impl_->used.size();
}
std::size_t MemoryPool::getSystemAllocationCount() const {
  return impl_->n_system_allocations;
}
std::vector<PoolBlock> MemoryPool::blocksInUse() const {
  std::map<std::uint64_t, PoolBlock> by_number;
  for (const auto& [memory, block] : impl_->used) {
    by_number[block.number] = {memory, block.block_bytes, block.pinned};
  }
  std::vector<PoolBlock> blocks;
  blocks.reserve(by_number.size());
  for (const auto& [number, block] : by_number) {
    blocks.push_back(block);
  }
  return blocks;
}
std::size_t MemoryPool::getConfiguredSize() const {
  return impl_->config.getPoolSize();
}
void* MemoryPool::getMemPool() const {
#if FZ_HAVE_CUDA
  return impl_->cuda_memory == nullptr ? nullptr : impl_->cuda_memory->pool();
#else
  return nullptr;
#endif
}
bool MemoryPool::isFallbackMode() const {
  return impl_->fallback;
}
int MemoryPool::getDeviceId() const {
  return impl_->config.device_id;
}
Backend MemoryPool::getBackend() const {
  return impl_->config.backend;
}
HostAllocator MemoryPool::getHostAllocator() const {
  return impl_->config.host_allocator;
}

void MemoryPool::printStats() const {
  FZ_PRINT(
      "memory pool: %zu bytes in %zu blocks, peak %zu, kept %zu, taken from the system %zu times",
      impl_->used_bytes, impl_->used.size(), impl_->peak_bytes, impl_->kept_bytes,
      impl_->n_system_allocations);
  for (const auto& [memory, block] : impl_->used) {
    FZ_PRINT("  %12zu bytes  %s%s", block.asked_bytes, block.tag.c_str(),
             block.persistent ? " (persistent)" : "");
  }
}

Scratch::~Scratch() {
  release();
}

void Scratch::release() {
  if (memory_ == nullptr) {
    return;
  }
  if (pool_ != nullptr) {
    pool_->freePersistentDevice(memory_);
  } else {
    giveBlock(memory_, capacity_bytes_);
  }
  memory_ = nullptr;
  capacity_bytes_ = 0;
}

void* Scratch::bytes(MemoryPool* pool, std::size_t n_bytes) {
  if (n_bytes <= capacity_bytes_ && pool == pool_) {
    return memory_;
  }
  release();
  const std::size_t rounded = blockBytes(std::max<std::size_t>(n_bytes, kAlignment));
  if (pool != nullptr) {
    pool->requireScratchAllowance(rounded);
  }
  pool_ = pool;
  memory_ = pool != nullptr ? pool->allocatePersistentDevice(rounded, "scratch")
                            : takeBlock(rounded, kAlignment);
  FZ_REQUIRE(memory_ != nullptr, ErrorCode::kOutOfMemory, "scratch: cannot allocate {} bytes",
             rounded);
  capacity_bytes_ = rounded;
  return memory_;
}

}  // namespace fz
