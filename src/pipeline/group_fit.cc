// Whether the stages of a chain fit together, and the tiles they share on the CPU.
#include "pipeline/group_fit.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "fz/simple_stage.h"
#include "pipeline/tile_role.h"
#include "shared/bits.h"

namespace fz {

namespace {

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
bool chooseCpuBand(const std::vector<DAGNode*>& chain, FusedGroup& group) {
  const auto* rows = std::get_if<RowsOp>(&chain.front()->tile_op);
  const auto* coder = std::get_if<CoderOp>(&chain.back()->tile_op);
  const auto* planes = chain.size() == 3 ? std::get_if<PlanesOp>(&chain[1]->tile_op) : nullptr;
  if (rows == nullptr || rows->reach != RowsReach::kBands || coder == nullptr ||
      !coder->takes_bands || (chain.size() != 2 && planes == nullptr)) {
    return false;
  }
  const std::size_t row_bytes = rows->unit_values * group.value_bytes;
  const std::size_t planes_bytes = planes == nullptr ? 1 : planes->block_bytes;
  if (row_bytes == 0 || planes_bytes == 0 || coder->tile_bytes == 0) {
    return false;
  }
  const std::size_t coder_bytes =
      std::lcm(group.value_bytes, std::lcm<std::size_t>(planes_bytes, coder->tile_bytes));
  const std::size_t band_bytes =
      bits::roundUp(std::max(kCpuOrderTileBytes, kMinUnitsPerBand * coder_bytes), row_bytes);
  group.tile_values = band_bytes / group.value_bytes;
  group.coder_values = coder_bytes / group.value_bytes;
  return band_bytes <= kMaxCpuBandBytes;
}

/// On the CPU no op prescribes a tile: it is a multiple of all units. Returns why there is none.
std::string chooseCpuTile(const std::vector<DAGNode*>& chain, FusedGroup& group) {
  std::size_t common = group.value_bytes;
  for (const DAGNode* node : chain) {
    const std::size_t unit_bytes = unitBytes(node->tile_op, group.value_bytes);
    common = unit_bytes == 0 ? 0 : std::lcm(common, unit_bytes);
    if (common == 0 || common > kMaxCpuTileBytes) {
      if (chooseCpuBand(chain, group)) {
        return {};
      }
      return fmt::format(
          "{} works on {} bytes at a time, together with the stages before it that "
          "is more than the {} of the largest tile",
          node->name, unit_bytes, kMaxCpuTileBytes);
    }
  }
  const bool has_order = std::any_of(chain.begin(), chain.end(), [](const DAGNode* node) {
    return std::holds_alternative<OrderOp>(node->tile_op);
  });
  const std::size_t wanted = has_order ? kCpuOrderTileBytes : kCpuTileBytes;
  group.tile_values = std::max<std::size_t>(1, wanted / common) * common / group.value_bytes;
  return {};
}

/// Why an op that goes along lines and the others do not go together; empty when they do.
std::string misfitOfLines(const std::vector<DAGNode*>& chain) {
  const DAGNode* with_lines = nullptr;
  const DAGNode* without = nullptr;
  for (const DAGNode* node : chain) {
    if (const auto* rows = std::get_if<RowsOp>(&node->tile_op)) {
      (rows->reach >= RowsReach::kLines ? with_lines : without) = node;
    } else if (const auto* coder = std::get_if<CoderOp>(&node->tile_op)) {
      without = coder->takes_lines ? without : node;
    } else if (std::holds_alternative<OrderOp>(node->tile_op)) {
      without = node;
    }
  }
  if (with_lines == nullptr || without == nullptr) {
    return {};
  }
  return fmt::format("{} goes along whole lines, warps of {} work alone", with_lines->name,
                     without->name);
}

/// Why an op that takes runs of values from all over the stream does not get them; empty when it
/// does, or when there is none.
std::string misfitOfRuns(const std::vector<DAGNode*>& chain) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const auto* rows = std::get_if<RowsOp>(&chain[i]->tile_op);
    if (rows == nullptr || rows->reach != RowsReach::kRuns) {
      continue;
    }
    const DAGNode* next = i + 1 < chain.size() ? chain[i + 1] : chain[i];
    const auto* coder = std::get_if<CoderOp>(&next->tile_op);
    if (coder == nullptr || !coder->gives_runs) {
      return fmt::format("{} takes values from all over the stream, {} does not give them",
                         chain[i]->name, next->name);
    }
  }
  return {};
}

/// Why the warps of a kernel do not have what an op needs together; empty when they do.
std::string misfitOfWarps(const std::vector<DAGNode*>& chain, std::size_t value_bytes) {
  std::size_t n_values = kPlainWarpValues;
  for (const DAGNode* node : chain) {
    if (!takesValues(node->tile_op)) {
      n_values = warpBytes(node->tile_op) / value_bytes;
      break;
    }
  }
  for (const DAGNode* node : chain) {
    const auto* order = std::get_if<OrderOp>(&node->tile_op);
    const auto* rows = std::get_if<RowsOp>(&node->tile_op);
    const std::size_t needed = order != nullptr  ? order->warp_values
                               : rows != nullptr ? rows->warp_values
                                                 : 0;
    if (needed != 0 && (order != nullptr ? n_values != needed : n_values % needed != 0)) {
      return fmt::format("{} needs {} values in one warp, in this chain a warp has {}", node->name,
                         needed, n_values);
    }
  }
  return {};
}

}  // namespace

const SimpleStage* tileStage(const DAGNode& node) {
  return dynamic_cast<const SimpleStage*>(node.stage);
}

std::string misfit(const std::vector<DAGNode*>& chain, Backend backend, FusedGroup& group) {
  std::size_t value_bytes = 0;  // of the values that planes or coder get
  for (const DAGNode* node : chain) {
    if (takesValues(node->tile_op)) {
      // A frame may name stages of other types than those that wrote it.
      const std::size_t taken = fieldValueBytes(*tileStage(*node));
      if (value_bytes != 0 && value_bytes != taken) {
        return fmt::format("{} works on values of {} bytes, {} come", node->name, taken,
                           value_bytes);
      }
      value_bytes = codedValueBytes(*tileStage(*node));
    } else if (const std::size_t needed = neededValueBytes(node->tile_op); needed != 0) {
      if (value_bytes != 0 && value_bytes != needed) {
        return fmt::format("{} works on values of {} bytes, {} come", node->name, needed,
                           value_bytes);
      }
      value_bytes = needed;
    }
  }
  value_bytes = std::max<std::size_t>(value_bytes, 1);
  group.value_bytes = value_bytes;
  if (backend == Backend::CPU) {
    return chooseCpuTile(chain, group);
  }
  if (std::string why = misfitOfLines(chain); !why.empty()) {
    return why;
  }
  if (std::string why = misfitOfRuns(chain); !why.empty()) {
    return why;
  }
  if (std::string why = misfitOfWarps(chain, value_bytes); !why.empty()) {
    return why;
  }
  const auto* coder = std::get_if<CoderOp>(&chain.back()->tile_op);
  const std::size_t tile_bytes =
      coder != nullptr ? coder->tile_bytes : kPlainTileValues * value_bytes;
  for (const DAGNode* node : chain) {
    const std::size_t unit_bytes = unitBytes(node->tile_op, value_bytes);
    if (!std::holds_alternative<CoderOp>(node->tile_op) &&
        (unit_bytes == 0 || tile_bytes % unit_bytes != 0)) {
      return fmt::format("{} works on {} bytes at a time, a tile of {} has {}", node->name,
                         unit_bytes, chain.back()->name, tile_bytes);
    }
  }
  return {};
}

}  // namespace fz
