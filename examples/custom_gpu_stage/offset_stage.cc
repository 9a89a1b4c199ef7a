#include "offset_stage.h"

#include <limits>
#include <memory>
#include <string>

#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/params.h"
#include "fz/stage_descriptor.h"

namespace example {

void OffsetStage::requireWholeValues(std::size_t n_bytes) const {
  if (n_bytes % sizeof(std::int32_t) != 0) {
    throw fz::Error(
        isInverse() ? fz::ErrorCode::kCorrupt : fz::ErrorCode::kBadSize,
        getName() + ": input size " + std::to_string(n_bytes) + " is not a multiple of 4 bytes");
  }
}

std::size_t OffsetStage::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  requireWholeValues(encoded_bytes[0]);
  return encoded_bytes[0];
}

void OffsetStage::encodeTile(const fz::TileRange& range, const void* in, void* out) {
  const auto* from = static_cast<const std::int32_t*>(in);
  auto* to = static_cast<std::int32_t*>(out);
  for (std::size_t i = 0; i < range.n_values; ++i) {
    to[i] = map_.encode(from[i]);
  }
}

void OffsetStage::decodeTile(const fz::TileRange& range, const void* in, void* out) {
  const auto* from = static_cast<const std::int32_t*>(in);
  auto* to = static_cast<std::int32_t*>(out);
  for (std::size_t i = 0; i < range.n_values; ++i) {
    to[i] = map_.decode(from[i]);
  }
}

void OffsetStage::encodeCpu(const fz::CpuRun& run) {
  const std::size_t n_bytes = run.inputs[0].size();
  requireWholeValues(n_bytes);
  encodeTile({0, n_bytes / sizeof(std::int32_t)}, run.inputs[0].data(), run.outputs[0].data());
  setActualBytes(0, n_bytes);
}

void OffsetStage::decodeCpu(const fz::CpuRun& run) {
  const std::size_t n_bytes = run.inputs[0].size();
  requireWholeValues(n_bytes);
  decodeTile({0, n_bytes / sizeof(std::int32_t)}, run.inputs[0].data(), run.outputs[0].data());
  setActualBytes(0, n_bytes);
}

void OffsetStage::writeConfig(fz::ByteWriter& out) const {
  out.u32(map_.offset);
}

void OffsetStage::readConfig(fz::ByteReader& in) {
  map_.offset = in.u32();
  if (in.failed()) {
    throw fz::Error(fz::ErrorCode::kCorrupt, getName() + ": config of 4 bytes needed");
  }
}

const fz::StageDescriptor& OffsetStage::descriptor() const {
  static const fz::ParamTable kParams = [] {
    using Limits = std::numeric_limits<std::int32_t>;
    return fz::ParamTable({fz::intParam<OffsetStage>(
        "offset", 0, {Limits::min(), Limits::max()}, "what is taken away from every value",
        [](const OffsetStage& stage) { return stage.getOffset(); },
        [](OffsetStage& stage, std::int64_t offset) {
          stage.setOffset(static_cast<std::int32_t>(offset));
        })});
  }();
  static const fz::StageDescriptor kDescriptor = {
      .id = 0x4A10,  // any from 0x4000 on that no other stage has
      .name = "Offset",
      .category = "transform",
      .summary = "integers minus a constant",
      .type_keys = {},
      .type_combinations = {{}},
      .aliases = {},
      .make = [](std::span<const fz::DataType> /*types*/) -> std::unique_ptr<fz::Stage> {
        return std::make_unique<OffsetStage>();
      },
      .types_from_config = [](fz::ByteView /*config*/) { return fz::StageTypes{}; },
      .params = []() -> const fz::ParamTable& { return kParams; },
      .adjust_config_defaults = nullptr,
      .make_cuda = offsetCudaPart(),
  };
  return kDescriptor;
}

}  // namespace example
