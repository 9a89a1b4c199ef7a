#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "fused/interp/plan.h"
#include "fused/interp/plan_state.h"
#include "fused/interp/stream.h"
#include "fz/data_type.h"
#include "mem/scratch.h"

namespace fz {
class CpuExecutor;
class MemoryPool;
}  // namespace fz

/// The core of Interp on the CPU: lattices of integers, one level or one Lorenzo end at a time, and
/// whole plans. Nothing here knows the stage; a search for plans calls it on crops.
namespace fz::interp {

/// Integers of a lattice, x fastest. Around it there may be room for ghosts: one point before and
/// two behind along some axes.
struct Lattice {
  std::int32_t* data = nullptr;  ///< of the point (0, 0, 0)
  Extents n = {};
  std::size_t row = 0;    ///< values from one y to the next
  std::size_t plane = 0;  ///< from one z to the next

  std::int32_t* at(std::size_t y, std::size_t z) const { return data + z * plane + y * row; }
};

/// Memory of a lattice with ghosts along some axes.
std::size_t latticeValues(const Extents& n, Axes ghosts);
Lattice latticeIn(std::int32_t* memory, const Extents& n, Axes ghosts);

/// What a lattice is coded from: fixed point (kNoValue where there is none), or values of a field.
struct Source {
  const void* data = nullptr;
  DataType type = DataType::INT32;  ///< or FLOAT32, FLOAT64
  std::size_t row = 0;
  std::size_t plane = 0;
  bool has_gaps = false;         ///< some places have no value; false spares looking
  const Scale* scale = nullptr;  ///< of a field
};
/// A whole lattice as a source.
Source sourceOf(const Lattice& lattice, bool has_gaps);

/// Reconstructed points: a lattice, or a field.
struct Result {
  void* data = nullptr;             ///< null: not wanted
  DataType type = DataType::INT32;  ///< of a field: FLOAT32, FLOAT64
  std::size_t row = 0;
  std::size_t plane = 0;
  Scale scale;
};
Result resultOf(const Lattice& lattice);

/// Values that are stored exactly, one bit each; set from several threads.
struct OutlierBits {
  std::uint64_t* words = nullptr;  ///< null: nobody wants to know
  void mark(std::uint64_t index) const;
};

/// The field against which every value is tested, where the bound is not proved.
struct FieldCheck {
  const void* field = nullptr;  ///< null: no test
  DataType type = DataType::FLOAT32;
  Scale scale;
  double bound = 0.0;
};

/// Memory of a run, used like a stack and kept from run to run.
class ScratchStack {
 public:
  std::int32_t* values(MemoryPool* pool, std::size_t n);
  /// Room for a lattice with ghosts along some axes.
  Lattice lattice(MemoryPool* pool, const Extents& n, Axes ghosts);
  std::size_t top() const { return top_; }
  /// Gives back what was taken since top() was this.
  void popTo(std::size_t top) { top_ = top; }

 private:
  std::deque<Scratch> slots_;
  std::size_t top_ = 0;
};

/// What all calls need: threads, memory, the type of codes, and where outliers go.
struct Core {
  const CpuExecutor& executor;
  MemoryPool* pool = nullptr;
  ScratchStack& stack;
  Scratch& worker_memory;
  DataType code_type = DataType::INT16;  ///< or INT32
  OutlierBits outliers = {};
  const FieldCheck* check = nullptr;  ///< null: no test
};

/// Fills the ghosts of a base lattice along the axes of a level whose fine lattice has n points.
void fillGhosts(const Core& core, const Lattice& base, Axes axes, const Extents& n_fine);
/// The even points along some axes of a source, as fixed point; no axes: all points. A crop is a
/// source whose data begin further on.
void pickEven(
    const Core& core, const Source& source, const Extents& n, Axes axes, const Lattice& out);

/// One level on a lattice.
struct LevelStep {
  Level level;  ///< not nested
  Bin bin;
  Extents n = {};  ///< of the fine lattice
  Lattice base;   ///< what was reconstructed of its even points, with ghosts along the level's axes
  Places places;  ///< of the fine lattice; for outliers only
};
/// Codes in stream order, levelCodes(n, axes) of them. `fine` gets all points, the even ones
/// included; data of null: not wanted.
void encodeLevel(const Core& core,
                 const LevelStep& step,
                 const Source& source,
                 void* codes,
                 const Lattice& fine);
void decodeLevel(const Core& core, const LevelStep& step, const void* codes, const Result& fine);

/// A Lorenzo end: bins of all points, and their differences along some axes.
struct LorenzoStep {
  Axes axes = 0;
  Bin bin;
  Extents n = {};
  bool is_nested = false;  ///< a lattice of differences: places without a value are 0
  Places places;
};
/// Codes in stream order, makeCodeArray(n).codes() of them, and what they reconstruct.
void encodeLorenzo(const Core& core,
                   const LorenzoStep& step,
                   const Source& source,
                   void* codes,
                   const Lattice& out);
void decodeLorenzo(const Core& core, const LorenzoStep& step, const void* codes, const Result& out);

/// Codes of a whole plan in closed loop, stepsCodes() of them. `out`: as `fine` of encodeLevel.
void encodePlan(
    const Core& core, const PlanStep& plan, const Source& source, void* codes, const Lattice& out);
void decodePlan(const Core& core, const PlanStep& plan, const void* codes, const Result& out);

}  // namespace fz::interp
