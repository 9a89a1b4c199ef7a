// Bitpack on a device.
#include <algorithm>

#include "coders/bitpack/bitpack_stage.h"
#include "coders/bitpack/codec.h"
#include "coders/bitpack/cuda/kernels.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"

namespace fz::bitpack {

namespace {

PackArgs argsOf(const cuda::Call& call, std::uint32_t n_bits) {
  const CudaOutput& out = call.outputs[0];
  return {.in = call.inputs[0].data,
          .in_size = call.inputs[0].size,
          .out = out.data,
          .capacity_bytes = out.capacity_bytes,
          .size_known = out.size_known,
          .record = call.record,
          .n_bits = n_bits};
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(BitpackStage<T>& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override {
    return {{1, 1, kBitsSlot}, {2, 8, kCountSlot}};  // SPEC: config, b and n
  }

 private:
  BitpackStage<T>& stage_;
};

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  const CudaInput& in = call.inputs[0];
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", stage_.getName(), in.size.n_bytes,
             sizeof(T));
  const PackArgs args = argsOf(call, stage_.auto_detect_ ? 0 : stage_.n_bits_);
  if (stage_.auto_detect_) {
    launchOr<T>(args, call);
  }
  launchPack<T>(args, call);
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  const CudaInput& in = call.inputs[0];
  const CudaOutput& out = call.outputs[0];
  if (in.size.isExact()) {
    const std::uint64_t n_values = stage_.valuesIn(in.size.n_bytes);
    FZ_REQUIRE(out.capacity_bytes / sizeof(T) >= n_values, ErrorCode::kBufferTooSmall,
               "{}: output needs room for {} values, has {} bytes", stage_.getName(), n_values,
               out.capacity_bytes);
  }
  const PackArgs args = argsOf(call, stage_.stream_.has_count ? 0 : stage_.stream_.n_bits);
  // Bits and count are read on the device, so that a graph can be replayed with other ones.
  const std::uint64_t most_values = packedValues(in.size.n_bytes, 1);
  launchUnpack<T>(args, std::min<std::size_t>(most_values, out.capacity_bytes / sizeof(T)), call);
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  stage_.stream_ = {static_cast<std::uint32_t>(record.value[kBitsSlot]), record.value[kCountSlot],
                    true};
  stage_.has_run_ = true;
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  const std::uint64_t n_bits = record.value[kBitsSlot];
  const std::uint64_t n_values = record.value[kCountSlot];
  FZ_REQUIRE(!stage_.isInverse(), ErrorCode::kCorrupt,
             "{}: {} values of {} bits do not make {} bytes", stage_.getName(), n_values, n_bits,
             record.error_value);
  FZ_REQUIRE(record.error_value == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", stage_.getName(),
             record.error_value, sizeof(T));
  const std::uint64_t slot = record.error_index >> 32;
  FZ_REQUIRE(slot < kWideSlots, ErrorCode::kBoundViolation,
             "{}: the value at index {} does not fit into {} bits", stage_.getName(),
             record.error_index, n_bits);
  FZ_REQUIRE(false, ErrorCode::kBoundViolation,
             "{}: value {} at index {} does not fit into {} bits", stage_.getName(),
             wideValue(record.value[kWideSlot + slot]), record.error_index, n_bits);
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, BitpackStage<std::uint8_t>, BitpackStage<std::uint16_t>,
                       BitpackStage<std::uint32_t>>;
}

}  // namespace fz::bitpack
