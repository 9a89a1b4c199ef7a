#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fz/group_shape.h"

namespace fz {

/// What a stage does to the tiles of a fused group; decides where in a group it may stand. A group
/// is, from the field on: maps, at most one order, rows and maps, at most one planes, at most one
/// coder.
enum class TileRole : std::uint8_t {
  kNone,    ///< cannot take part
  kMap,     ///< value by value
  kOrder,   ///< takes the field's values in an order of its own
  kRows,    ///< looks at neighbours inside its unit
  kPlanes,  ///< sorts the bits of a chunk; bytes from here on
  kCoder,   ///< writes the stream, tile by tile
};

/// A stage's part in a fused group, in its direction and with its settings. Cheap to ask for and to
/// compare: two equal answers mean that a planned group still stands.
struct TileOp {
  TileRole role = TileRole::kNone;
  /// Maps and rows: values that belong together. A coder's tile must be a multiple of it.
  std::uint32_t unit_values = 1;
  /// Planes: bytes that belong together. Coder: bytes of a tile of its input.
  std::uint32_t tile_bytes = 0;
  /// Planes and coder: bytes that a value of the stage before must have; 0: any.
  std::uint32_t value_bytes = 0;
  /// On a GPU. Order: values that a warp must have together; rows: what a warp has must be a
  /// multiple of them; 0: any number. Planes and coder: the bytes that a warp has.
  std::uint32_t warp_values = 0;
  std::uint32_t warp_bytes = 0;
  /// On a GPU. Rows: go along lines that are longer than what a warp has. Coder: may come behind
  /// such an op.
  bool has_lines = false;
  /// On a GPU. Rows: takes runs of values that lie anywhere in the stream, so it must stand next to
  /// a coder that can hand them out. Coder: it can.
  bool has_runs = false;
  /// On the CPU. Rows: units may be long and need not begin where the coder's do, since the first
  /// values of a unit can be encoded ahead. Coder: its tiles need not be equally long.
  bool has_bands = false;
  /// On a GPU. Rows that take runs: the bytes of chunks that they take as well, whole and in an
  /// order of their own; 0: none, and `why` tells the reason. Coder: those it hands out in any
  /// order, also through planes.
  std::uint32_t chunk_bytes = 0;
  /// Whatever else selects the op's code.
  std::uint64_t variant = 0;
  /// kNone, and rows that take no chunks: why, for people; not compared.
  const char* why = "has no tile operation";

  friend bool operator==(const TileOp& a, const TileOp& b) {
    return a.role == b.role && a.unit_values == b.unit_values && a.tile_bytes == b.tile_bytes &&
           a.value_bytes == b.value_bytes && a.warp_values == b.warp_values &&
           a.warp_bytes == b.warp_bytes && a.has_lines == b.has_lines && a.has_runs == b.has_runs &&
           a.has_bands == b.has_bands && a.chunk_bytes == b.chunk_bytes && a.variant == b.variant;
  }
};

/// The parameter of a group's kernel: the arguments of the field and of every op, in this order,
/// each at a multiple of 16 bytes.
class GroupArgs {
 public:
  static constexpr std::size_t kAlignment = 16;
  static constexpr std::size_t kMaxBytes = 3072;

  template <class Args>
  void add(const Args& args) {
    static_assert(alignof(Args) <= kAlignment);
    const std::size_t size = (sizeof(Args) + kAlignment - 1) / kAlignment * kAlignment;
    fits_ = fits_ && n_bytes_ + size <= kMaxBytes;
    if (fits_) {
      std::memcpy(bytes_.data() + n_bytes_, &args, sizeof(Args));
      n_bytes_ += size;
    }
  }
  bool fits() const { return fits_; }
  std::size_t size() const { return n_bytes_; }
  std::byte* data() { return bytes_.data(); }

 private:
  alignas(kAlignment) std::array<std::byte, kMaxBytes> bytes_ = {};
  std::size_t n_bytes_ = 0;
  bool fits_ = true;
};

/// One launch of a group's kernel, as its stages see it.
struct GroupRun {
  GroupShape shape;
  std::uint64_t n_values = 0;  ///< of the coder's input, or the most there can be
  std::uint64_t n_tiles = 0;   ///< of shape.tile_values, at least 1
  unsigned n_blocks = 1;       ///< thread blocks of the launch
  /// A stage may need the group to run again with other settings (a smaller step). Waiting calls
  /// run pass after pass until one is good; others enqueue all passes, and a kernel of a pass that
  /// is not needed must do nothing.
  unsigned pass = 0;
  bool all_passes = false;
};

}  // namespace fz
