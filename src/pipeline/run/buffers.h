#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "mem/mempool.h"
#include "pipeline/graph.h"

namespace fz {

/// The memory of an edge, and what is known of its size.
struct Buffer : BufferInfo {
  bool is_inside = false;      ///< between two stages of a fused chain: a size and never any memory
  int region = -1;             ///< memory shared with other buffers; -1: none
  std::size_t grown_size = 0;  ///< what an earlier run turned out to need

  // On a device.

  bool size_exact = false;  ///< `size` is the size, not only its limit
  /// For data from outside: where the exact size stands, `size` being its limit.
  const std::uint64_t* size_on_device = nullptr;
  /// The size is known beforehand, whatever the producer would estimate.
  bool has_planned_size = false;
  bool planned_exact = false;
  std::size_t planned_size = 0;
};

/// All buffers of a graph: the only place that knows capacities, growth and the memory limit.
class Buffers {
 public:
  /// Memory for a lent output that is too small; must return at least n_bytes.
  using Grower = std::function<void*(int buffer_id, std::size_t n_bytes)>;

  /// Throws InvalidArgument for a null pool.
  Buffers(MemoryPool* pool, MemoryStrategy strategy);
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();

  /// One buffer per edge; those that exist keep what they have.
  void adopt(const Graph& graph);
  MemoryPool* pool() const { return pool_; }
  MemoryStrategy strategy() const { return strategy_; }
  void setStrategy(MemoryStrategy strategy) { strategy_ = strategy; }

  std::size_t count() const { return buffers_.size(); }
  /// Throws Error(kInvalidArgument) for an id that there is not.
  Buffer& at(int id);
  const Buffer& at(int id) const { return const_cast<Buffers&>(*this).at(id); }
  const std::vector<Buffer>& all() const { return buffers_; }

  /// Lends memory: an input, or an output of at least capacity_bytes, which `grower` replaces when
  /// it is too small.
  void lendInput(int id, void* memory);
  void lendOutput(int id, void* memory, std::size_t capacity_bytes);
  void setGrower(Grower grower) { grower_ = std::move(grower); }

  /// Before a run: nobody has read anything yet.
  void beginRun();
  /// Makes sure that the buffer holds n_bytes; contents may be lost. Throws Error (kLimit,
  /// kOutOfMemory, kBufferTooSmall).
  void provide(int id, std::size_t n_bytes, cudaStream_t stream);
  /// One of the consumers is done; MINIMAL frees the memory behind the last one.
  void release(int id, cudaStream_t stream);
  /// Between the stages of a chain now, or no longer.
  void setInside(int id, bool inside, cudaStream_t stream);
  /// Frees what is not persistent (MINIMAL).
  void reset(cudaStream_t stream);

  /// Memory that several buffers share; one region per color. Empty: each its own.
  void setRegions(const std::vector<std::vector<int>>& ids_by_color);
  void dropRegions(cudaStream_t stream);
  std::size_t regionCount() const { return regions_.size(); }

  /// Bytes that buffers, the stages' work memory and the n_elsewhere bytes that the run needs
  /// elsewhere may take together; more throws Error(kLimit). 0: no limit.
  void setLimit(std::size_t n_bytes, std::size_t n_elsewhere = 0) {
    limit_bytes_ = n_bytes;
    elsewhere_bytes_ = n_elsewhere;
  }
  /// Throws Error(kLimit) when `what`, n_bytes more, does not fit the limit.
  void requireRoom(std::size_t n_bytes, const std::string& what) const;
  /// The same for what the run needs elsewhere, unless it has that much already.
  void requireElsewhere(std::size_t n_bytes, const std::string& what) const;
  std::size_t currentBytes() const { return current_bytes_; }
  std::size_t peakBytes() const { return peak_bytes_; }

  /// While it lives, what Scratch takes from the pool counts as work memory of this graph.
  class ScratchScope {
   public:
    explicit ScratchScope(Buffers& buffers);
    ScratchScope(const ScratchScope&) = delete;
    ScratchScope& operator=(const ScratchScope&) = delete;
    ~ScratchScope();

   private:
    Buffers& buffers_;
    std::size_t before_bytes_;
  };

 private:
  struct Region {
    std::vector<int> buffer_ids;
    void* memory = nullptr;
    std::size_t capacity_bytes = 0;
  };

  std::size_t bytesLeft() const;
  void* allocate(std::size_t n_bytes, const std::string& tag, cudaStream_t stream);
  void free(Buffer& buffer, cudaStream_t stream);
  void growRegion(Region& region, std::size_t n_bytes, cudaStream_t stream);

  MemoryPool* pool_;
  MemoryStrategy strategy_;
  std::vector<Buffer> buffers_;
  std::vector<Region> regions_;
  Grower grower_;
  std::size_t limit_bytes_ = 0;
  std::size_t elsewhere_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;  // that stages took in runs of this graph
  std::size_t current_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
};

}  // namespace fz
