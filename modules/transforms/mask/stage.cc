// Settings, sizes and config.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/require.h"
#include "fz/byte_io.h"
#include "transforms/mask/codec.h"
#include "transforms/mask/mask_stage.h"
#include "transforms/mask/stream.h"

namespace fz::mask {

namespace {

constexpr std::size_t kConfigBytes = 48;  // SPEC: config, without the fill values
constexpr std::size_t kMaxHold = 65536;
constexpr std::size_t kMaxHoldEdge = 64;
// A mask of a coast takes a twentieth of this.
constexpr std::size_t kReserveShare = 32;
constexpr std::size_t kReserveBytes = 4096;

}  // namespace

void MaskBase::setFill(const std::vector<double>& values) {
  std::vector<double> kept;
  for (const double value : values) {
    // NaN and infinities are missing anyway.
    if (std::isfinite(value) && std::find(kept.begin(), kept.end(), value) == kept.end()) {
      kept.push_back(value);
    }
  }
  FZ_REQUIRE_ARG(kept.size() <= kMaxFillValues, "Mask: at most {} fill values, not {}",
                 kMaxFillValues, kept.size());
  fill_ = std::move(kept);
}

void MaskBase::setFillText(const std::string& text) {
  std::vector<double> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    double value = 0.0;
    const auto result = std::from_chars(at, end, value);
    const bool is_number =
        result.ec == std::errc{} && (result.ptr == end || *result.ptr == ' ' || *result.ptr == ',');
    FZ_REQUIRE_ARG(is_number, "Mask: fill must be numbers separated by spaces, not '{}'", text);
    values.push_back(value);
    at = result.ptr;
  }
  setFill(values);
}

std::string MaskBase::getFillText() const {
  std::string text;
  for (const double value : fill_) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", value);
  }
  return text;
}

void MaskBase::setHold(const std::array<std::size_t, 3>& tile) {
  const bool is_line = tile[1] <= 1 && tile[2] <= 1;
  const bool has_zero = tile[0] == 0 || tile[1] == 0 || tile[2] == 0;
  FZ_REQUIRE_ARG(tile == (std::array<std::size_t, 3>{}) ||
                     (!has_zero && tile[0] <= (is_line ? kMaxHold : kMaxHoldEdge) &&
                      tile[1] <= kMaxHoldEdge && tile[2] <= kMaxHoldEdge),
                 "Mask: hold must be extents of 1 to {}, or up to {} values in order, not {} x {} "
                 "x {}",
                 kMaxHoldEdge, kMaxHold, tile[0], tile[1], tile[2]);
  hold_ = tile;
  keeps_nan_ = false;
}

void MaskBase::setHoldText(const std::string& text) {
  if (text == "nan") {
    setHold({0, 0, 0});
    keepNan();
    return;
  }
  std::array<std::size_t, 3> tile = {0, 0, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  bool is_tile = true;
  for (std::size_t axis = 0; at != end && is_tile; ++axis) {
    std::size_t& extent = tile[std::min<std::size_t>(axis, 2)];
    const auto result = std::from_chars(at, end, extent);
    is_tile = axis < 3 && result.ec == std::errc{} && extent > 0 &&
              (result.ptr == end || (*result.ptr == 'x' && result.ptr + 1 != end));
    at = is_tile && result.ptr != end ? result.ptr + 1 : result.ptr;
  }
  FZ_REQUIRE_ARG(is_tile, "Mask: hold must be a tile such as 32, 8x8 or 4x4x4, or nan, not '{}'",
                 text);
  for (std::size_t axis = 1; axis < 3 && tile[0] != 0; ++axis) {
    tile[axis] = std::max<std::size_t>(tile[axis], 1);
  }
  setHold(tile);
}

std::string MaskBase::getHoldText() const {
  if (keeps_nan_) {
    return "nan";
  }
  if (hold_[0] == 0) {
    return {};
  }
  std::string text = fmt::format("{}", hold_[0]);
  if (hold_[1] > 1 || hold_[2] > 1) {
    text += fmt::format("x{}", hold_[1]);
  }
  return hold_[2] > 1 ? text + fmt::format("x{}", hold_[2]) : text;
}

SimpleStage::PortBytes MaskBase::encodedBytes(std::size_t input_bytes) const {
  const std::size_t n = input_bytes / valueBytes();
  return {input_bytes,
          std::min(maxEncodedBytes(input_bytes)[1], n / kReserveShare + kReserveBytes)};
}

SimpleStage::PortBytes MaskBase::maxEncodedBytes(std::size_t input_bytes) const {
  const std::size_t n = input_bytes / valueBytes();
  const auto dims = dims_.fitted(n).value_or(std::array<std::size_t, 3>{n, 1, 1});
  return {input_bytes, maxStreamBytes(makeGrid(dims[0], dims[1], dims[2]), valueBytes())};
}

std::array<std::size_t, 3> MaskBase::dimsFor(std::size_t n_bytes, ErrorCode code) const {
  FZ_REQUIRE(n_bytes % valueBytes() == 0, code, "Mask: input size {} is not a multiple of {} bytes",
             n_bytes, valueBytes());
  return dims_.resolve(n_bytes / valueBytes(), "Mask", code);
}

std::size_t MaskBase::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  FZ_REQUIRE(encoded_bytes.size() == 2, ErrorCode::kCorrupt, "Mask: 2 streams needed, {} came",
             encoded_bytes.size());
  const std::size_t n = encoded_bytes[0] / valueBytes();
  FZ_REQUIRE(encoded_bytes[0] % valueBytes() == 0 && shape_[0] * shape_[1] * shape_[2] == n,
             ErrorCode::kCorrupt, "Mask: {} bytes of values for dims {} x {} x {}",
             encoded_bytes[0], shape_[0], shape_[1], shape_[2]);
  FZ_REQUIRE(n_missing_ <= n && (n_missing_ == 0) == (encoded_bytes[1] == 0), ErrorCode::kCorrupt,
             "Mask: {} of {} values missing, but {} bytes of mask", n_missing_, n,
             encoded_bytes[1]);
  return encoded_bytes[0];
}

void MaskBase::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(type_)).u8(static_cast<std::uint8_t>(fill_.size())).zeros(6);
  out.u64(n_missing_).u64(n_filled_);
  for (const std::uint64_t extent : shape_) {
    out.u64(extent);
  }
  for (const double value : fill_) {
    out.f64(value);
  }
}

void MaskBase::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  const std::uint8_t type = in.u8();
  const std::uint8_t n_fills = in.u8();
  in.skip(6);
  const std::uint64_t n_missing = in.u64();
  const std::uint64_t n_filled = in.u64();
  std::array<std::uint64_t, 3> shape = {};
  for (std::uint64_t& extent : shape) {
    extent = in.u64();
  }
  FZ_REQUIRE(n_fills <= kMaxFillValues && n_bytes == kConfigBytes + 8 * std::size_t{n_fills},
             ErrorCode::kCorrupt, "Mask: config of {} bytes with {} fill values", n_bytes, n_fills);
  std::vector<double> fill;
  for (std::size_t i = 0; i < n_fills; ++i) {
    fill.push_back(in.f64());
  }
  FZ_REQUIRE(type == static_cast<std::uint8_t>(type_), ErrorCode::kCorrupt,
             "Mask: config with type {}, {} needed", type, dataTypeToString(type_));
  std::uint64_t n_values = 0;
  FZ_REQUIRE(!__builtin_mul_overflow(shape[0], shape[1], &n_values) &&
                 !__builtin_mul_overflow(n_values, shape[2], &n_values) && n_missing <= n_values &&
                 n_filled <= n_missing,
             ErrorCode::kCorrupt, "Mask: {} missing values, {} of them filled, in {} x {} x {}",
             n_missing, n_filled, shape[0], shape[1], shape[2]);
  FZ_REQUIRE(std::all_of(fill.begin(), fill.end(), [](double v) { return std::isfinite(v); }),
             ErrorCode::kCorrupt, "Mask: a fill value that is not finite");
  fill_ = std::move(fill);
  n_missing_ = n_missing;
  n_filled_ = n_filled;
  shape_ = shape;
}

}  // namespace fz::mask
