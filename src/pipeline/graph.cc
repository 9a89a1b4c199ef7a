#include "pipeline/graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/require.h"
#include "fz/simple_stage.h"
#include "stage/stage.h"

namespace fz {

SimpleStage* simpleStage(const DAGNode& node) {
  return dynamic_cast<SimpleStage*>(node.stage);
}

void Graph::requireEditable(const char* what) const {
  FZ_REQUIRE(!is_finalized_, ErrorCode::kInvalidState, "CompressionDAG: {} called after finalize",
             what);
}

const Edge& Graph::edge(int id) const {
  FZ_REQUIRE(id >= 0 && static_cast<std::size_t>(id) < edges_.size(), ErrorCode::kInvalidArgument,
             "CompressionDAG: no buffer {}", id);
  return edges_[static_cast<std::size_t>(id)];
}

DAGNode* Graph::addStage(Stage* stage, const std::string& name) {
  requireEditable("addStage");
  FZ_REQUIRE(stage != nullptr, ErrorCode::kInvalidArgument, "CompressionDAG: the stage is null");
  auto node = std::make_unique<DAGNode>();
  node->id = static_cast<int>(nodes_.size());
  node->stage = stage;
  node->name = name.empty() ? stage->getName() : name;
  nodes_.push_back(std::move(node));
  return nodes_.back().get();
}

int Graph::addOutput(DAGNode& node, int port, std::size_t n_bytes, const std::string& tag) {
  requireEditable("addOutput");
  const int id = static_cast<int>(edges_.size());
  edges_.push_back({.n_bytes = n_bytes, .tag = tag, .producer = node.id, .port = port});
  node.output_buffer_ids.push_back(id);
  node.output_index_to_buffer_id[port] = id;
  return id;
}

int Graph::addInput(DAGNode& node, std::size_t n_bytes, const std::string& tag) {
  requireEditable("addInput");
  const int id = static_cast<int>(edges_.size());
  edges_.push_back({.n_bytes = n_bytes, .tag = tag, .consumers = {node.id}});
  node.input_buffer_ids.push_back(id);
  return id;
}

bool Graph::connect(DAGNode& producer, DAGNode& consumer, int port) {
  requireEditable("connect");
  const auto found = producer.output_index_to_buffer_id.find(port);
  if (found == producer.output_index_to_buffer_id.end()) {
    return false;
  }
  edgeAt(found->second).consumers.push_back(consumer.id);
  consumer.input_buffer_ids.push_back(found->second);
  consumer.dependencies.push_back(&producer);
  producer.dependents.push_back(&consumer);
  return true;
}

void Graph::dropOutput(DAGNode& node, int port) {
  requireEditable("dropOutput");
  const auto found = node.output_index_to_buffer_id.find(port);
  if (found != node.output_index_to_buffer_id.end()) {
    std::erase(node.output_buffer_ids, found->second);
    node.output_index_to_buffer_id.erase(found);
  }
}

void Graph::finalize() {
  requireEditable("finalize");
  for (const auto& node : nodes_) {
    std::sort(node->output_buffer_ids.begin(), node->output_buffer_ids.end(),
              [&](int a, int b) { return edge(a).port < edge(b).port; });
  }
  assignLevels();
  sortLevels();
  is_finalized_ = true;
}

void Graph::assignLevels() {
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
std::vector<std::size_t> Graph::ranksInLevel() const {
  using Use = std::tuple<int, int, std::size_t, std::size_t>;  // port, level, rank and input slot
  using Key = std::pair<std::string, std::vector<Use>>;
  std::vector<std::size_t> ranks(nodes_.size(), 0);
  const auto keyOf = [&](const DAGNode& at) {
    std::set<Use> uses;
    for (const int id : at.output_buffer_ids) {
      for (const int consumer_id : edge(id).consumers) {
        const DAGNode& consumer = node(consumer_id);
        for (std::size_t slot = 0; slot < consumer.input_buffer_ids.size(); ++slot) {
          if (consumer.input_buffer_ids[slot] == id) {
            uses.emplace(edge(id).port, consumer.level,
                         ranks[static_cast<std::size_t>(consumer_id)], slot);
          }
        }
      }
    }
    return Key{stageKey(*at.stage), {uses.begin(), uses.end()}};
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

void Graph::sortLevels() {
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
  const auto keyOf = [&](const DAGNode* at) {
    std::vector<std::pair<int, int>> sources;
    for (const int id : at->input_buffer_ids) {
      const Edge& from = edge(id);
      const int producer = from.isFromOutside() ? -1 : node(from.producer).execution_order;
      sources.emplace_back(producer, from.port);
    }
    return Key{std::move(sources), ranks[static_cast<std::size_t>(at->id)], at->id};
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
