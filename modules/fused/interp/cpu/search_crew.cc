#include "fused/interp/cpu/search_crew.h"

#include <atomic>
#include <mutex>

namespace fz::interp {

namespace {

// For less than this, another thread need not begin.
constexpr std::size_t kThreadCoded = std::size_t{1} << 12;
constexpr std::uint64_t kPieceCodes = std::uint64_t{1} << 15;  // whole blocks

}  // namespace

void Worker::join(SearchTeam& team, std::size_t place) {
  team_ = &team;
  place_ = place;
  depth_ = 0;
  stack.popTo(0);  // of a search that ended early
}

std::size_t Worker::teamSize() const {
  return team_ == nullptr ? 1 : team_->crew_.size();
}

Core Worker::core(std::size_t n_coded) {
  threads_.setFor(n_coded);
  return {threads_, nullptr, stack, tile_memory_, type_, {}, nullptr};
}

Cost Worker::costOfCodes(std::uint64_t n_codes) {
  if (n_codes <= kPieceCodes || teamSize() == 1) {
    return codes.cost(0, n_codes);
  }
  std::atomic<Cost> cost = 0;
  forPieces(bits::ceilDiv(n_codes, kPieceCodes), [&](std::size_t piece, Worker& /*worker*/) {
    const std::uint64_t first = piece * kPieceCodes;
    cost.fetch_add(codes.cost(first, std::min(kPieceCodes, n_codes - first)),
                   std::memory_order_relaxed);
  });
  return cost.load(std::memory_order_relaxed);
}

void Worker::addCodesTo(ClassCost& total, std::uint64_t n_codes) {
  if (n_codes <= kPieceCodes || teamSize() == 1) {
    codes.addTo(total, 0, n_codes);
    return;
  }
  std::mutex mutex;
  forPieces(bits::ceilDiv(n_codes, kPieceCodes), [&](std::size_t piece, Worker& /*worker*/) {
    const std::uint64_t first = piece * kPieceCodes;
    ClassCost part;
    codes.addTo(part, first, std::min(kPieceCodes, n_codes - first));
    const std::lock_guard lock(mutex);
    total.add(part);
  });
}

void Worker::Threads::setFor(std::size_t n_coded) {
  n_threads_ = std::clamp<std::size_t>(n_coded / kThreadCoded, 1, worker_.teamSize());
}

void Worker::Threads::run(std::size_t n_items, Body body) const {
  const std::size_t n_pieces = std::min(n_items, n_threads_);
  if (n_pieces <= 1) {
    body.call(body.object, 0, n_items);
    return;
  }
  worker_.forPieces(n_pieces, [&](std::size_t piece, Worker& /*worker*/) {
    body.call(body.object, piece * n_items / n_pieces, (piece + 1) * n_items / n_pieces);
  });
}

}  // namespace fz::interp
