#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fz {

struct CpuRun;

/// Consecutive values: of the field for stages before an order, in the coder's order for others.
struct TileRange {
  std::uint64_t first = 0;
  std::size_t n_values = 0;
};

/// How a group cuts its values. Tiles are not part of any format.
struct TileCut {
  std::uint64_t n_values = 0;   ///< in the coder's order
  std::size_t tile_values = 1;  ///< a multiple of every unit of the group, or of the first op's
  std::size_t value_bytes = 1;  ///< of a value as planes and coder get it
  /// Unit of planes and coder. Where it does not divide tile_values, tiles are bands: what lies
  /// across the border of two is encoded with the first, and decoded with both.
  std::size_t coder_values = 1;

  std::size_t tileCount() const {
    return static_cast<std::size_t>((n_values + tile_values - 1) / tile_values);
  }
  TileRange at(std::size_t tile) const {
    const std::uint64_t first = std::uint64_t{tile} * tile_values;
    return {first,
            static_cast<std::size_t>(std::min<std::uint64_t>(tile_values, n_values - first))};
  }
  /// What planes and coder encode of a tile: the units that begin in it.
  TileRange encodedAt(std::size_t tile) const {
    const TileRange front = at(tile);
    return between(unitsBefore(front.first + coder_values - 1),
                   unitsBefore(front.first + front.n_values + coder_values - 1));
  }
  /// What they must decode for a tile: the units that have a part of it.
  TileRange decodedAt(std::size_t tile) const {
    const TileRange front = at(tile);
    return between(unitsBefore(front.first),
                   unitsBefore(front.first + front.n_values + coder_values - 1));
  }
  /// The most values that a tile has anywhere.
  std::size_t maxTileValues() const {
    return tile_values % coder_values == 0 ? tile_values : tile_values + 2 * coder_values;
  }

 private:
  std::uint64_t unitsBefore(std::uint64_t value) const {
    return value / coder_values * coder_values;
  }
  TileRange between(std::uint64_t first, std::uint64_t end) const {
    first = std::min(first, n_values);
    return {first, static_cast<std::size_t>(std::min(end, n_values) - first)};
  }
};

/// A stage's part in a fused group on the CPU, in the stage's direction. Which of the classes below
/// it is follows from the role that tileOp(Backend::CPU) names; see docs/fusion.md.
class CpuTilePart {
 public:
  virtual ~CpuTilePart() = default;

  /// Before the first tile: checks, whatever needs the whole input, and all memory. Inputs and
  /// outputs between two stages of the group have a size but no memory. Throws Error.
  virtual void beginTiles(const CpuRun& run, const TileCut& cut) = 0;
  /// After the last tile: findings and the sizes of the outputs. Throws Error.
  virtual void endTiles(const CpuRun& run) = 0;
};

/// What is looked for in a field besides NaN and infinities, as values of its type.
struct SoughtValues {
  std::span<const float> of_float;
  std::span<const double> of_double;
};

/// Maps, rows and planes. Tiles are worked on in any order and by several threads at a time; the
/// functions never throw, and allocate nothing. `in` and `out` do not overlap.
class CpuTileOp : public CpuTilePart {
 public:
  virtual void encodeTile(const TileRange& range, const void* in, void* out) = 0;
  /// As encodeTile(), for values of the field that somebody looks through as well. Returns whether
  /// what is sought may be among them: an op that sees every value can tell for next to nothing
  /// that it is not, which saves looking at all of them again.
  virtual bool encodeWatched(const TileRange& range,
                             const SoughtValues& /*sought*/,
                             const void* in,
                             void* out) {
    encodeTile(range, in, out);
    return true;
  }
  virtual void decodeTile(const TileRange& range, const void* in, void* out) = 0;
  /// Whether decodeTile() may be given the same memory twice: what leaves most values as they are
  /// need not copy them. Both sides must have values of one size.
  virtual bool decodesInPlace() const { return false; }
  /// The first values of a unit that is encoded as a whole elsewhere: as encodeTile, but leaves no
  /// findings. Only asked for where tileOp() says RowsReach::kBands.
  virtual void encodeAhead(const TileRange& /*range*/, const void* /*in*/, void* /*out*/) {}
};

/// The values before an order, for the time of one tile.
class TileFeed {
 public:
  virtual ~TileFeed() = default;
  virtual void fetch(std::uint64_t first, std::size_t n_values, void* out) = 0;
  virtual void put(std::uint64_t first, std::size_t n_values, const void* in) = 0;
  /// Values that will be asked for or put soon, where memory is not walked through in order.
  virtual void expect(std::uint64_t first, std::size_t n_values) = 0;
};

/// Takes values of the field in an order of its own; otherwise as CpuTileOp.
class CpuOrder : public CpuTilePart {
 public:
  /// The values `range` of the new order, from values that `feed` fetches.
  virtual void gatherTile(const TileRange& range, TileFeed& feed, void* out) = 0;
  virtual void scatterTile(const TileRange& range, const void* in, TileFeed& feed) = 0;
};

/// Writes the stream: a part of fixed size (headers, tables), then the payload of one tile after
/// the other. Otherwise as CpuTileOp.
class CpuCoder : public CpuTilePart {
 public:
  /// Where in output 0 the payload begins; known after beginTiles.
  virtual std::size_t payloadOffset() const = 0;
  /// What encodeTile may write at most, whatever it returns.
  virtual std::size_t maxTileBytes() const = 0;
  /// Writes the tile's payload to `out` and its entries of fixed size to their place. Returns the
  /// bytes of the payload.
  virtual std::size_t encodeTile(const TileRange& range, const void* in, std::uint8_t* out) = 0;
  /// Told where the tile's payload went, counted from payloadOffset().
  virtual void placeTile(const TileRange& /*range*/, std::uint64_t /*offset*/) {}
  /// Decodes a tile. Damage is recorded and thrown by endTiles; the values are then arbitrary.
  virtual void decodeTile(const TileRange& range, void* out) = 0;

  /// Before endTiles of an encode: bytes of the whole payload, of which none was written from the
  /// first on that did not fit.
  void setPayloadBytes(std::uint64_t n_bytes) { payload_bytes_ = n_bytes; }

 protected:
  std::uint64_t payloadBytes() const { return payload_bytes_; }

 private:
  std::uint64_t payload_bytes_ = 0;
};

}  // namespace fz
