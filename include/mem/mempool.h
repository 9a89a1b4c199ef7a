#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fz/backend.h"
#include "fz/stream.h"

namespace fz {

// NOLINTBEGIN(readability-identifier-naming)
enum class MemoryStrategy {
  MINIMAL,      ///< allocate before a stage, free after its last consumer
  PREALLOCATE,  ///< all buffers at once, sharing memory where lifetimes allow; grown when needed
};
// NOLINTEND(readability-identifier-naming)

/// Where the CPU side of a pool takes memory from. `allocate` may return null; blocks must be
/// 64-byte aligned. For tests and for hosts that bring their own allocator.
struct HostAllocator {
  void* (*allocate)(std::size_t n_bytes, void* context) = nullptr;
  void (*release)(void* memory, std::size_t n_bytes, void* context) = nullptr;
  void* context = nullptr;
};

struct MemoryPoolConfig {
  explicit MemoryPoolConfig(std::size_t input_size = 0,
                            float multiplier = 3.0f,
                            int device = 0,
                            bool reuse = true,
                            bool fallback = false)
      : input_data_size(input_size),
        pool_size_multiplier(multiplier),
        device_id(device),
        enable_reuse(reuse),
        force_fallback(fallback) {}

  /// Size hint: input_data_size * pool_size_multiplier, or 1 GiB without an input size.
  std::size_t getPoolSize() const;

  std::size_t input_data_size;
  float pool_size_multiplier;
  int device_id;
  bool enable_reuse;
  bool force_fallback;
  Backend backend = Backend::CPU;
  HostAllocator host_allocator = {};
};

struct AllocationInfo {
  void* ptr;
  std::size_t size;
  std::string tag;
  bool in_use;
};

struct PersistentAllocInfo {
  void* ptr;
  std::size_t bytes;
  std::string tag;
  bool is_pinned;
};

/// A block that is in use.
struct PoolBlock {
  void* memory;
  std::size_t n_bytes;
  bool is_pinned;
};

/// Buffers of one pipeline. Freed blocks are kept and handed out again, so steady use takes
/// nothing from the system. One thread at a time.
class MemoryPool {
 public:
  explicit MemoryPool(const MemoryPoolConfig& config = MemoryPoolConfig{});
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool();

  /// For a pool without blocks in use: other settings, another backend. Throws Error.
  void reconfigure(const MemoryPoolConfig& config);

  /// 256-byte aligned; null for 0 bytes and when memory cannot be had (never throws).
  /// A persistent block survives reset().
  void* allocate(std::size_t n_bytes,
                 cudaStream_t stream,
                 const std::string& tag = "",
                 bool persistent = false);
  /// Unknown pointers are logged and ignored.
  void free(void* memory, cudaStream_t stream);
  /// For memory that is kept for long. Never a block that was freed before: taking one of those
  /// out of circulation would make the next run, which needs it again, go to the system.
  void* allocatePersistentDevice(std::size_t n_bytes, const std::string& tag = "");
  void* allocatePersistentPinned(std::size_t n_bytes, const std::string& tag = "");
  void freePersistentDevice(void* memory);
  void freePersistentPinned(void* memory);

  /// Frees every block that is not persistent.
  void reset(cudaStream_t stream);
  /// Gives kept blocks back to the system.
  void trim();
  /// Bytes of freed blocks to keep; more than that goes back to the system.
  void setReleaseThreshold(std::size_t n_bytes);
  std::size_t getReleaseThreshold() const;
  void synchronize(cudaStream_t stream);

  /// Bytes that Scratch may take on top of what is in use now; more throws Error(kLimit) there. A
  /// graph sets it while a stage runs.
  void setScratchAllowance(std::size_t n_bytes);
  /// Throws Error(kLimit) when the allowance does not hold n_bytes more.
  void requireScratchAllowance(std::size_t n_bytes) const;

  std::size_t getPersistentDeviceBytes() const;
  std::size_t getPersistentPinnedBytes() const;
  /// Bytes handed out and not freed, persistent ones included.
  std::size_t getCurrentUsage() const;
  std::size_t getPeakUsage() const;
  /// Blocks handed out and not freed.
  std::size_t getAllocationCount() const;
  /// How often memory was taken from the system since construction.
  std::size_t getSystemAllocationCount() const;
  std::size_t getConfiguredSize() const;
  /// Handle of the device pool; null on the CPU and in fallback mode.
  void* getMemPool() const;
  bool isFallbackMode() const;
  int getDeviceId() const;
  Backend getBackend() const;
  HostAllocator getHostAllocator() const;
  /// One line per block in use, through the log.
  void printStats() const;
  /// In the order in which they were taken: the same for pools of which the same was asked.
  std::vector<PoolBlock> blocksInUse() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fz
