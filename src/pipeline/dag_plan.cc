#include <algorithm>
#include <numeric>

#include "core/require.h"
#include "log.h"
#include "mem/mempool.h"
#include "pipeline/dag.h"
#include "stage/stage.h"

namespace fz {

namespace {

/// Levels during which a buffer must keep its contents, both ends included.
struct Lifetime {
  int first;
  int last;
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

template <class LevelOf>
Lifetime lifetimeOf(const BufferInfo& buffer, const LevelOf& level_of, int last_level) {
  Lifetime life{buffer.producer_stage_id < 0 ? 0 : level_of(buffer.producer_stage_id), last_level};
  if (!buffer.consumer_stage_ids.empty()) {
    life.last = life.first;
    for (const int id : buffer.consumer_stage_ids) {
      life.last = std::max(life.last, level_of(id));
    }
  }
  return life;
}

}  // namespace

std::vector<std::size_t> CompressionDAG::propagateSizes(bool proven) const {
  SizeWork work;
  propagateSizes(proven, work);
  return std::move(work.buffer_bytes);
}

void CompressionDAG::propagateSizes(bool proven, SizeWork& work) const {
  std::vector<std::size_t>& sizes = work.buffer_bytes;
  sizes.assign(buffers_.size(), 0);
  for (std::size_t id = 0; id < buffers_.size(); ++id) {
    if (buffers_[id].producer_stage_id < 0) {
      sizes[id] = buffers_[id].size;
    }
  }
  for (const DAGNode* node : order_) {
    work.inputs.clear();
    for (const int id : node->input_buffer_ids) {
      work.inputs.push_back(sizes[static_cast<std::size_t>(id)]);
    }
    std::vector<std::size_t>& outputs = work.outputs;
    if (proven) {
      outputs = node->stage->maxOutputSizes(work.inputs);
    } else {
      node->stage->estimateOutputSizesInto(work.inputs, outputs);
    }
    for (const int id : node->output_buffer_ids) {
      const auto port = static_cast<std::size_t>(bufferAt(id).producer_output_index);
      FZ_REQUIRE(port < outputs.size(), ErrorCode::kInternal,
                 "{}: estimates {} outputs, port {} is wired", node->name, outputs.size(), port);
      sizes[static_cast<std::size_t>(id)] =
          proven ? outputs[port] : std::max(outputs[port], bufferAt(id).grown_size);
    }
  }
}

/// The level in whose turn a stage works: all stages of a group work in one.
int CompressionDAG::levelOf(int stage_id) const {
  const DAGNode& node = *nodes_[static_cast<std::size_t>(stage_id)];
  return node.group < 0 ? node.level : groups_[static_cast<std::size_t>(node.group)].runs_at->level;
}

void CompressionDAG::dropRegions() {
  for (const Region& region : regions_) {
    pool_->free(region.memory, planning_stream_);
    current_bytes_ -= region.capacity_bytes;
    for (const int id : region.buffer_ids) {
      BufferInfo& buffer = bufferAt(id);
      buffer.color = -1;
      if (!buffer.is_external) {
        buffer.d_ptr = nullptr;
        buffer.allocated_size = 0;
        buffer.is_allocated = false;
      }
    }
  }
  regions_.clear();
}

void CompressionDAG::colorBuffers() {
  const int last_level = static_cast<int>(levels_.size()) - 1;
  const auto level_of = [this](int id) { return levelOf(id); };
  std::vector<int> ids;
  for (std::size_t id = 0; id < buffers_.size(); ++id) {
    if (buffers_[id].producer_stage_id >= 0 && !buffers_[id].is_external &&
        !buffers_[id].is_persistent && !buffers_[id].is_virtual) {
      ids.push_back(static_cast<int>(id));
    }
  }
  // Longest life first: the buffers that are hardest to place take regions of their own.
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) {
    const Lifetime la = lifetimeOf(bufferAt(a), level_of, last_level);
    const Lifetime lb = lifetimeOf(bufferAt(b), level_of, last_level);
    return la.last - la.first > lb.last - lb.first;
  });
  for (const int id : ids) {
    const Lifetime life = lifetimeOf(bufferAt(id), level_of, last_level);
    const auto fits = [&](const Region& region) {
      return std::none_of(region.buffer_ids.begin(), region.buffer_ids.end(), [&](int other) {
        return lifetimeOf(bufferAt(other), level_of, last_level).overlaps(life);
      });
    };
    auto region = std::find_if(regions_.begin(), regions_.end(), fits);
    if (region == regions_.end()) {
      region = regions_.insert(regions_.end(), Region{});
    }
    region->buffer_ids.push_back(id);
    bufferAt(id).color = static_cast<int>(region - regions_.begin());
  }
}

void CompressionDAG::planRegions() {
  if (coloring_requested_ && regions_.empty()) {
    colorBuffers();
  }
}

void CompressionDAG::preallocateBuffers(cudaStream_t stream) {
  if (strategy_ != MemoryStrategy::PREALLOCATE) {
    return;
  }
  planRegions();
  propagateSizes(false, size_work_);
  const std::vector<std::size_t>& sizes = size_work_.buffer_bytes;
  for (std::size_t id = 0; id < buffers_.size(); ++id) {
    BufferInfo& buffer = buffers_[id];
    if (buffer.producer_stage_id < 0 || buffer.is_external || buffer.is_virtual) {
      continue;
    }
    buffer.initial_size = sizes[id];
    provideOutput(static_cast<int>(id), sizes[id], stream);
  }
}

std::size_t CompressionDAG::getTotalBufferSize() const {
  const std::vector<std::size_t> sizes = sizesInMemory();
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

/// Estimates of what takes memory: nothing for buffers inside a group.
std::vector<std::size_t> CompressionDAG::sizesInMemory() const {
  std::vector<std::size_t> sizes = propagateSizes(false);
  for (std::size_t id = 0; id < buffers_.size(); ++id) {
    sizes[id] = buffers_[id].is_virtual ? 0 : sizes[id];
  }
  return sizes;
}

std::size_t CompressionDAG::computeTopoPoolSize() const {
  const std::vector<std::size_t> sizes = sizesInMemory();
  const int last_level = static_cast<int>(levels_.size()) - 1;
  const auto level_of = [this](int id) { return levelOf(id); };
  std::size_t scratch = 0;
  for (const DAGNode* node : order_) {
    std::vector<std::size_t> inputs;
    for (const int id : node->input_buffer_ids) {
      inputs.push_back(sizes[static_cast<std::size_t>(id)]);
    }
    scratch += node->stage->estimateScratchBytes(inputs);
  }
  std::size_t all = 0;
  std::vector<std::size_t> region_bytes(regions_.size(), 0);
  for (std::size_t id = 0; id < buffers_.size(); ++id) {
    if (buffers_[id].color < 0) {
      all += sizes[id];
      continue;
    }
    std::size_t& bytes = region_bytes[static_cast<std::size_t>(buffers_[id].color)];
    bytes = std::max(bytes, sizes[id]);
  }
  all = std::accumulate(region_bytes.begin(), region_bytes.end(), all);
  std::size_t peak = 0;
  for (int level = 0; level <= last_level; ++level) {
    std::size_t alive = 0;
    for (std::size_t id = 0; id < buffers_.size(); ++id) {
      const Lifetime life = lifetimeOf(buffers_[id], level_of, last_level);
      alive += life.first <= level && level <= life.last ? sizes[id] : 0;
    }
    peak = std::max(peak, alive);
  }
  return (strategy_ == MemoryStrategy::MINIMAL ? peak : all) + scratch;
}

std::size_t CompressionDAG::getMaxParallelism() const {
  std::size_t most = 0;
  for (const auto& level : levels_) {
    most = std::max(most, level.size());
  }
  return most;
}

void CompressionDAG::printDAG() const {
  for (const auto& level : levels_) {
    for (const DAGNode* node : level) {
      std::string inputs;
      for (const int id : node->input_buffer_ids) {
        inputs += fmt::format(" {}", id);
      }
      std::string outputs;
      for (const int id : node->output_buffer_ids) {
        outputs += fmt::format(" {}", id);
      }
      FZ_PRINT("level %d: %s  in:%s  out:%s", node->level, node->name.c_str(), inputs.c_str(),
               outputs.c_str());
    }
  }
}

void CompressionDAG::printBufferLifetimes() const {
  const int last_level = static_cast<int>(levels_.size()) - 1;
  const auto level_of = [this](int id) { return levelOf(id); };
  for (std::size_t id = 0; id < buffers_.size(); ++id) {
    const BufferInfo& buffer = buffers_[id];
    const Lifetime life = lifetimeOf(buffer, level_of, last_level);
    FZ_PRINT("buffer %zu (%s): levels %d to %d, %zu bytes, region %d", id, buffer.tag.c_str(),
             life.first, life.last, buffer.allocated_size, buffer.color);
  }
}

}  // namespace fz
