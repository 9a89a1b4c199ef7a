#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/dag.h"

namespace fz {

/// A stage's output, or data from outside, and who reads it.
struct Edge {
  std::size_t n_bytes = 0;  ///< as known when the graph was built
  std::string tag = {};
  int producer = -1;  ///< id of a node; -1: from outside
  int port = 0;       ///< of the producer
  std::vector<int> consumers = {};

  bool isFromOutside() const { return producer < 0; }
};

/// Which stage reads what of which other. The order of the stages, and of everything derived from
/// it, depends on the graph alone, not on the order in which they were added. Fixed once finalized.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  DAGNode* addStage(Stage* stage, const std::string& name);
  /// A new edge from a port of `node`; returns its id.
  int addOutput(DAGNode& node, int port, std::size_t n_bytes, const std::string& tag);
  /// The next input of `node` comes from outside; returns the id of the edge.
  int addInput(DAGNode& node, std::size_t n_bytes, const std::string& tag);
  /// Makes an existing output the next input of `consumer`; false when there is no such output.
  bool connect(DAGNode& producer, DAGNode& consumer, int port);
  void dropOutput(DAGNode& node, int port);
  void setTag(int edge_id, const std::string& tag) { edgeAt(edge_id).tag = tag; }
  /// Orders the stages. Throws Error(kGraph) naming the stages of a cycle.
  void finalize();
  bool isFinalized() const { return is_finalized_; }

  const std::vector<std::unique_ptr<DAGNode>>& nodes() const { return nodes_; }
  DAGNode& node(int id) const { return *nodes_[static_cast<std::size_t>(id)]; }
  /// In canonical order.
  const std::vector<DAGNode*>& order() const { return order_; }
  const std::vector<std::vector<DAGNode*>>& levels() const { return levels_; }
  const std::vector<Edge>& edges() const { return edges_; }
  /// Throws Error(kInvalidArgument) for an id that there is not.
  const Edge& edge(int id) const;

 private:
  Edge& edgeAt(int id) { return const_cast<Edge&>(edge(id)); }
  void requireEditable(const char* what) const;
  void assignLevels();
  std::vector<std::size_t> ranksInLevel() const;
  void sortLevels();

  std::vector<std::unique_ptr<DAGNode>> nodes_;
  std::vector<Edge> edges_;
  std::vector<std::vector<DAGNode*>> levels_;
  std::vector<DAGNode*> order_;
  bool is_finalized_ = false;
};

/// The node's stage where it derives from SimpleStage, else null.
class SimpleStage;
SimpleStage* simpleStage(const DAGNode& node);

}  // namespace fz
