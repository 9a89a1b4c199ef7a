#include "pipeline/run/buffers.h"

#include <algorithm>
#include <limits>

#include "core/require.h"

namespace fz {

Buffers::Buffers(MemoryPool* pool, MemoryStrategy strategy) : pool_(pool), strategy_(strategy) {
  FZ_REQUIRE_ARG(pool != nullptr, "CompressionDAG: the memory pool is null");
}

Buffers::~Buffers() {
  for (Buffer& buffer : buffers_) {
    buffer.is_persistent = false;
    free(buffer, nullptr);
  }
  for (const Region& region : regions_) {
    pool_->free(region.memory, nullptr);
  }
}

void Buffers::adopt(const Graph& graph) {
  buffers_.reserve(graph.edges().size());
  for (std::size_t id = 0; id < graph.edges().size(); ++id) {
    const Edge& edge = graph.edges()[id];
    if (id == buffers_.size()) {
      Buffer& buffer = buffers_.emplace_back();
      buffer.size = edge.n_bytes;
      buffer.initial_size = edge.n_bytes;
      buffer.is_external = edge.isFromOutside();
    }
    Buffer& buffer = buffers_[id];
    buffer.tag = edge.tag;
    buffer.producer_stage_id = edge.producer;
    buffer.producer_output_index = edge.port;
    buffer.consumer_stage_ids = edge.consumers;
  }
}

Buffer& Buffers::at(int id) {
  FZ_REQUIRE(id >= 0 && static_cast<std::size_t>(id) < buffers_.size(), ErrorCode::kInvalidArgument,
             "CompressionDAG: no buffer {}", id);
  return buffers_[static_cast<std::size_t>(id)];
}

void Buffers::lendInput(int id, void* memory) {
  lendOutput(id, memory, std::max(at(id).allocated_size, at(id).size));
}

void Buffers::lendOutput(int id, void* memory, std::size_t capacity_bytes) {
  Buffer& buffer = at(id);
  free(buffer, nullptr);
  buffer.d_ptr = memory;
  buffer.is_external = true;
  buffer.allocated_size = capacity_bytes;
}

void Buffers::beginRun() {
  for (Buffer& buffer : buffers_) {
    buffer.remaining_consumers = static_cast<int>(buffer.consumer_stage_ids.size());
  }
}

void Buffers::release(int id, cudaStream_t stream) {
  Buffer& buffer = at(id);
  if (--buffer.remaining_consumers == 0 && strategy_ == MemoryStrategy::MINIMAL) {
    free(buffer, stream);
  }
}

void Buffers::setInside(int id, bool inside, cudaStream_t stream) {
  Buffer& buffer = at(id);
  buffer.is_inside = inside;
  if (inside) {
    free(buffer, stream);
  }
}

void Buffers::reset(cudaStream_t stream) {
  if (strategy_ == MemoryStrategy::MINIMAL) {
    for (Buffer& buffer : buffers_) {
      free(buffer, stream);
    }
  }
}

std::size_t Buffers::bytesLeft() const {
  if (limit_bytes_ == 0) {
    return std::numeric_limits<std::size_t>::max();
  }
  const std::size_t n_used = current_bytes_ + scratch_bytes_ + elsewhere_bytes_;
  return limit_bytes_ - std::min(n_used, limit_bytes_);
}

void Buffers::requireRoom(std::size_t n_bytes, const std::string& what) const {
  FZ_REQUIRE(n_bytes <= bytesLeft(), ErrorCode::kLimit,
             "{}: {} bytes more than the {} in use exceed the limit of {} bytes", what, n_bytes,
             current_bytes_ + scratch_bytes_ + elsewhere_bytes_, limit_bytes_);
}

void Buffers::requireElsewhere(std::size_t n_bytes, const std::string& what) const {
  FZ_REQUIRE(limit_bytes_ == 0 || n_bytes <= elsewhere_bytes_ ||
                 (current_bytes_ <= limit_bytes_ && n_bytes <= limit_bytes_ - current_bytes_),
             ErrorCode::kLimit, "{}: {} bytes more than the {} in use exceed the limit of {} bytes",
             what, n_bytes, current_bytes_, limit_bytes_);
}

Buffers::ScratchScope::ScratchScope(Buffers& buffers)
    : buffers_(buffers), before_bytes_(buffers.pool_->getCurrentUsage()) {
  buffers.pool_->setScratchAllowance(buffers.bytesLeft());
}

Buffers::ScratchScope::~ScratchScope() {
  buffers_.pool_->setScratchAllowance(std::numeric_limits<std::size_t>::max());
  // A stage that grew gave its smaller block back, so the difference may fall as well.
  const std::size_t after_bytes = buffers_.pool_->getCurrentUsage();
  std::size_t& scratch_bytes = buffers_.scratch_bytes_;
  scratch_bytes = after_bytes >= before_bytes_
                      ? scratch_bytes + (after_bytes - before_bytes_)
                      : scratch_bytes - std::min(scratch_bytes, before_bytes_ - after_bytes);
}

void* Buffers::allocate(std::size_t n_bytes, const std::string& tag, cudaStream_t stream) {
  requireRoom(n_bytes, tag);
  void* memory = pool_->allocate(n_bytes, stream, tag, true);
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "{}: cannot allocate {} bytes", tag,
             n_bytes);
  current_bytes_ += n_bytes;
  peak_bytes_ = std::max(peak_bytes_, current_bytes_);
  return memory;
}

void Buffers::free(Buffer& buffer, cudaStream_t stream) {
  if (!buffer.is_allocated || buffer.is_external || buffer.is_persistent || buffer.region >= 0) {
    return;
  }
  pool_->free(buffer.d_ptr, stream);
  current_bytes_ -= buffer.allocated_size;
  buffer.d_ptr = nullptr;
  buffer.allocated_size = 0;
  buffer.is_allocated = false;
}

void Buffers::growRegion(Region& region, std::size_t n_bytes, cudaStream_t stream) {
  if (region.capacity_bytes < n_bytes) {
    pool_->free(region.memory, stream);
    current_bytes_ -= region.capacity_bytes;
    region.memory = nullptr;
    region.capacity_bytes = 0;
    region.memory = allocate(n_bytes, "region", stream);
    region.capacity_bytes = n_bytes;
  }
  for (const int id : region.buffer_ids) {
    Buffer& buffer = at(id);
    buffer.d_ptr = region.memory;
    buffer.allocated_size = region.capacity_bytes;
    buffer.is_allocated = region.memory != nullptr;
  }
}

void Buffers::provide(int id, std::size_t n_bytes, cudaStream_t stream) {
  Buffer& buffer = at(id);
  if (buffer.is_external) {
    if (buffer.allocated_size < n_bytes) {
      FZ_REQUIRE(static_cast<bool>(grower_), ErrorCode::kBufferTooSmall,
                 "{}: the buffer has {} bytes, {} are needed", buffer.tag, buffer.allocated_size,
                 n_bytes);
      buffer.d_ptr = grower_(id, n_bytes);
      buffer.allocated_size = n_bytes;
    }
    return;
  }
  if (buffer.region >= 0) {
    // No other buffer of the region is alive while this one is being produced.
    growRegion(regions_[static_cast<std::size_t>(buffer.region)], n_bytes, stream);
    return;
  }
  if (buffer.allocated_size >= n_bytes) {
    return;
  }
  if (buffer.is_allocated) {
    pool_->free(buffer.d_ptr, stream);
    current_bytes_ -= buffer.allocated_size;
    buffer.d_ptr = nullptr;
    buffer.allocated_size = 0;
    buffer.is_allocated = false;
  }
  buffer.d_ptr = allocate(n_bytes, buffer.tag, stream);
  buffer.allocated_size = n_bytes;
  buffer.is_allocated = true;
}

void Buffers::setRegions(const std::vector<std::vector<int>>& ids_by_color) {
  regions_.resize(ids_by_color.size());
  for (std::size_t color = 0; color < ids_by_color.size(); ++color) {
    regions_[color].buffer_ids = ids_by_color[color];
    for (const int id : ids_by_color[color]) {
      at(id).region = static_cast<int>(color);
    }
  }
}

void Buffers::dropRegions(cudaStream_t stream) {
  for (const Region& region : regions_) {
    pool_->free(region.memory, stream);
    current_bytes_ -= region.capacity_bytes;
    for (const int id : region.buffer_ids) {
      Buffer& buffer = at(id);
      buffer.region = -1;
      if (!buffer.is_external) {
        buffer.d_ptr = nullptr;
        buffer.allocated_size = 0;
        buffer.is_allocated = false;
      }
    }
  }
  regions_.clear();
}

}  // namespace fz
