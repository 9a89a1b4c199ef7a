#pragma once

#include <cstddef>
#include <cstdint>

#include "fused/interp/cuda/kernels.h"
#include "fused/interp/plan_state.h"
#include "fused/interp/stream.h"

/// Whole plans on a device: which kernels come one after the other, and in what memory.
namespace fz::interp::device {

/// Working memory that is used like a stack. Without a base it only measures.
class Arena {
 public:
  explicit Arena(std::uint8_t* base) : base_(base) {}

  bool isMeasuring() const { return base_ == nullptr; }
  std::uint8_t* take(std::size_t n_bytes);
  std::size_t top() const { return top_; }
  void popTo(std::size_t top) { top_ = top; }
  /// Bytes that were in use at once.
  std::size_t most() const { return most_; }

 private:
  std::uint8_t* base_;
  std::size_t top_ = 0;
  std::size_t most_ = 0;
};

/// Enqueues all of a plan; twice, once to measure the memory.
class Walk {
 public:
  Walk(const cuda::Call& call,
       Arena& arena,
       const Setup* setup,
       DataType code_type,
       const Marks& marks)
      : call_(call), arena_(arena), setup_(setup), code_type_(code_type), marks_(marks) {}

  /// `out`: the reconstructed lattice, if it exists.
  void encode(const PlanStep& plan, const Grid& source, std::uint8_t* codes, const Grid& out) {
    encodeSteps(plan, source, codes, out, true);
  }
  void decode(const PlanStep& plan, const std::uint8_t* codes, const Grid& out);

 private:
  void encodeSteps(const PlanStep& plan,
                   const Grid& source,
                   std::uint8_t* codes,
                   const Grid& out,
                   bool may_test);
  void encodeEnd(const PlanStep& plan,
                 const Grid& source,
                 std::uint8_t* codes,
                 const Grid& out,
                 bool may_test);
  void decodeEnd(const PlanStep& plan, const std::uint8_t* codes, const Grid& out);
  void encodeNested(const PlanStep& plan,
                    const Grid& source,
                    const Grid& base,
                    std::uint8_t* codes,
                    const Grid& out,
                    bool may_test);

  /// Room for a lattice with ghosts along some axes.
  Grid lattice(const Extents& n, Axes ghosts);
  void fillGhosts(const PlanStep& plan, const Grid& base);
  LevelJob levelJob(const PlanStep& plan, const Grid& base, std::uint8_t* codes) const;
  NestedJob nestedJob(const PlanStep& plan, const Grid& base) const;
  EndJob endJob(const PlanStep& plan, std::uint8_t* codes) const;
  Marks marksAt(const Places& places, bool may_test) const;
  std::uint8_t* codesAfter(const PlanStep& below, std::uint8_t* codes) const;

  const cuda::Call& call_;
  Arena& arena_;
  const Setup* setup_;
  DataType code_type_;
  Marks marks_;
};

/// A whole field as a grid.
Grid fieldGrid(const void* data, DataType type, const Extents& n);

}  // namespace fz::interp::device
