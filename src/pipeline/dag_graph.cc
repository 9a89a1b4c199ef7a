#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/require.h"
#include "fz/simple_stage.h"
#include "mem/mempool.h"
#include "pipeline/dag.h"
#include "stage/stage.h"

namespace fz {

CompressionDAG::CompressionDAG(MemoryPool* pool, MemoryStrategy strategy)
    : pool_(pool), strategy_(strategy) {
  FZ_REQUIRE_ARG(pool != nullptr, "CompressionDAG: the memory pool is null");
}

CompressionDAG::~CompressionDAG() {
  for (BufferInfo& buffer : buffers_) {
    buffer.is_persistent = false;
    freeBuffer(buffer, nullptr);
  }
  for (const Region& region : regions_) {
    pool_->free(region.memory, nullptr);
  }
}

void CompressionDAG::requireEditable(const char* what) const {
  FZ_REQUIRE(!finalized_, ErrorCode::kInvalidState, "CompressionDAG: {} after finalize", what);
}

BufferInfo& CompressionDAG::bufferAt(int buffer_id) {
  return const_cast<BufferInfo&>(std::as_const(*this).bufferAt(buffer_id));
}

const BufferInfo& CompressionDAG::bufferAt(int buffer_id) const {
  FZ_REQUIRE(buffer_id >= 0 && static_cast<std::size_t>(buffer_id) < buffers_.size(),
             ErrorCode::kInvalidArgument, "CompressionDAG: no buffer {}", buffer_id);
  return buffers_[static_cast<std::size_t>(buffer_id)];
}

int CompressionDAG::newBuffer(BufferInfo info) {
  info.initial_size = info.size;
  buffers_.push_back(std::move(info));
  return static_cast<int>(buffers_.size()) - 1;
}

DAGNode* CompressionDAG::addStage(Stage* stage, const std::string& name) {
  requireEditable("addStage");
  FZ_REQUIRE(stage != nullptr, ErrorCode::kInvalidArgument, "CompressionDAG: the stage is null");
  auto node = std::make_unique<DAGNode>();
  node->id = static_cast<int>(nodes_.size());
  node->stage = stage;
  node->name = name.empty() ? stage->getName() : name;
  node->reports_exact_sizes = dynamic_cast<SimpleStage*>(stage) != nullptr;
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

int CompressionDAG::addUnconnectedOutput(DAGNode* node,
                                         std::size_t n_bytes,
                                         int output_index,
                                         const std::string& tag) {
  requireEditable("addUnconnectedOutput");
  const int id = newBuffer({.size = n_bytes,
                            .tag = tag,
                            .producer_stage_id = node->id,
                            .producer_output_index = output_index});
  node->output_buffer_ids.push_back(id);
  node->output_index_to_buffer_id[output_index] = id;
  return id;
}

int CompressionDAG::setOutputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag) {
  return addUnconnectedOutput(node, n_bytes, static_cast<int>(node->output_buffer_ids.size()), tag);
}

int CompressionDAG::addDependency(DAGNode* dependent,
                                  DAGNode* dependency,
                                  std::size_t n_bytes,
                                  int output_index) {
  requireEditable("addDependency");
  FZ_REQUIRE(n_bytes > 0, ErrorCode::kInvalidArgument,
             "CompressionDAG: a dependency of 0 bytes from {} to {}", dependency->name,
             dependent->name);
  if (dependency->output_index_to_buffer_id.count(output_index) == 0) {
    addUnconnectedOutput(dependency, n_bytes, output_index);
  }
  connectExistingOutput(dependency, dependent, output_index);
  return dependency->output_index_to_buffer_id.at(output_index);
}

bool CompressionDAG::connectExistingOutput(DAGNode* producer, DAGNode* consumer, int output_index) {
  requireEditable("connectExistingOutput");
  const auto found = producer->output_index_to_buffer_id.find(output_index);
  if (found == producer->output_index_to_buffer_id.end()) {
    return false;
  }
  BufferInfo& buffer = bufferAt(found->second);
  buffer.consumer_stage_ids.push_back(consumer->id);
  consumer->input_buffer_ids.push_back(found->second);
  consumer->dependencies.push_back(producer);
  producer->dependents.push_back(consumer);
  return true;
}

void CompressionDAG::dropOutput(DAGNode* node, int output_index) {
  requireEditable("dropOutput");
  const auto found = node->output_index_to_buffer_id.find(output_index);
  if (found == node->output_index_to_buffer_id.end()) {
    return;
  }
  std::erase(node->output_buffer_ids, found->second);
  node->output_index_to_buffer_id.erase(found);
}

int CompressionDAG::setInputBuffer(DAGNode* node, std::size_t n_bytes, const std::string& tag) {
  requireEditable("setInputBuffer");
  const int id = newBuffer({.size = n_bytes, .tag = tag, .is_external = true});
  bufferAt(id).consumer_stage_ids.push_back(node->id);
  node->input_buffer_ids.push_back(id);
  return id;
}

void CompressionDAG::updateBufferTag(int buffer_id, const std::string& tag) {
  bufferAt(buffer_id).tag = tag;
}
void CompressionDAG::setBufferPersistent(int buffer_id, bool persistent) {
  bufferAt(buffer_id).is_persistent = persistent;
}

void CompressionDAG::configureStreams(int n_streams) {
  n_streams_ = std::max(1, n_streams);
}

void CompressionDAG::finalize() {
  requireEditable("finalize");
  for (const auto& node : nodes_) {
    std::sort(node->output_buffer_ids.begin(), node->output_buffer_ids.end(), [&](int a, int b) {
      return bufferAt(a).producer_output_index < bufferAt(b).producer_output_index;
    });
  }
  assignLevels();
  sortLevels();
  finalized_ = true;
}

void CompressionDAG::assignLevels() {
  std::vector<std::size_t> n_open(nodes_.size());
  std::vector<DAGNode*> ready;
  for (const auto& node : nodes_) {
    n_open[static_cast<std::size_t>(node->id)] = node->dependencies.size();
    if (node->dependencies.empty()) {
      node->level = 0;
      ready.push_back(node.get());
    }
  }
  std::size_t n_done = 0;
  while (n_done < ready.size()) {
    DAGNode* node = ready[n_done++];
    for (DAGNode* dependent : node->dependents) {
      dependent->level = std::max(dependent->level, node->level + 1);
      if (--n_open[static_cast<std::size_t>(dependent->id)] == 0) {
        ready.push_back(dependent);
      }
    }
  }
  if (n_done != nodes_.size()) {
    std::string names;
    for (const auto& node : nodes_) {
      if (n_open[static_cast<std::size_t>(node->id)] > 0) {
        names += (names.empty() ? "" : ", ") + node->name;
      }
    }
    detail::throwError(ErrorCode::kGraph, "pipeline: the stages form a cycle: " + names);
  }
}

namespace {

/// What makes a stage what it is, apart from its place: type, element types, settings.
std::string stageKey(const Stage& stage) {
  std::string key = fmt::format("{:05}", stage.getStageTypeId());
  for (const DataType type : stage.elementTypes()) {
    key += fmt::format(" {}", dataTypeToString(type));
  }
  for (const Param& param : stage.paramTable().rows()) {
    key += fmt::format(" {}={}", param.key, toTomlText(param.get(stage)));
  }
  return key;
}

}  // namespace

/// Rank of every node, by id, among the nodes of its level: by what it is, then by which inputs of
/// which stages its outputs fill. Nodes alike in both have the same rank.
std::vector<std::size_t> CompressionDAG::ranksInLevel() const {
  using Use = std::tuple<int, int, std::size_t, std::size_t>;  // port, level, rank and input slot
  using Key = std::pair<std::string, std::vector<Use>>;
  std::vector<std::size_t> ranks(nodes_.size(), 0);
  const auto keyOf = [&](const DAGNode& node) {
    std::set<Use> uses;
    for (const int id : node.output_buffer_ids) {
      for (const int consumer_id : bufferAt(id).consumer_stage_ids) {
        const DAGNode& consumer = *nodes_[static_cast<std::size_t>(consumer_id)];
        for (std::size_t slot = 0; slot < consumer.input_buffer_ids.size(); ++slot) {
          if (consumer.input_buffer_ids[slot] == id) {
            uses.emplace(bufferAt(id).producer_output_index, consumer.level,
                         ranks[static_cast<std::size_t>(consumer_id)], slot);
          }
        }
      }
    }
    return Key{stageKey(*node.stage), {uses.begin(), uses.end()}};
  };
  // Consumers stand on higher levels, so their ranks are known.
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    std::map<Key, std::vector<const DAGNode*>> groups;
    for (const DAGNode* node : *level) {
      groups[keyOf(*node)].push_back(node);
    }
    std::size_t rank = 0;
    for (const auto& [key, nodes] : groups) {
      for (const DAGNode* node : nodes) {
        ranks[static_cast<std::size_t>(node->id)] = rank;
      }
      ++rank;
    }
  }
  return ranks;
}

void CompressionDAG::sortLevels() {
  int n_levels = 0;
  for (const auto& node : nodes_) {
    n_levels = std::max(n_levels, node->level + 1);
  }
  levels_.assign(static_cast<std::size_t>(n_levels), {});
  for (const auto& node : nodes_) {
    levels_[static_cast<std::size_t>(node->level)].push_back(node.get());
  }
  // A node's place in its level follows from where its inputs come from, what it is and what
  // follows it. Nodes equal in all of that are interchangeable; only then the order of addition
  // decides.
  const std::vector<std::size_t> ranks = ranksInLevel();
  using Key = std::tuple<std::vector<std::pair<int, int>>, std::size_t, int>;
  const auto keyOf = [&](const DAGNode* node) {
    std::vector<std::pair<int, int>> sources;
    for (const int id : node->input_buffer_ids) {
      const BufferInfo& buffer = bufferAt(id);
      const int producer =
          buffer.producer_stage_id < 0
              ? -1
              : nodes_[static_cast<std::size_t>(buffer.producer_stage_id)]->execution_order;
      sources.emplace_back(producer, buffer.producer_output_index);
    }
    return Key{std::move(sources), ranks[static_cast<std::size_t>(node->id)], node->id};
  };
  order_.clear();
  for (auto& level : levels_) {
    std::sort(level.begin(), level.end(),
              [&](const DAGNode* a, const DAGNode* b) { return keyOf(a) < keyOf(b); });
    for (DAGNode* node : level) {
      node->execution_order = static_cast<int>(order_.size());
      order_.push_back(node);
    }
  }
}

}  // namespace fz
