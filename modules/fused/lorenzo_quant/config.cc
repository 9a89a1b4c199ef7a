#include "fused/lorenzo_quant/config.h"

#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::lorenzo_quant {

namespace {

constexpr std::size_t kMinConfigBytes = 32;

}  // namespace

void writeConfig(const LorenzoQuantConfig& config, ByteWriter& out) {
  const LorenzoQuantConfig& c = config;
  out.f32(c.abs_error_bound).u32(c.quant_radius).u32(c.num_elements).u32(c.outlier_count);
  out.u8(c.input_type).u8(c.code_type).u8(c.ndim).u8(c.eb_mode);
  out.u32(c.dim_x).u32(c.dim_y).u32(c.dim_z);
  out.f32(c.user_error_bound).f32(c.value_base).u8(c.zigzag_codes);
  out.u8(c.left_out).zeros(c.reserved.size());
}

LorenzoQuantConfig readConfig(ByteReader& in) {
  FZ_REQUIRE(in.remaining() >= kMinConfigBytes, ErrorCode::kCorrupt,
             "{}: expected a config of at least {} bytes, got {}", kName, kMinConfigBytes,
             in.remaining());
  LorenzoQuantConfig c;
  c.abs_error_bound = in.f32();
  c.quant_radius = in.u32();
  c.num_elements = in.u32();
  c.outlier_count = in.u32();
  c.input_type = in.u8();
  c.code_type = in.u8();
  c.ndim = in.u8();
  c.eb_mode = in.u8();
  c.dim_x = in.u32();
  c.dim_y = in.u32();
  c.dim_z = in.u32();
  c.user_error_bound = in.remaining() >= 4 ? in.f32() : c.abs_error_bound;
  c.value_base = in.remaining() >= 4 ? in.f32() : 0.0f;
  c.zigzag_codes = in.remaining() >= 1 && in.u8() != 0 ? 1 : 0;
  c.left_out = in.remaining() >= 1 ? in.u8() : 0;
  FZ_REQUIRE(c.abs_error_bound >= 0.0f && static_cast<double>(c.abs_error_bound) <= kLargestBound,
             ErrorCode::kCorrupt, "{}: config with the error bound {}", kName, c.abs_error_bound);
  FZ_REQUIRE(c.eb_mode <= static_cast<std::uint8_t>(ErrorBoundMode::NOA), ErrorCode::kCorrupt,
             "{}: config with the error-bound mode {}", kName, c.eb_mode);
  StageDims dims;
  dims.setOwn({c.dim_x, c.dim_y, c.dim_z});
  FZ_REQUIRE(c.ndim == dims.ndim() || (c.ndim == 0 && dims.ndim() == 1), ErrorCode::kCorrupt,
             "{}: config with {} dimensions and dims {} x {} x {}", kName, c.ndim, c.dim_x, c.dim_y,
             c.dim_z);
  return c;
}

StageTypes typesFromConfig(ByteView config) {
  if (config.size() < kMinConfigBytes) {
    return {DataType::FLOAT32, DataType::UINT16};  // readConfig refuses it with a better message
  }
  return {static_cast<DataType>(config[16]), static_cast<DataType>(config[17])};
}

Grid gridOfStream(const LorenzoQuantConfig& config) {
  const std::uint64_t n = config.num_elements;
  StageDims dims;
  dims.setOwn({config.dim_x, config.dim_y, config.dim_z});
  if (dims.ndim() == 1) {
    return {n, 1, 1, 1};
  }
  const std::uint64_t ny = dims.get()[1];
  const std::uint64_t nz = dims.get()[2];
  const std::uint64_t rows = ny * nz;  // both below 2^32
  const std::uint64_t nx = dims.get()[0] == 0 ? n / rows : dims.get()[0];
  FZ_REQUIRE(nx <= n / rows, ErrorCode::kCorrupt,
             "{}: dims {} x {} x {} hold more than the {} values of the stream", kName, nx, ny, nz,
             n);
  return {nx, ny, nz, dims.ndim()};
}

}  // namespace fz::lorenzo_quant
