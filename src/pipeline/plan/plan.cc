// Which stages run as one, and which edges may share memory. The rules are those of TileOp; the
// same for both backends.
#include "pipeline/plan/plan.h"

#include <algorithm>

#include "core/require.h"
#include "core/stage_access.h"
#include "pipeline/plan/chain_fit.h"
#include "pipeline/plan/tile_role.h"

namespace fz {

namespace {

TileOp currentOp(const DAGNode& node, Backend backend) {
  const SimpleStage* stage = simpleStage(node);
  if (stage == nullptr) {
    return NoOp{"comes from outside the library"};
  }
  return stage->tileOp(backend);
}

bool mayFollow(TileRole before, TileRole role, bool has_order_or_rows) {
  if (before == TileRole::kCoder || role == TileRole::kNone) {
    return false;
  }
  if (before == TileRole::kPlanes) {
    return role == TileRole::kCoder;
  }
  return role != TileRole::kOrder || !has_order_or_rows;
}

std::string joinNames(const std::vector<DAGNode*>& chain) {
  std::string names;
  for (const DAGNode* node : chain) {
    names += (names.empty() ? "" : " + ") + node->name;
  }
  return names;
}

}  // namespace

bool Plan::isCurrent(Backend backend, Fusion fusion) const {
  if (!is_built_ || backend != backend_ || fusion != fusion_) {
    return false;
  }
  return fusion == Fusion::Off ||
         std::all_of(graph_.order().begin(), graph_.order().end(),
                     [&](const DAGNode* node) { return currentOp(*node, backend) == opOf(*node); });
}

/// The stage next to this one, seen from the field, when no other stage reads what lies between
/// them.
DAGNode* Plan::nextInChain(const DAGNode& node) const {
  const SimpleStage* stage = simpleStage(node);
  if (stage == nullptr) {
    return nullptr;
  }
  int id = -1;
  if (stage->isInverse()) {
    id = node.input_buffer_ids.empty() ? -1 : node.input_buffer_ids.front();
  } else if (node.output_index_to_buffer_id.count(0) != 0) {
    id = node.output_index_to_buffer_id.at(0);
  }
  if (id < 0) {
    return nullptr;
  }
  const Edge& edge = graph_.edge(id);
  if (edge.isFromOutside() || edge.consumers.size() != 1 || edge.port != 0 || is_kept_(id)) {
    return nullptr;
  }
  DAGNode& consumer = graph_.node(edge.consumers.front());
  if (consumer.input_buffer_ids.front() != id) {
    return nullptr;
  }
  DAGNode& other = stage->isInverse() ? graph_.node(edge.producer) : consumer;
  const SimpleStage* other_stage = simpleStage(other);
  return other_stage != nullptr && other_stage->isInverse() == stage->isInverse() ? &other
                                                                                  : nullptr;
}

bool Plan::tryFuse(const std::vector<DAGNode*>& chain) {
  Step step;
  step.chain = chain;
  step.name = joinNames(chain);
  std::vector<TileOp> ops;
  ops.reserve(chain.size());
  for (const DAGNode* node : chain) {
    ops.push_back(opOf(*node));
  }
  std::string obstacle = fusionObstacle(chain, ops, backend_, step);
  if (obstacle.empty() && backend_ == Backend::CUDA) {
    step.kernel = findChainKernel(chain, step.value_bytes, obstacle);
  }
  if (!obstacle.empty()) {
    obstacles_.push_back(fmt::format("{}: {}", step.name, obstacle));
    return false;
  }
  // Forward, a chain's inputs are those of its first stage; inverse, other inputs of later stages
  // must be there as well.
  step.runs_at = chain.front();
  for (const DAGNode* node : chain) {
    step_of_[indexOf(*node)] = steps_.size();
  }
  steps_.push_back(std::move(step));
  return true;
}

/// All of a chain as one step, or else the longest part of it that can be one: what is next to the
/// coder first, since a coder that stands alone reads most.
void Plan::fuseLongest(const std::vector<DAGNode*>& chain) {
  for (std::size_t n = chain.size(); n >= 2; --n) {
    for (std::size_t skipped = 0; skipped + n <= chain.size(); ++skipped) {
      const auto end = chain.end() - static_cast<std::ptrdiff_t>(skipped);
      const auto begin = end - static_cast<std::ptrdiff_t>(n);
      if (tryFuse({begin, end})) {
        fuseLongest({chain.begin(), begin});
        fuseLongest({end, chain.end()});
        return;
      }
    }
  }
}

/// Fused steps as long as can be, from the field on.
void Plan::splitChain(const std::vector<DAGNode*>& chain) {
  std::vector<DAGNode*> open;
  const auto close = [&] {
    fuseLongest(open);
    open.clear();
  };
  bool has_order_or_rows = false;
  for (DAGNode* node : chain) {
    const TileOp& op = opOf(*node);
    const TileRole role = roleOf(op);
    if (role == TileRole::kNone) {
      obstacles_.push_back(fmt::format("{}: {}", node->name, std::get<NoOp>(op).reason));
      close();
      continue;
    }
    if (!open.empty() && !mayFollow(roleOf(opOf(*open.back())), role, has_order_or_rows)) {
      obstacles_.push_back(
          fmt::format("{}: cannot come after {} in a group", node->name, open.back()->name));
      // Maps next to an order are its own: they would cost a pass of their own elsewhere.
      std::vector<DAGNode*> maps;
      while (role == TileRole::kOrder && !open.empty() &&
             roleOf(opOf(*open.back())) == TileRole::kMap) {
        maps.insert(maps.begin(), open.back());
        open.pop_back();
      }
      close();
      open = std::move(maps);
      has_order_or_rows = false;
    }
    if (open.empty()) {
      has_order_or_rows = false;
    }
    open.push_back(node);
    has_order_or_rows = has_order_or_rows || role == TileRole::kOrder || role == TileRole::kRows;
  }
  close();
}

void Plan::build(Backend backend, Fusion fusion, std::function<bool(int)> is_kept) {
  is_built_ = false;
  backend_ = backend;
  fusion_ = fusion;
  is_kept_ = std::move(is_kept);
  steps_.clear();
  obstacles_.clear();
  constexpr auto kNone = static_cast<std::size_t>(-1);
  step_of_.assign(graph_.nodes().size(), kNone);
  ops_.assign(graph_.nodes().size(), NoOp{});
  if (fusion != Fusion::Off) {
    std::vector<bool> has_previous(graph_.nodes().size(), false);
    for (const DAGNode* node : graph_.order()) {
      ops_[indexOf(*node)] = currentOp(*node, backend);
      if (const DAGNode* next = nextInChain(*node)) {
        has_previous[indexOf(*next)] = true;
      }
    }
    for (DAGNode* node : graph_.order()) {
      if (has_previous[indexOf(*node)]) {
        continue;
      }
      std::vector<DAGNode*> chain;
      for (DAGNode* at = node; at != nullptr; at = nextInChain(*at)) {
        chain.push_back(at);
      }
      splitChain(chain);
    }
  }
  for (DAGNode* node : graph_.order()) {
    if (step_of_[indexOf(*node)] == kNone) {
      steps_.push_back({.chain = {node}, .runs_at = node, .name = node->name});
    }
  }
  orderSteps();
  is_built_ = true;
}

void Plan::orderSteps() {
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return a.runs_at->execution_order < b.runs_at->execution_order;
  });
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const DAGNode* node : steps_[i].chain) {
      step_of_[indexOf(*node)] = i;
    }
  }
}

void Plan::dissolve(const Step& step, const std::string& reason) {
  obstacles_.push_back(fmt::format("{}: {}", step.name, reason));
  const std::vector<DAGNode*> chain = step.chain;
  steps_.erase(steps_.begin() + (&step - steps_.data()));
  for (DAGNode* node : chain) {
    steps_.push_back({.chain = {node}, .runs_at = node, .name = node->name});
  }
  orderSteps();
}

std::vector<const Step*> Plan::fusedSteps() const {
  std::vector<const Step*> fused;
  for (const Step& step : steps_) {
    if (step.isFused()) {
      fused.push_back(&step);
    }
  }
  return fused;
}

bool Plan::isInside(int edge_id) const {
  const Edge& edge = graph_.edge(edge_id);
  if (!is_built_ || edge.isFromOutside() || edge.consumers.size() != 1 || edge.port != 0) {
    return false;
  }
  const DAGNode& producer = graph_.node(edge.producer);
  const DAGNode& consumer = graph_.node(edge.consumers.front());
  const Step& step = stepOf(producer);
  return step.isFused() && &step == &stepOf(consumer) &&
         consumer.input_buffer_ids.front() == edge_id;
}

/// The level in which a stage works: all stages of a step work in one.
int Plan::levelOf(int node_id) const {
  const DAGNode& node = graph_.node(node_id);
  return is_built_ ? stepOf(node).runs_at->level : node.level;
}

Lifetime Plan::lifetimeOf(int edge_id) const {
  const Edge& edge = graph_.edge(edge_id);
  const int last_level = static_cast<int>(graph_.levels().size()) - 1;
  Lifetime life{edge.isFromOutside() ? 0 : levelOf(edge.producer), last_level};
  if (!edge.consumers.empty()) {
    life.last = life.first;
    for (const int id : edge.consumers) {
      life.last = std::max(life.last, levelOf(id));
    }
  }
  return life;
}

std::vector<std::vector<int>> Plan::colorEdges(const std::function<bool(int)>& may_share) const {
  std::vector<int> ids;
  for (std::size_t id = 0; id < graph_.edges().size(); ++id) {
    if (may_share(static_cast<int>(id))) {
      ids.push_back(static_cast<int>(id));
    }
  }
  // Longest life first: the buffers that are hardest to place take regions of their own.
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) {
    const Lifetime la = lifetimeOf(a);
    const Lifetime lb = lifetimeOf(b);
    return la.last - la.first > lb.last - lb.first;
  });
  std::vector<std::vector<int>> colors;
  for (const int id : ids) {
    const Lifetime life = lifetimeOf(id);
    const auto fits = [&](const std::vector<int>& color) {
      return std::none_of(color.begin(), color.end(),
                          [&](int other) { return lifetimeOf(other).overlaps(life); });
    };
    auto color = std::find_if(colors.begin(), colors.end(), fits);
    if (color == colors.end()) {
      color = colors.insert(colors.end(), std::vector<int>{});
    }
    color->push_back(id);
  }
  return colors;
}

}  // namespace fz
