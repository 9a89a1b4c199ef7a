#include "backends/cuda/delta_cuda.h"
#include "core/require.h"
#include "predictors/diff/diff.h"
#include "predictors/diff/diff_op.h"

namespace fz {

namespace {

/// The unsigned integer of the same width; of no use for floats.
template <class T>
using UnsignedOf = std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>;

template <class T, class TOut>
constexpr delta::Code kCode =
    std::is_same_v<T, TOut> ? delta::Code::kPlain : delta::Code::kNegabinary;

/// No coder has larger tiles.
constexpr std::size_t kMostUnitValues = std::size_t{1} << 20;

template <class T>
void checkWhole(const DeviceSize& size, ErrorCode code) {
  FZ_REQUIRE(!size.isExact() || size.n_bytes % sizeof(T) == 0, code,
             "Difference: {} bytes are no whole number of {}-byte values", size.n_bytes, sizeof(T));
}

}  // namespace

template <class T, class TOut>
bool DifferenceStage<T, TOut>::hasCuda() const {
  return true;
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::encodeCuda(const CudaRun& run) {
  n_lost_ = 0;
  checkWhole<T>(run.inputs[0].size, ErrorCode::kBadSize);
  const delta::CudaBlocks blocks = delta::cudaBlocks(run, chunk_bytes_ / sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    delta::encodeFloats<T>(blocks);
  } else {
    delta::encodeBlocks<UnsignedOf<T>>(blocks, kCode<T, TOut>);
  }
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::decodeCuda(const CudaRun& run) {
  n_lost_ = 0;
  const DeviceSize& size = run.inputs[0].size;
  checkWhole<T>(size, ErrorCode::kCorrupt);
  const delta::CudaBlocks blocks = delta::cudaBlocks(run, chunk_bytes_ / sizeof(T));
  void* work =
      device_work_.get<std::uint8_t>(run.pool, delta::decodeScratchBytes(size.n_bytes)).data();
  if constexpr (std::is_floating_point_v<T>) {
    delta::decodeFloats<T>(blocks, work);
  } else {
    delta::decodeBlocks<UnsignedOf<T>>(blocks, kCode<T, TOut>, work);
  }
}

template <class T, class TOut>
TileOp DifferenceStage<T, TOut>::cudaTileOp() const {
  if (std::is_floating_point_v<T>) {
    return NoOp{"sums of floats depend on their order"};
  }
  const std::size_t chunk = chunk_bytes_ / sizeof(T);
  if (isInverse() && (chunk == 0 || chunk > kMostUnitValues)) {
    return NoOp{"its chunks are longer than any tile"};
  }
  // Encoding looks at one neighbour only, wherever it is.
  return RowsOp{.unit_values = isInverse() ? static_cast<std::uint32_t>(chunk) : 1u,
                .reach = RowsReach::kLines};
}

template <class T, class TOut>
std::string DifferenceStage<T, TOut>::tileOpType() const {
  return fmt::format("fz::diff::DiffOp<std::uint{}_t, fz::delta::Code::{}>", 8 * sizeof(T),
                     kCode<T, TOut> == delta::Code::kPlain ? "kPlain" : "kNegabinary");
}

template <class T, class TOut>
std::string DifferenceStage<T, TOut>::tileOpHeader() const {
  return "predictors/diff/diff_op.cuh";
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::beginGroupCuda(const CudaRun& run,
                                              const GroupRun& /*group*/,
                                              GroupArgs& args) {
  n_lost_ = 0;
  checkWhole<T>(run.inputs[0].size, isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize);
  args.add(diff::DiffArgs{chunk_bytes_ / sizeof(T)});
}

template <class T, class TOut>
void DifferenceStage<T, TOut>::throwDeviceError(const StageRecord& record) const {
  FZ_REQUIRE(static_cast<DeviceError>(record.error) == DeviceError::kBound,
             isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
             "Difference: {} bytes are no whole number of {}-byte values", record.error_index,
             sizeof(T));
  // Which values behind the first would change too is not known: a loss moves all sums after it.
  FZ_REQUIRE(false, ErrorCode::kBoundViolation,
             "Difference: sums of {} differences must restore every value, but some would change, "
             "the first at index {}",
             dataTypeToString(kDataTypeOf<T>), record.error_index);
}

// NOLINTBEGIN(bugprone-macro-parentheses): these are types
#define FZ_DIFFERENCE_INSTANTIATE(...)                                                        \
  template bool DifferenceStage<__VA_ARGS__>::hasCuda() const;                                \
  template void DifferenceStage<__VA_ARGS__>::encodeCuda(const CudaRun&);                     \
  template void DifferenceStage<__VA_ARGS__>::decodeCuda(const CudaRun&);                     \
  template TileOp DifferenceStage<__VA_ARGS__>::cudaTileOp() const;                           \
  template std::string DifferenceStage<__VA_ARGS__>::tileOpType() const;                      \
  template std::string DifferenceStage<__VA_ARGS__>::tileOpHeader() const;                    \
  template void DifferenceStage<__VA_ARGS__>::beginGroupCuda(const CudaRun&, const GroupRun&, \
                                                             GroupArgs&);                     \
  template void DifferenceStage<__VA_ARGS__>::throwDeviceError(const StageRecord&) const
// NOLINTEND(bugprone-macro-parentheses)
FZ_DIFFERENCE_INSTANTIATE(float);
FZ_DIFFERENCE_INSTANTIATE(double);
FZ_DIFFERENCE_INSTANTIATE(std::uint8_t);
FZ_DIFFERENCE_INSTANTIATE(std::uint16_t);
FZ_DIFFERENCE_INSTANTIATE(std::uint32_t);
FZ_DIFFERENCE_INSTANTIATE(std::uint64_t);
FZ_DIFFERENCE_INSTANTIATE(std::int8_t);
FZ_DIFFERENCE_INSTANTIATE(std::int16_t);
FZ_DIFFERENCE_INSTANTIATE(std::int32_t);
FZ_DIFFERENCE_INSTANTIATE(std::int64_t);
FZ_DIFFERENCE_INSTANTIATE(std::int8_t, std::uint8_t);
FZ_DIFFERENCE_INSTANTIATE(std::int16_t, std::uint16_t);
FZ_DIFFERENCE_INSTANTIATE(std::int32_t, std::uint32_t);
FZ_DIFFERENCE_INSTANTIATE(std::int64_t, std::uint64_t);
#undef FZ_DIFFERENCE_INSTANTIATE

}  // namespace fz
