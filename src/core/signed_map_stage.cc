#include "fz/signed_map_stage.h"

#include "backends/cpu/parallel_for.h"
#include "backends/cuda/group/no_args.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/bits.h"

namespace fz {

namespace {

constexpr std::size_t kTileBytes = 64u << 10;  // work per task only; not part of the format

void mapTiles(const CpuRun& run, std::size_t value_bytes, SignedMap::Loop map) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  parallelFor(run.executor, bits::ceilDiv(in.size(), kTileBytes), [&](std::size_t tile) {
    const std::size_t begin = tile * kTileBytes;
    const std::size_t n_bytes = std::min(kTileBytes, in.size() - begin);
    map(in.data() + begin, n_bytes / value_bytes, value_bytes, out.data() + begin);
  });
}

}  // namespace

std::size_t SignedMapStage::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(signed_type_);
  FZ_REQUIRE(encoded_bytes[0] % value_bytes == 0, ErrorCode::kCorrupt,
             "{}: {} bytes are no whole number of {}-byte values", getName(), encoded_bytes[0],
             value_bytes);
  return encoded_bytes[0];
}

void SignedMapStage::requireWholeValues(std::size_t n_bytes) const {
  const std::size_t value_bytes = getDataTypeSize(signed_type_);
  FZ_REQUIRE(isInverse() || n_bytes % value_bytes == 0, ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of {}-byte values", getName(), n_bytes,
             value_bytes);
  FZ_REQUIRE(n_bytes % value_bytes == 0, ErrorCode::kCorrupt,
             "{}: {} bytes are no whole number of {}-byte values", getName(), n_bytes, value_bytes);
}

void SignedMapStage::encodeCpu(const CpuRun& run) {
  requireWholeValues(run.inputs[0].size());
  mapTiles(run, getDataTypeSize(signed_type_), map_.encode);
  setActualBytes(0, run.inputs[0].size());
}

void SignedMapStage::decodeCpu(const CpuRun& run) {
  requireWholeValues(run.inputs[0].size());
  mapTiles(run, getDataTypeSize(signed_type_), map_.decode);
  setActualBytes(0, run.inputs[0].size());
}

TileOp SignedMapStage::cpuTileOp() const {
  return MapOp{};
}

void SignedMapStage::beginTiles(const CpuRun& run, const TileCut& /*cut*/) {
  requireWholeValues(run.inputs[0].size());
}
void SignedMapStage::encodeTile(const TileRange& range, const void* in, void* out) {
  map_.encode(in, range.n_values, getDataTypeSize(signed_type_), out);
}
void SignedMapStage::decodeTile(const TileRange& range, const void* in, void* out) {
  map_.decode(in, range.n_values, getDataTypeSize(signed_type_), out);
}
void SignedMapStage::endTiles(const CpuRun& run) {
  setActualBytes(0, run.inputs[0].size());
}

TileOp SignedMapStage::cudaTileOp() const {
  if (map_.op_template == nullptr) {
    return NoOp{};
  }
  return MapOp{getDataTypeSize(signed_type_)};
}

std::string SignedMapStage::tileOpType() const {
  return fmt::format("{}<std::{}_t>", map_.op_template, dataTypeToString(signed_type_));
}

void SignedMapStage::beginGroupCuda(const CudaRun& run,
                                    const GroupRun& /*group*/,
                                    GroupArgs& args) {
  const std::size_t value_bytes = getDataTypeSize(signed_type_);
  FZ_REQUIRE(run.inputs[0].size.n_bytes % value_bytes == 0,
             isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of {}-byte values", getName(),
             run.inputs[0].size.n_bytes, value_bytes);
  args.add(group::NoArgs{});
}

void SignedMapStage::encodeCuda(const CudaRun& run) {
  if (map_.encode_cuda == nullptr) {
    SimpleStage::encodeCuda(run);
    return;
  }
  const std::size_t value_bytes = getDataTypeSize(signed_type_);
  const DeviceSize& size = run.inputs[0].size;
  FZ_REQUIRE(!size.isExact() || size.n_bytes % value_bytes == 0, ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of {}-byte values", getName(), size.n_bytes,
             value_bytes);
  map_.encode_cuda(run, value_bytes);
}

void SignedMapStage::decodeCuda(const CudaRun& run) {
  if (map_.decode_cuda == nullptr) {
    SimpleStage::decodeCuda(run);
    return;
  }
  map_.decode_cuda(run, getDataTypeSize(signed_type_));
}

void SignedMapStage::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(signed_type_)).u8(static_cast<std::uint8_t>(unsigned_type_));
}

void SignedMapStage::readConfig(ByteReader& in) {
  if (in.remaining() == 0) {
    return;  // files without a config mean int32, which is how the stage was made
  }
  const std::uint8_t signed_type = in.u8();
  const std::uint8_t unsigned_type = in.u8();
  FZ_REQUIRE(!in.failed() && signed_type == static_cast<std::uint8_t>(signed_type_) &&
                 unsigned_type == static_cast<std::uint8_t>(unsigned_type_),
             ErrorCode::kCorrupt, "{}: config with types {} and {}", getName(), signed_type,
             unsigned_type);
}

namespace {

StageTypes typesFromConfig(ByteView config) {
  if (config.size() < 2) {
    return {DataType::INT32, DataType::UINT32};
  }
  return {static_cast<DataType>(config[0]), static_cast<DataType>(config[1])};
}

const ParamTable& noParams() {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace

StageDescriptor detail::signedMapDescriptor(
    std::unique_ptr<Stage> (*make)(std::span<const DataType>)) {
  return {
      .id = 0,
      .name = {},
      .category = "transform",
      .summary = {},
      .type_keys = {{"input_type", DataType::INT32}, {"output_type", DataType::UINT32}},
      .type_combinations = {{DataType::INT8, DataType::UINT8},
                            {DataType::INT16, DataType::UINT16},
                            {DataType::INT32, DataType::UINT32},
                            {DataType::INT64, DataType::UINT64}},
      .aliases = {},
      .make = make,
      .types_from_config = &typesFromConfig,
      .params = &noParams,
      .adjust_config_defaults = nullptr,
  };
}

}  // namespace fz
