#include <algorithm>
#include <limits>

#include "core/require.h"
#include "fz/byte_io.h"
#include "predictors/tiled_lorenzo/codec.h"
#include "predictors/tiled_lorenzo/tiled_lorenzo_stage.h"

namespace fz {

namespace {

using Extents = std::array<std::size_t, 3>;
using tiled_lorenzo::kMaxTileEdge;
using tiled_lorenzo::kMaxTileValues;

constexpr std::string_view kName = "TiledLorenzo";
constexpr std::size_t kConfigBytes = 20;
constexpr std::size_t kMaxExtent = std::numeric_limits<std::uint32_t>::max();  // u32 in the config

/// a * b, or the largest number where that does not fit.
std::size_t product(std::size_t a, std::size_t b) {
  std::size_t p = 0;
  return __builtin_mul_overflow(a, b, &p) ? std::numeric_limits<std::size_t>::max() : p;
}

/// Values of the stream: whole tiles.
std::size_t paddedValues(const Extents& dims, const Extents& tile) {
  std::size_t n = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    n = product(n, product(bits::ceilDiv(dims[axis], tile[axis]), tile[axis]));
  }
  return n;
}

}  // namespace

template <class T>
void TiledLorenzoStage<T>::setTileShape(std::size_t x, std::size_t y, std::size_t z) {
  for (const std::size_t extent : {x, y, z}) {
    FZ_REQUIRE_ARG(extent >= 1 && extent <= kMaxTileEdge,
                   "{}: tile extents must be 1 to {}, not {} x {} x {}", kName, kMaxTileEdge, x, y,
                   z);
  }
  FZ_REQUIRE_ARG(x * y * z <= kMaxTileValues, "{}: a tile holds up to {} values, not {} x {} x {}",
                 kName, kMaxTileValues, x, y, z);
  tile_ = {x, y, z};
}

template <class T>
void TiledLorenzoStage<T>::setTileAxis(std::size_t axis, std::int64_t extent) {
  FZ_REQUIRE_ARG(extent >= 0 && extent <= std::int64_t{kMaxTileEdge},
                 "{}: a tile extent must be 0 (default) to {}, not {}", kName, kMaxTileEdge,
                 extent);
  Extents tile = tile_;
  tile[axis] = static_cast<std::size_t>(extent);
  const std::size_t n_values = std::max<std::size_t>(tile[0], 1) *
                               std::max<std::size_t>(tile[1], 1) *
                               std::max<std::size_t>(tile[2], 1);
  FZ_REQUIRE_ARG(n_values <= kMaxTileValues, "{}: a tile holds up to {} values, not {}", kName,
                 kMaxTileValues, n_values);
  tile_ = tile;
}

template <class T>
Extents TiledLorenzoStage<T>::getTileShape() const {
  constexpr Extents kDefaults[] = {{64, 1, 1}, {8, 8, 1}, {4, 4, 4}};
  Extents tile = kDefaults[dims_.ndim() - 1];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    tile[axis] = tile_[axis] != 0 ? tile_[axis] : tile[axis];
  }
  return tile;
}

template <class T>
std::size_t TiledLorenzoStage<T>::getTileElems() const {
  const Extents tile = getTileShape();
  return tile[0] * tile[1] * tile[2];
}

template <class T>
SimpleStage::PortBytes TiledLorenzoStage<T>::encodedBytes(std::size_t input_bytes) const {
  const std::size_t n = input_bytes / sizeof(T);
  Extents dims = dims_.get();
  const std::size_t n_rows = product(dims[1], dims[2]);
  if (dims[0] == 0) {
    dims[0] = n / n_rows;
  }
  if (product(dims[0], n_rows) != n) {
    return {input_bytes};  // a guess made before the real input is known; encoding will refuse it
  }
  return {product(paddedValues(dims, getTileShape()), sizeof(T))};
}

template <class T>
Extents TiledLorenzoStage<T>::encodeDimsFor(std::size_t n_bytes) const {
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", kName, n_bytes, sizeof(T));
  const Extents dims = dims_.resolve(n_bytes / sizeof(T), kName);
  FZ_REQUIRE(std::max({dims[0], dims[1], dims[2]}) <= kMaxExtent, ErrorCode::kBadSize,
             "{}: extents must be at most {}, but the dims are {} x {} x {}", kName, kMaxExtent,
             dims[0], dims[1], dims[2]);
  return dims;
}

template <class T>
Extents TiledLorenzoStage<T>::checkedTileShape() const {
  const Extents tile = getTileShape();
  FZ_REQUIRE(getTileElems() <= kMaxTileValues, ErrorCode::kInvalidArgument,
             "{}: a tile holds up to {} values, not {} x {} x {}", kName, kMaxTileValues, tile[0],
             tile[1], tile[2]);
  return tile;
}

template <class T>
std::size_t TiledLorenzoStage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  FZ_REQUIRE(has_run_, ErrorCode::kInvalidState, "{}: cannot decode without a config", kName);
  const std::size_t n_needed = product(paddedValues(coded_dims_, coded_tile_), sizeof(T));
  FZ_REQUIRE(encoded_bytes[0] == n_needed, ErrorCode::kCorrupt,
             "{}: dims {} x {} x {} in tiles of {} x {} x {} need {} bytes, got {}", kName,
             coded_dims_[0], coded_dims_[1], coded_dims_[2], coded_tile_[0], coded_tile_[1],
             coded_tile_[2], n_needed, encoded_bytes[0]);
  return coded_dims_[0] * coded_dims_[1] * coded_dims_[2] * sizeof(T);
}

template <class T>
void TiledLorenzoStage<T>::writeConfig(ByteWriter& out) const {
  const Extents& dims = has_run_ ? coded_dims_ : dims_.get();
  const Extents tile = has_run_ ? coded_tile_ : getTileShape();
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>));
  out.u8(dims[2] > 1 ? 3 : (dims[1] > 1 ? 2 : 1));
  for (const std::size_t extent : tile) {
    out.u8(static_cast<std::uint8_t>(extent));
  }
  out.zeros(3);
  for (const std::size_t extent : dims) {
    out.u32(static_cast<std::uint32_t>(extent));
  }
}

template <class T>
void TiledLorenzoStage<T>::readConfig(ByteReader& in) {
  FZ_REQUIRE(in.remaining() >= kConfigBytes, ErrorCode::kCorrupt,
             "{}: expected a config of {} bytes, got {}", kName, kConfigBytes, in.remaining());
  const std::uint8_t type = in.u8();
  const std::uint8_t ndim = in.u8();
  FZ_REQUIRE(type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "{}: config with type {}", kName, type);
  Extents tile = {};
  for (std::size_t& extent : tile) {
    extent = in.u8();
  }
  in.skip(3);
  Extents dims = {};
  for (std::size_t& extent : dims) {
    extent = in.u32();
  }
  const std::size_t tile_values = tile[0] * tile[1] * tile[2];
  FZ_REQUIRE(tile_values >= 1 && tile_values <= kMaxTileValues, ErrorCode::kCorrupt,
             "{}: config with tiles of {} x {} x {}", kName, tile[0], tile[1], tile[2]);
  dims_.setOwn(dims);
  FZ_REQUIRE(ndim == dims_.ndim(), ErrorCode::kCorrupt,
             "{}: config with {} dimensions and dims {} x {} x {}", kName, ndim, dims[0], dims[1],
             dims[2]);
  tile_ = tile;
  coded_dims_ = dims_.get();
  coded_tile_ = tile;
  has_run_ = true;
}

template <class T>
const ParamTable& TiledLorenzoStage<T>::paramTable() const {
  using S = TiledLorenzoStage;
  static const ParamTable kTable = [] {
    constexpr std::string_view kKeys[] = {"tile_x", "tile_y", "tile_z"};
    constexpr std::string_view kHelp[] = {
        "tile extent in x; 0: 64 in one dimension, 8 in two, 4 in three",
        "tile extent in y; 0: 8 in two dimensions, 4 in three",
        "tile extent in z; 0: 4 in three dimensions"};
    std::vector<Param> rows;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      rows.push_back(intParam<S>(
          kKeys[axis], 0, {0, kMaxTileEdge}, kHelp[axis],
          [axis](const S& s) { return s.tile_[axis]; },
          [axis](S& s, std::int64_t v) { s.setTileAxis(axis, v); }));
    }
    return ParamTable(std::move(rows));
  }();
  return kTable;
}

template class TiledLorenzoStage<std::int16_t>;
template class TiledLorenzoStage<std::int32_t>;

}  // namespace fz
