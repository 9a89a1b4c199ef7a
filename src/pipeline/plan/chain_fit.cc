// Whether the stages of a chain fit together, and the tiles they share on the CPU.
#include "pipeline/plan/chain_fit.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "fz/simple_stage.h"
#include "pipeline/plan/tile_role.h"
#include "shared/bits.h"

namespace fz {

namespace {

struct Link {
  const DAGNode* node;
  TileOp op;
  const std::string& name() const { return node->name; }
};
using Chain = std::vector<Link>;

/// Values of a tile when no coder says how many.
constexpr std::uint32_t kPlainTileValues = 4096;
constexpr std::uint32_t kPlainWarpValues = 1024;
/// Bytes of a tile on the CPU: what stages pass to each other should stay in the first cache, and
/// must stay in the second. Short tiles let the machine fetch the next one's memory while stages
/// compute, which long ones do in turns; an order needs long ones, for its rows.
constexpr std::size_t kCpuTileBytes = 4 * 1024;
constexpr std::size_t kCpuOrderTileBytes = 16 * 1024;
constexpr std::size_t kMaxCpuTileBytes = 256 * 1024;
/// Of a band, which may leave the second cache but should not leave the last.
constexpr std::size_t kMaxCpuBandBytes = 16 * 1024 * 1024;
/// What bands decode twice at their borders should be little.
constexpr std::size_t kMinUnitsPerBand = 8;

std::size_t sizeOf(std::uint8_t type) {
  const auto data_type = static_cast<DataType>(type);
  return isKnown(data_type) ? getDataTypeSize(data_type) : 1;
}

/// Bytes of a value on the coder's side of the stage, and on the field's.
std::size_t codedValueBytes(const SimpleStage& stage) {
  return sizeOf(stage.isInverse() ? stage.getInputDataType(0) : stage.getOutputDataType(0));
}
std::size_t fieldValueBytes(const SimpleStage& stage) {
  return sizeOf(stage.isInverse() ? stage.getOutputDataType(0) : stage.getInputDataType(0));
}

/// Bytes that belong together for an op.
std::size_t unitBytes(const TileOp& op, std::size_t value_bytes) {
  if (const auto* coder = std::get_if<CoderOp>(&op)) {
    return coder->tile_bytes;
  }
  if (const auto* planes = std::get_if<PlanesOp>(&op)) {
    return planes->block_bytes;
  }
  if (const auto* order = std::get_if<OrderOp>(&op)) {
    return order->unit_values * value_bytes;
  }
  const auto* rows = std::get_if<RowsOp>(&op);
  return (rows == nullptr ? 1 : rows->unit_values) * value_bytes;
}

/// Bytes that a value must have for planes and coders; 0: any.
std::size_t neededValueBytes(const TileOp& op) {
  if (const auto* coder = std::get_if<CoderOp>(&op)) {
    return coder->value_bytes;
  }
  const auto* planes = std::get_if<PlanesOp>(&op);
  return planes == nullptr ? 0 : planes->value_bytes;
}

/// What a warp has of the input of planes and coders.
std::size_t warpBytes(const TileOp& op) {
  if (const auto* coder = std::get_if<CoderOp>(&op)) {
    return coder->warp_bytes;
  }
  return std::get<PlanesOp>(op).warp_bytes;
}

/// Bands of the first op's units, where it and the coder can do with those. False: they cannot.
bool chooseCpuBand(const Chain& chain, Step& step) {
  const auto* rows = std::get_if<RowsOp>(&chain.front().op);
  const auto* coder = std::get_if<CoderOp>(&chain.back().op);
  const auto* planes = chain.size() == 3 ? std::get_if<PlanesOp>(&chain[1].op) : nullptr;
  if (rows == nullptr || rows->reach != RowsReach::kBands || coder == nullptr ||
      !coder->takes_bands || (chain.size() != 2 && planes == nullptr)) {
    return false;
  }
  const std::size_t row_bytes = rows->unit_values * step.value_bytes;
  const std::size_t planes_bytes = planes == nullptr ? 1 : planes->block_bytes;
  if (row_bytes == 0 || planes_bytes == 0 || coder->tile_bytes == 0) {
    return false;
  }
  const std::size_t coder_bytes =
      std::lcm(step.value_bytes, std::lcm<std::size_t>(planes_bytes, coder->tile_bytes));
  const std::size_t band_bytes =
      bits::roundUp(std::max(kCpuOrderTileBytes, kMinUnitsPerBand * coder_bytes), row_bytes);
  step.tile_values = band_bytes / step.value_bytes;
  step.coder_values = coder_bytes / step.value_bytes;
  return band_bytes <= kMaxCpuBandBytes;
}

/// On the CPU no op prescribes a tile: it is a multiple of all units. Returns why there is none.
std::string chooseCpuTile(const Chain& chain, Step& step) {
  std::size_t common = step.value_bytes;
  for (const Link& link : chain) {
    const std::size_t unit_bytes = unitBytes(link.op, step.value_bytes);
    common = unit_bytes == 0 ? 0 : std::lcm(common, unit_bytes);
    if (common == 0 || common > kMaxCpuTileBytes) {
      if (chooseCpuBand(chain, step)) {
        return {};
      }
      return fmt::format(
          "{} works on {} bytes at a time, which with the stages before it is more than the {} of the largest tile",
          link.name(), unit_bytes, kMaxCpuTileBytes);
    }
  }
  const bool has_order = std::any_of(chain.begin(), chain.end(), [](const Link& link) {
    return std::holds_alternative<OrderOp>(link.op);
  });
  const std::size_t wanted = has_order ? kCpuOrderTileBytes : kCpuTileBytes;
  step.tile_values = std::max<std::size_t>(1, wanted / common) * common / step.value_bytes;
  return {};
}

/// Why an op does not get the memory of the field; empty when all do that need it.
std::string obstacleOfMemory(const Chain& chain) {
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const auto* map = std::get_if<MapOp>(&chain[i].op);
    const auto* rows = std::get_if<RowsOp>(&chain[i].op);
    if ((map != nullptr && map->is_first) || (rows != nullptr && rows->is_first)) {
      return fmt::format("{} needs all of its values in memory, not only tiles from {}",
                         chain[i].name(), chain[i - 1].name());
    }
  }
  return {};
}

/// Why an op that goes along lines and the others do not go together; empty when they do.
std::string obstacleOfLines(const Chain& chain) {
  const Link* with_lines = nullptr;
  const Link* without = nullptr;
  for (const Link& link : chain) {
    if (const auto* rows = std::get_if<RowsOp>(&link.op)) {
      if (rows->reach >= RowsReach::kLines) {
        with_lines = &link;
      } else if (!rows->is_first) {  // one next to the field gives whoever comes what it has
        without = &link;
      }
    } else if (const auto* coder = std::get_if<CoderOp>(&link.op)) {
      without = coder->takes_lines ? without : &link;
    } else if (std::holds_alternative<OrderOp>(link.op)) {
      without = &link;
    }
  }
  if (with_lines == nullptr || without == nullptr) {
    return {};
  }
  return fmt::format("{} works along whole lines, but warps of {} work alone", with_lines->name(),
                     without->name());
}

/// Why an op that takes runs of values from all over the stream does not get them; empty when it
/// does, or when there is none.
std::string obstacleOfRuns(const Chain& chain) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const auto* rows = std::get_if<RowsOp>(&chain[i].op);
    if (rows == nullptr || rows->reach != RowsReach::kRuns) {
      continue;
    }
    const Link& next = i + 1 < chain.size() ? chain[i + 1] : chain[i];
    const auto* coder = std::get_if<CoderOp>(&next.op);
    if (coder == nullptr || !coder->gives_runs) {
      return fmt::format("{} takes values from all over the stream, which {} does not provide",
                         chain[i].name(), next.name());
    }
  }
  return {};
}

/// Why the warps of a kernel do not have what an op needs together; empty when they do.
std::string obstacleOfWarps(const Chain& chain, std::size_t value_bytes) {
  std::size_t n_values = kPlainWarpValues;
  for (const Link& link : chain) {
    if (!takesValues(link.op)) {
      n_values = warpBytes(link.op) / value_bytes;
      break;
    }
  }
  for (const Link& link : chain) {
    const auto* order = std::get_if<OrderOp>(&link.op);
    const auto* rows = std::get_if<RowsOp>(&link.op);
    const std::size_t needed = order != nullptr  ? order->warp_values
                               : rows != nullptr ? rows->warp_values
                                                 : 0;
    if (needed != 0 && (order != nullptr ? n_values != needed : n_values % needed != 0)) {
      return fmt::format("{} needs {} values in one warp, but in this chain a warp has {}",
                         link.name(), needed, n_values);
    }
  }
  return {};
}

}  // namespace

std::string fusionObstacle(const std::vector<DAGNode*>& nodes,
                           const std::vector<TileOp>& ops,
                           Backend backend,
                           Step& step) {
  Chain chain;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    chain.push_back({nodes[i], ops[i]});
  }
  std::size_t value_bytes = 0;  // of the values that planes or coder get
  for (const Link& link : chain) {
    if (takesValues(link.op)) {
      // A frame may name stages of other types than those that wrote it.
      const std::size_t taken = fieldValueBytes(*simpleStage(*link.node));
      if (value_bytes != 0 && value_bytes != taken) {
        return fmt::format("{} works on values of {} bytes, got {}", link.name(), taken,
                           value_bytes);
      }
      value_bytes = codedValueBytes(*simpleStage(*link.node));
    } else if (const std::size_t needed = neededValueBytes(link.op); needed != 0) {
      if (value_bytes != 0 && value_bytes != needed) {
        return fmt::format("{} works on values of {} bytes, got {}", link.name(), needed,
                           value_bytes);
      }
      value_bytes = needed;
    }
  }
  value_bytes = std::max<std::size_t>(value_bytes, 1);
  step.value_bytes = value_bytes;
  if (std::string reason = obstacleOfMemory(chain); !reason.empty()) {
    return reason;
  }
  if (backend == Backend::CPU) {
    return chooseCpuTile(chain, step);
  }
  if (std::string reason = obstacleOfLines(chain); !reason.empty()) {
    return reason;
  }
  if (std::string reason = obstacleOfRuns(chain); !reason.empty()) {
    return reason;
  }
  if (std::string reason = obstacleOfWarps(chain, value_bytes); !reason.empty()) {
    return reason;
  }
  const auto* coder = std::get_if<CoderOp>(&chain.back().op);
  const std::size_t tile_bytes =
      coder != nullptr ? coder->tile_bytes : kPlainTileValues * value_bytes;
  for (const Link& link : chain) {
    const std::size_t unit_bytes = unitBytes(link.op, value_bytes);
    if (!std::holds_alternative<CoderOp>(link.op) &&
        (unit_bytes == 0 || tile_bytes % unit_bytes != 0)) {
      return fmt::format("{} works on {} bytes at a time, but a tile of {} has {}", link.name(),
                         unit_bytes, chain.back().name(), tile_bytes);
    }
  }
  return {};
}

}  // namespace fz
