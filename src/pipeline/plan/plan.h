#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fz/backend.h"
#include "fz/fusion.h"
#include "fz/tile_op.h"
#include "pipeline/graph.h"

namespace fz {

namespace cuda {
struct GroupKernel;
}
struct CpuChain;

/// What is done in one go: a stage, or a chain of stages fused into one pass over memory.
struct Step {
  std::vector<DAGNode*> chain = {};  ///< from the field on, in either direction
  DAGNode* runs_at = nullptr;        ///< the node in whose place the step is done
  std::string name = {};
  // Of a fused chain.
  std::size_t value_bytes = 1;                ///< of a value as the coder gets it
  std::size_t tile_values = 0;                ///< on the CPU
  std::size_t coder_values = 1;               ///< on the CPU: unit of planes and coder
  const cuda::GroupKernel* kernel = nullptr;  ///< on a device
  unsigned pass = 0;                          ///< on a device: see GroupRun
  std::shared_ptr<CpuChain> cpu = {};         ///< made by the CPU executor, when it first runs

  bool isFused() const { return chain.size() > 1; }
};

/// Levels during which a buffer must keep its contents, both ends included.
struct Lifetime {
  int first;
  int last;
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

/// How a graph is run: its steps in order, which edges never take memory, and which may share it.
class Plan {
 public:
  explicit Plan(const Graph& graph) : graph_(graph) {}

  /// Whether the plan still holds for the stages' settings of the moment.
  bool isCurrent(Backend backend, Fusion fusion) const;
  /// Makes the steps anew. On a device its kernels are looked for on the current one. Edges that
  /// `is_kept` names are wanted by somebody outside and are not fused away.
  void build(Backend backend, Fusion fusion, std::function<bool(int)> is_kept);
  /// Runs a fused step stage by stage after all; `reason` is for people.
  void dissolve(const Step& step, const std::string& reason);

  /// In order of execution.
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }
  const Step& stepOf(const DAGNode& node) const { return steps_[step_of_[indexOf(node)]]; }
  Step& stepOf(const DAGNode& node) { return steps_[step_of_[indexOf(node)]]; }
  /// The fused ones.
  std::vector<const Step*> fusedSteps() const;
  /// Whether an edge lies between two stages of one fused step.
  bool isInside(int edge_id) const;
  const TileOp& opOf(const DAGNode& node) const { return ops_[indexOf(node)]; }
  /// Why neighbouring stages are not fused, for people.
  const std::vector<std::string>& obstacles() const { return obstacles_; }

  Lifetime lifetimeOf(int edge_id) const;
  /// Edges by color: those of one color are never alive at the same time. Only edges that
  /// `may_share` accepts get one.
  std::vector<std::vector<int>> colorEdges(const std::function<bool(int)>& may_share) const;

 private:
  static std::size_t indexOf(const DAGNode& node) { return static_cast<std::size_t>(node.id); }
  DAGNode* nextInChain(const DAGNode& node) const;
  void splitChain(const std::vector<DAGNode*>& chain);
  void fuseLongest(const std::vector<DAGNode*>& chain);
  bool tryFuse(const std::vector<DAGNode*>& chain);
  void orderSteps();
  int levelOf(int node_id) const;

  const Graph& graph_;
  std::vector<Step> steps_;
  std::vector<std::size_t> step_of_;  // by node
  std::vector<TileOp> ops_;           // by node, as they were when the steps were made
  std::vector<std::string> obstacles_;
  bool is_built_ = false;
  Backend backend_ = Backend::CPU;
  Fusion fusion_ = Fusion::Off;
  std::function<bool(int)> is_kept_;
};

/// The kernel of a chain on the current device. Null: there is none, and `reason` says why.
const cuda::GroupKernel* findChainKernel(const std::vector<DAGNode*>& chain,
                                         std::size_t value_bytes,
                                         std::string& reason);

}  // namespace fz
