#pragma once

#include <cstdint>
#include <variant>

namespace fz {

// A stage's part in a fused group, in its direction and with its settings: one of the structs
// below. They are cheap to make and to compare; two equal answers mean that a planned group still
// stands. A group is, from the field on: maps, at most one order, rows and maps, at most one
// planes, at most one coder. docs/fusion.md explains each with an example.
//
// `variant` is whatever else selects the op's code on a device. `warp_*` say how much one warp
// works on there, 0 meaning any number; they are ignored on the CPU.

/// Takes no part; the reason is for people and is not compared.
struct NoOp {
  const char* reason = "has no tile operation";
  friend bool operator==(const NoOp&, const NoOp&) { return true; }
};

/// Value by value.
struct MapOp {
  std::uint64_t variant = 0;
  /// Needs the memory of the field, before the first tile or behind the last: no op may stand
  /// between them.
  bool is_first = false;
  friend bool operator==(const MapOp&, const MapOp&) = default;
};

/// Takes the field's values in an order of its own.
struct OrderOp {
  std::uint32_t unit_values = 1;  ///< values that belong together
  std::uint32_t warp_values = 0;  ///< a warp must have exactly these
  std::uint64_t variant = 0;
  friend bool operator==(const OrderOp&, const OrderOp&) = default;
};

/// How far rows look beyond their own unit.
enum class RowsReach : std::uint8_t {
  kUnit,   ///< not at all
  kBands,  ///< CPU: units may be long and begin anywhere, since their first values can be encoded
           ///< ahead; the coder must take bands
  kLines,  ///< GPU: along lines longer than what a warp has; the coder must take lines
  kRuns,   ///< GPU: as kLines, and takes runs of values from anywhere in the stream, so that it
           ///< must stand next to a coder that gives runs
};

/// Looks at neighbours inside its unit.
struct RowsOp {
  std::uint32_t unit_values = 1;  ///< a tile is a multiple of them
  std::uint32_t warp_values = 0;  ///< what a warp has must be a multiple of these
  RowsReach reach = RowsReach::kUnit;
  std::uint64_t variant = 0;
  bool is_first = false;  ///< as in MapOp
  friend bool operator==(const RowsOp&, const RowsOp&) = default;
};

/// Sorts the bits of a block; bytes from here on.
struct PlanesOp {
  std::uint32_t block_bytes = 1;  ///< that belong together
  std::uint32_t value_bytes = 0;  ///< of a value of the stage before; 0: any
  std::uint32_t warp_bytes = 0;
  friend bool operator==(const PlanesOp&, const PlanesOp&) = default;
};

/// Writes the stream, tile by tile.
struct CoderOp {
  std::uint32_t tile_bytes = 1;   ///< of its input
  std::uint32_t value_bytes = 0;  ///< of a value of the stage before; 0: any
  std::uint32_t warp_bytes = 0;
  bool takes_bands = false;  ///< CPU: its tiles need not be equally long
  bool takes_lines = false;  ///< GPU: may come behind RowsReach::kLines
  bool gives_runs = false;   ///< GPU: serves RowsReach::kRuns when it decodes
  std::uint64_t variant = 0;
  friend bool operator==(const CoderOp&, const CoderOp&) = default;
};

using TileOp = std::variant<NoOp, MapOp, OrderOp, RowsOp, PlanesOp, CoderOp>;

}  // namespace fz
