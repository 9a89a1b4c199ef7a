#include "backends/cuda/delta_cuda.h"
#include "backends/cuda/padding.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "mem/scratch.h"
#include "predictors/diff/codec.h"
#include "predictors/diff/diff.h"

namespace fz::diff {

namespace {

/// No coder has larger tiles.
constexpr std::size_t kMaxUnitValues = std::size_t{1} << 20;

}  // namespace

template <class T, class TOut>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(DifferenceStage<T, TOut>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void throwError(const StageRecord& record) const override;
  std::optional<std::uint32_t> quietValues() const override { return 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override { return "predictors/diff/cuda/op/op.cuh"; }
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;

 private:
  /// Checks the input's size, where the host knows it; nothing is lost yet.
  void begin(const DeviceSize& size);

  DifferenceStage<T, TOut>& stage_;
  Scratch work_;
};

template <class T, class TOut>
void CudaSide<T, TOut>::begin(const DeviceSize& size) {
  stage_.n_lost_ = 0;
  if (size.isExact()) {
    stage_.requireWholeValues(size.n_bytes);
  }
}

template <class T, class TOut>
void CudaSide<T, TOut>::encode(const cuda::Call& call) {
  begin(call.inputs[0].size);
  const delta::CudaBlocks blocks = delta::cudaBlocks(call, stage_.chunk_bytes_ / sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    delta::encodeFloats<T>(blocks);
  } else {
    delta::encodeBlocks<UnsignedOf<T>>(blocks, kCode<T, TOut>);
  }
}

template <class T, class TOut>
void CudaSide<T, TOut>::decode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  begin(size);
  const delta::CudaBlocks blocks = delta::cudaBlocks(call, stage_.chunk_bytes_ / sizeof(T));
  void* work = work_.get<std::uint8_t>(call.pool, delta::decodeScratchBytes(size.n_bytes)).data();
  if constexpr (std::is_floating_point_v<T>) {
    delta::decodeFloats<T>(blocks, work);
  } else {
    delta::decodeBlocks<UnsignedOf<T>>(blocks, kCode<T, TOut>, work);
  }
}

template <class T, class TOut>
TileOp CudaSide<T, TOut>::tileOp() const {
  if (std::is_floating_point_v<T>) {
    return NoOp{"sums of floats depend on their order"};
  }
  const std::size_t chunk = stage_.chunk_bytes_ / sizeof(T);
  if (stage_.isInverse() && (chunk == 0 || chunk > kMaxUnitValues)) {
    return NoOp{"its chunks are longer than any tile"};
  }
  // Encoding looks at one neighbour only, wherever it is.
  return RowsOp{.unit_values = stage_.isInverse() ? static_cast<std::uint32_t>(chunk) : 1u,
                .reach = RowsReach::kLines};
}

template <class T, class TOut>
std::string CudaSide<T, TOut>::tileOpType() const {
  return fmt::format("fz::diff::DiffOp<std::uint{}_t, fz::delta::Code::{}>", 8 * sizeof(T),
                     kCode<T, TOut> == delta::Code::kPlain ? "kPlain" : "kNegabinary");
}

template <class T, class TOut>
void CudaSide<T, TOut>::beginGroup(const cuda::Call& call,
                                   const GroupRun& /*group*/,
                                   GroupArgs& args) {
  begin(call.inputs[0].size);
  DiffArgs own = {stage_.chunk_bytes_ / sizeof(T)};
  cuda::clearPadding(own);
  args.add(own);
}

template <class T, class TOut>
void CudaSide<T, TOut>::throwError(const StageRecord& record) const {
  FZ_REQUIRE(static_cast<DeviceError>(record.error) == DeviceError::kBound,
             stage_.isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
             "Difference: input size {} is not a multiple of {} bytes", record.error_index,
             sizeof(T));
  // Which values behind the first would change too is not known: a loss moves all sums after it.
  detail::throwError(
      ErrorCode::kBoundViolation,
      fmt::format(
          "Difference: sums of {} differences would change some values, the first at index {}",
          dataTypeToString(kDataTypeOf<T>), record.error_index));
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<
      CudaSide, DifferenceStage<float>, DifferenceStage<double>, DifferenceStage<std::uint8_t>,
      DifferenceStage<std::uint16_t>, DifferenceStage<std::uint32_t>,
      DifferenceStage<std::uint64_t>, DifferenceStage<std::int8_t>, DifferenceStage<std::int16_t>,
      DifferenceStage<std::int32_t>, DifferenceStage<std::int64_t>,
      DifferenceStage<std::int8_t, std::uint8_t>, DifferenceStage<std::int16_t, std::uint16_t>,
      DifferenceStage<std::int32_t, std::uint32_t>, DifferenceStage<std::int64_t, std::uint64_t>>;
}

}  // namespace fz::diff
