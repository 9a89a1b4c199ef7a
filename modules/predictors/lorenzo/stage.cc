#include <limits>

#include "core/require.h"
#include "fz/byte_io.h"
#include "predictors/lorenzo/codec.h"
#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz {

namespace {

constexpr std::size_t kMaxBlock = 1024;
constexpr std::size_t kMaxExtent = std::numeric_limits<std::uint32_t>::max();  // as in the config

// Above the number of dimensions, so that versions that do not know axes refuse the config.
constexpr std::uint32_t kLeftOutShift = 4;

void write(ByteWriter& out, const LorenzoConfig& config) {
  const auto shape = static_cast<std::uint8_t>(config.ndim | config.left_out << kLeftOutShift);
  out.u8(static_cast<std::uint8_t>(config.data_type)).u8(shape).zeros(2);
  out.u32(config.dim_x).u32(config.dim_y).u32(config.dim_z).u32(config.block_size);
}

/// Throws Error(kCorrupt) when the bytes are too few.
LorenzoConfig read(ByteReader& in) {
  LorenzoConfig config;
  FZ_REQUIRE(in.remaining() >= 16, ErrorCode::kCorrupt,
             "Lorenzo: expected a config of at least 16 bytes, got {}", in.remaining());
  config.data_type = static_cast<DataType>(in.u8());
  const std::uint8_t shape = in.u8();
  config.ndim = static_cast<std::uint8_t>(shape & ((1u << kLeftOutShift) - 1));
  config.left_out = static_cast<std::uint8_t>(shape >> kLeftOutShift);
  in.skip(2);
  config.dim_x = in.u32();
  config.dim_y = in.u32();
  config.dim_z = in.u32();
  config.block_size = in.remaining() >= 4 ? in.u32() : 0;  // files before the setting have none
  return config;
}

}  // namespace

template <class T>
void LorenzoStage<T>::setBlockSize(std::size_t n_values) {
  FZ_REQUIRE_ARG(n_values <= kMaxBlock, "Lorenzo: block_size must be 0 (256) or 1 to {}, not {}",
                 kMaxBlock, n_values);
  block_size_ = n_values;
}

template <class T>
const ParamTable& LorenzoStage<T>::paramTable() const {
  static const ParamTable kTable(
      {intParam<LorenzoStage>(
           "block_size", 0, {0, static_cast<std::int64_t>(kMaxBlock)},
           "block-local delta along one line, restarted every so many values; 0: the dims decide "
           "(256 in 1-D)",
           &LorenzoStage::getBlockSize,
           [](LorenzoStage& stage, std::int64_t n) {
             stage.setBlockSize(static_cast<std::size_t>(n));
           }),
       textParam<LorenzoStage>(
           "axes", "xyz", "axes along which differences are taken, such as xz",
           [](const LorenzoStage& stage) { return stage.getAxes().text(); },
           [](LorenzoStage& stage, const std::string& text) {
             stage.setAxes(Axes::fromText(text, "Lorenzo"));
           })});
  return kTable;
}

/// A block size asks for blocks along one line of values, whatever the shape of the pipeline.
template <class T>
const StageDims& LorenzoStage<T>::shape() const {
  static const StageDims kOneLine;
  return block_size_ > 0 && !dims_.areOwn() ? kOneLine : dims_;
}

template <class T>
std::size_t LorenzoStage<T>::blockValues() const {
  return block_size_ == 0 ? lorenzo::kDefaultBlock : block_size_;
}

template <class T>
std::array<std::size_t, 3> LorenzoStage<T>::dimsFor(std::size_t n_bytes, ErrorCode code) const {
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, code, "Lorenzo: input size {} is not a multiple of {} bytes",
             n_bytes, sizeof(T));
  return shape().resolve(n_bytes / sizeof(T), "Lorenzo", code);
}

template <class T>
std::size_t LorenzoStage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  dimsFor(encoded_bytes[0], ErrorCode::kCorrupt);
  return encoded_bytes[0];
}

template <class T>
std::array<std::size_t, 3> LorenzoStage<T>::encodeDimsFor(std::size_t n_bytes) const {
  const std::array<std::size_t, 3> dims = dimsFor(n_bytes, ErrorCode::kBadSize);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const bool is_stored = shape().ndim() > 1 || shape().get()[axis] != 0;
    FZ_REQUIRE(!is_stored || dims[axis] <= kMaxExtent, ErrorCode::kBadSize,
               "Lorenzo: dims {} x {} x {}: an extent must be at most {}", dims[0], dims[1],
               dims[2], kMaxExtent);
  }
  return dims;
}

template <class T>
void LorenzoStage<T>::writeConfig(ByteWriter& out) const {
  const std::array<std::size_t, 3>& dims = shape().get();
  const bool infers_x = dims[0] == 0 && shape().ndim() > 1;
  write(out, {.data_type = kDataTypeOf<T>,
              .ndim = static_cast<std::uint8_t>(shape().ndim()),
              .dim_x = static_cast<std::uint32_t>(infers_x ? inferred_x_ : dims[0]),
              .dim_y = static_cast<std::uint32_t>(dims[1]),
              .dim_z = static_cast<std::uint32_t>(dims[2]),
              .block_size = static_cast<std::uint32_t>(block_size_),
              .left_out = leftOut()});
}

template <class T>
void LorenzoStage<T>::readConfig(ByteReader& in) {
  const LorenzoConfig config = read(in);
  FZ_REQUIRE(config.data_type == kDataTypeOf<T>, ErrorCode::kCorrupt,
             "Lorenzo: config with type {}, expected {}", static_cast<unsigned>(config.data_type),
             dataTypeToString(kDataTypeOf<T>));
  FZ_REQUIRE(config.block_size <= kMaxBlock, ErrorCode::kCorrupt,
             "Lorenzo: block of {} values, at most {} allowed", config.block_size, kMaxBlock);
  StageDims dims;
  dims.setOwn(
      {config.dim_x, config.ndim > 1 ? config.dim_y : 1, config.ndim > 2 ? config.dim_z : 1});
  FZ_REQUIRE(config.ndim == dims.ndim(), ErrorCode::kCorrupt,
             "Lorenzo: {} dimensions, but dims {} x {} x {}", config.ndim, config.dim_x,
             config.dim_y, config.dim_z);
  FZ_REQUIRE(config.left_out < 1u << config.ndim, ErrorCode::kCorrupt,
             "Lorenzo: config without axes {} of {}", config.left_out, config.ndim);
  dims_ = dims;
  block_size_ = config.block_size;
  axes_ = Axes::fromLeftOut(config.left_out);
}

template class LorenzoStage<std::int8_t>;
template class LorenzoStage<std::int16_t>;
template class LorenzoStage<std::int32_t>;
template class LorenzoStage<std::int64_t>;

}  // namespace fz
