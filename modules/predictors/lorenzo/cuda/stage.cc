#include <algorithm>
#include <bit>
#include <limits>

#include "backends/cuda/delta_cuda.h"
#include "backends/cuda/padding.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "mem/scratch.h"
#include "predictors/lorenzo/cuda/kernels.h"
#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz::lorenzo {

namespace {

using Dims = std::array<std::size_t, 3>;

constexpr std::size_t kMaxExtent = std::numeric_limits<std::uint32_t>::max();  // as in the config
constexpr std::uint32_t kConfigDimX = 4;                                       // SPEC: dim_x
constexpr std::uint32_t kRowValues = 32;  // in a group, what one lane has

/// Dims for an input whose size only the device knows: of `dims`, x may be open, and up to n_values
/// values may come. Throws Error(code) when no such input fits.
Dims dimsForLimit(const Dims& dims, std::size_t n_values, ErrorCode code) {
  std::size_t n_lines = 0;
  std::size_t n_held = 0;
  const bool overflows = __builtin_mul_overflow(dims[1], dims[2], &n_lines) ||
                         __builtin_mul_overflow(n_lines, dims[0], &n_held);
  FZ_REQUIRE(!overflows && n_held <= n_values, code,
             "Lorenzo: dims {} x {} x {} hold more values than the input, which has {} at most",
             dims[0], dims[1], dims[2], n_values);
  return {dims[0] == 0 ? std::min(n_values / n_lines, kMaxExtent) : dims[0], dims[1], dims[2]};
}

CudaGrid cudaGrid(const cuda::Call& call, const Dims& dims, ExtentFrom extent_from) {
  return {call.inputs[0], call.outputs[0], {dims[0], dims[1], dims[2]},
          extent_from,    call.record,     call.stream};
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(LorenzoStage<T>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override;
  std::optional<std::uint32_t> quietValues() const override { return 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override { return "predictors/lorenzo/cuda/op/op.cuh"; }
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;

 private:
  /// Of axes that there are.
  AxisSet axes() const {
    const unsigned left_out = stage_.leftOut();
    const int ndim = stage_.shape().ndim();
    return {(left_out & 1u) == 0, ndim > 1 && (left_out & 2u) == 0,
            ndim > 2 && (left_out & 4u) == 0};
  }

  LorenzoStage<T>& stage_;
  Scratch work_;
};

template <class T>
std::vector<DeviceField> CudaSide<T>::fields() const {
  if (stage_.shape().ndim() == 1) {
    return {};
  }
  return {{kConfigDimX, sizeof(std::uint32_t), kExtentSlot}};
}

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  using U = std::make_unsigned_t<T>;
  const DeviceSize& size = call.inputs[0].size;
  const Dims& set = stage_.shape().get();
  const bool has_all_axes = stage_.leftOut() == 0;
  if (stage_.shape().ndim() == 1 && has_all_axes) {
    stage_.inferred_x_ = size.isExact() ? stage_.encodeDimsFor(size.n_bytes)[0] : 0;
    delta::encodeBlocks<U>(delta::cudaBlocks(call, stage_.blockValues(), set[0] * sizeof(T)),
                           delta::Code::kPlain);
    return;
  }
  const auto encodeAs = [&](const Dims& dims, ExtentFrom extent_from) {
    const CudaGrid grid = cudaGrid(call, dims, extent_from);
    has_all_axes ? encodeGrid<U>(grid) : encodeAlong<U>(grid, axes());
  };
  if (size.isExact()) {
    const Dims dims = stage_.encodeDimsFor(size.n_bytes);
    stage_.inferred_x_ = dims[0];
    encodeAs(dims, ExtentFrom::kHost);
    return;
  }
  encodeAs(dimsForLimit(set, size.n_bytes / sizeof(T), ErrorCode::kBadSize),
           set[0] == 0 ? ExtentFrom::kSize : ExtentFrom::kHost);
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  using U = std::make_unsigned_t<T>;
  const DeviceSize& size = call.inputs[0].size;
  const Dims& set = stage_.shape().get();
  const bool is_line = stage_.shape().ndim() == 1;
  const bool has_all_axes = stage_.leftOut() == 0;
  if (is_line && has_all_axes) {
    if (size.isExact()) {
      stage_.dimsFor(size.n_bytes, ErrorCode::kCorrupt);
    }
    // Blocks of up to 1024 values never go beyond a tile, so no working memory is used.
    delta::decodeBlocks<U>(delta::cudaBlocks(call, stage_.blockValues(), set[0] * sizeof(T)),
                           delta::Code::kPlain, nullptr);
    return;
  }
  CudaGrid grid = {};
  if (size.isExact()) {
    grid = cudaGrid(call, stage_.dimsFor(size.n_bytes, ErrorCode::kCorrupt), ExtentFrom::kHost);
  } else {
    // The extent in x of a line is not a field of the config.
    const Dims dims = dimsForLimit({is_line ? set[0] : 0, set[1], set[2]}, size.n_bytes / sizeof(T),
                                   ErrorCode::kCorrupt);
    grid = cudaGrid(call, dims,
                    !is_line      ? ExtentFrom::kRecord
                    : set[0] == 0 ? ExtentFrom::kSize
                                  : ExtentFrom::kHost);
  }
  if (!has_all_axes) {
    decodeAlong<U>(grid, axes());
    return;
  }
  const std::size_t n_bytes = decodeScratchBytes<U>(grid);
  decodeGrid<U>(grid, work_.get<std::uint8_t>(call.pool, n_bytes).data());
}

template <class T>
TileOp CudaSide<T>::tileOp() const {
  if (stage_.leftOut() != 0) {
    return NoOp{"takes differences along some axes only"};
  }
  if (stage_.shape().ndim() > 1) {
    return NoOp{"predicts across the whole grid, so no part of it can be decoded alone"};
  }
  if (sizeof(T) != 2 && sizeof(T) != 4) {
    return NoOp{"has a tile operation for values of 16 and 32 bits only"};
  }
  const auto block = static_cast<std::uint32_t>(stage_.blockValues());
  if (!std::has_single_bit(block)) {
    return NoOp{"has a tile operation for blocks of a power of two of values only"};
  }
  return RowsOp{.unit_values = std::max(block, kRowValues),
                .warp_values = block,
                .variant = std::uint64_t{sizeof(T)} << 32 | block};
}

template <class T>
std::string CudaSide<T>::tileOpType() const {
  return fmt::format("fz::lorenzo::BlockOp<std::{}_t, {}>", dataTypeToString(kDataTypeOf<T>),
                     stage_.blockValues() >= kRowValues);
}

template <class T>
void CudaSide<T>::beginGroup(const cuda::Call& call, const GroupRun& /*group*/, GroupArgs& args) {
  const std::size_t n_bytes = call.inputs[0].size.n_bytes;
  if (stage_.isInverse()) {
    stage_.dimsFor(n_bytes, ErrorCode::kCorrupt);
  } else {
    stage_.inferred_x_ = stage_.encodeDimsFor(n_bytes)[0];
  }
  BlockArgs own = {static_cast<std::uint32_t>(stage_.blockValues())};
  cuda::clearPadding(own);
  args.add(own);
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  if (stage_.shape().ndim() > 1) {
    stage_.inferred_x_ = record.value[kExtentSlot];
  }
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  const Dims& dims = stage_.shape().get();
  detail::throwError(
      stage_.isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
      fmt::format("Lorenzo: dims {} x {} x {} do not match {} bytes of {}-byte values", dims[0],
                  dims[1], dims[2], record.error_index, sizeof(T)));
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, LorenzoStage<std::int8_t>, LorenzoStage<std::int16_t>,
                       LorenzoStage<std::int32_t>, LorenzoStage<std::int64_t>>;
}

}  // namespace fz::lorenzo
