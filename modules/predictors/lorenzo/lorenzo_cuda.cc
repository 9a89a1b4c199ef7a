#include "predictors/lorenzo/lorenzo_cuda.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "backends/cuda/delta_cuda.h"
#include "core/require.h"
#include "predictors/lorenzo/lorenzo_op.h"
#include "predictors/lorenzo/lorenzo_stage.h"

namespace fz {

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

lorenzo::CudaGrid cudaGrid(const CudaRun& run, const Dims& dims, lorenzo::ExtentFrom extent_from) {
  return {run.inputs[0], run.outputs[0], {dims[0], dims[1], dims[2]},
          extent_from,   run.record,     run.stream};
}

}  // namespace

template <class T>
bool LorenzoStage<T>::hasCuda() const {
  return true;
}

template <class T>
std::vector<DeviceField> LorenzoStage<T>::deviceFields() const {
  if (shape().ndim() == 1) {
    return {};
  }
  return {{kConfigDimX, sizeof(std::uint32_t), lorenzo::kExtentSlot}};
}

template <class T>
void LorenzoStage<T>::encodeCuda(const CudaRun& run) {
  using U = std::make_unsigned_t<T>;
  const DeviceSize& size = run.inputs[0].size;
  const Dims& set = shape().get();
  if (shape().ndim() == 1) {
    inferred_x_ = size.isExact() ? encodeDimsFor(size.n_bytes)[0] : 0;
    delta::encodeBlocks<U>(delta::cudaBlocks(run, blockValues(), set[0] * sizeof(T)),
                           delta::Code::kPlain);
    return;
  }
  if (size.isExact()) {
    const Dims dims = encodeDimsFor(size.n_bytes);
    inferred_x_ = dims[0];
    lorenzo::encodeGrid<U>(cudaGrid(run, dims, lorenzo::ExtentFrom::kHost));
    return;
  }
  const Dims dims = dimsForLimit(set, size.n_bytes / sizeof(T), ErrorCode::kBadSize);
  lorenzo::encodeGrid<U>(
      cudaGrid(run, dims, set[0] == 0 ? lorenzo::ExtentFrom::kSize : lorenzo::ExtentFrom::kHost));
}

template <class T>
void LorenzoStage<T>::decodeCuda(const CudaRun& run) {
  using U = std::make_unsigned_t<T>;
  const DeviceSize& size = run.inputs[0].size;
  const Dims& set = shape().get();
  if (shape().ndim() == 1) {
    if (size.isExact()) {
      dimsFor(size.n_bytes, ErrorCode::kCorrupt);
    }
    // Blocks of up to 1024 values never go beyond a tile, so no working memory is used.
    delta::decodeBlocks<U>(delta::cudaBlocks(run, blockValues(), set[0] * sizeof(T)),
                           delta::Code::kPlain, nullptr);
    return;
  }
  const lorenzo::CudaGrid grid =
      size.isExact()
          ? cudaGrid(run, dimsFor(size.n_bytes, ErrorCode::kCorrupt), lorenzo::ExtentFrom::kHost)
          : cudaGrid(
                run,
                dimsForLimit({0, set[1], set[2]}, size.n_bytes / sizeof(T), ErrorCode::kCorrupt),
                lorenzo::ExtentFrom::kRecord);
  const lorenzo::DecodeWay way = lorenzo::fasterWay<U>(grid);
  const std::size_t n_bytes = lorenzo::decodeScratchBytes<U>(grid, way);
  lorenzo::decodeGrid<U>(grid, way, device_work_.get<std::uint8_t>(run.pool, n_bytes).data());
}

template <class T>
TileOp LorenzoStage<T>::cudaTileOp() const {
  if (shape().ndim() > 1) {
    return NoOp{"predicts across the whole grid, so no part of it can be decoded alone"};
  }
  if (sizeof(T) != 2 && sizeof(T) != 4) {
    return NoOp{"has a tile operation for values of 16 and 32 bits only"};
  }
  const auto block = static_cast<std::uint32_t>(blockValues());
  if (!std::has_single_bit(block)) {
    return NoOp{"has a tile operation for blocks of a power of two of values only"};
  }
  return RowsOp{.unit_values = std::max(block, kRowValues),
                .warp_values = block,
                .variant = std::uint64_t{sizeof(T)} << 32 | block};
}

template <class T>
std::string LorenzoStage<T>::tileOpType() const {
  return fmt::format("fz::lorenzo::BlockOp<std::{}_t, {}>", dataTypeToString(kDataTypeOf<T>),
                     blockValues() >= kRowValues);
}

template <class T>
void LorenzoStage<T>::beginGroupCuda(const CudaRun& run,
                                     const GroupRun& /*group*/,
                                     GroupArgs& args) {
  const std::size_t n_bytes = run.inputs[0].size.n_bytes;
  if (isInverse()) {
    dimsFor(n_bytes, ErrorCode::kCorrupt);
  } else {
    inferred_x_ = encodeDimsFor(n_bytes)[0];
  }
  args.add(lorenzo::BlockArgs{static_cast<std::uint32_t>(blockValues())});
}

template <class T>
void LorenzoStage<T>::finishEncodeCuda(const StageRecord& record) {
  if (shape().ndim() > 1) {
    inferred_x_ = record.value[lorenzo::kExtentSlot];
  }
}

template <class T>
void LorenzoStage<T>::throwDeviceError(const StageRecord& record) const {
  const Dims& dims = shape().get();
  detail::throwError(
      isInverse() ? ErrorCode::kCorrupt : ErrorCode::kBadSize,
      fmt::format("Lorenzo: dims {} x {} x {} do not hold {} bytes of {}-byte values", dims[0],
                  dims[1], dims[2], record.error_index, sizeof(T)));
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_LORENZO_INSTANTIATE(T)                                                             \
  template bool LorenzoStage<T>::hasCuda() const;                                             \
  template std::vector<DeviceField> LorenzoStage<T>::deviceFields() const;                    \
  template void LorenzoStage<T>::encodeCuda(const CudaRun&);                                  \
  template void LorenzoStage<T>::decodeCuda(const CudaRun&);                                  \
  template TileOp LorenzoStage<T>::cudaTileOp() const;                                        \
  template std::string LorenzoStage<T>::tileOpType() const;                                   \
  template void LorenzoStage<T>::beginGroupCuda(const CudaRun&, const GroupRun&, GroupArgs&); \
  template void LorenzoStage<T>::finishEncodeCuda(const StageRecord&);                        \
  template void LorenzoStage<T>::throwDeviceError(const StageRecord&) const
// NOLINTEND(bugprone-macro-parentheses)
FZ_LORENZO_INSTANTIATE(std::int8_t);
FZ_LORENZO_INSTANTIATE(std::int16_t);
FZ_LORENZO_INSTANTIATE(std::int32_t);
FZ_LORENZO_INSTANTIATE(std::int64_t);
#undef FZ_LORENZO_INSTANTIATE

}  // namespace fz
