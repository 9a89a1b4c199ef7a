#include "coders/bitpack/bitpack_cuda.h"

#include <algorithm>

#include "coders/bitpack/bitpack_codec.h"
#include "coders/bitpack/bitpack_stage.h"
#include "core/require.h"

namespace fz {

template <class T>
std::vector<DeviceField> BitpackStage<T>::deviceFields() const {
  return {{1, 1, bitpack::kBitsSlot}, {2, 8, bitpack::kCountSlot}};  // SPEC: config, b and n
}

template <class T>
void BitpackStage<T>::encodeCuda(const CudaRun& run) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of {}-byte values", getName(),
             in.size.n_bytes, sizeof(T));
  const bitpack::CudaPack args{.in = in.data,
                               .in_size = in.size,
                               .out = out.data,
                               .capacity_bytes = out.capacity_bytes,
                               .size_known = out.size_known,
                               .record = run.record,
                               .n_bits = auto_detect_ ? 0 : n_bits_};
  if (auto_detect_) {
    bitpack::launchOr<T>(args, run.stream);
  }
  bitpack::launchPack<T>(args, run.stream);
}

template <class T>
void BitpackStage<T>::decodeCuda(const CudaRun& run) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  if (in.size.isExact()) {
    const std::uint64_t n_values = valuesIn(in.size.n_bytes);
    FZ_REQUIRE(out.capacity_bytes / sizeof(T) >= n_values, ErrorCode::kBufferTooSmall,
               "{}: room for {} values needed, {} bytes came", getName(), n_values,
               out.capacity_bytes);
  }
  const bitpack::CudaUnpack args{.in = in.data,
                                 .in_size = in.size,
                                 .out = out.data,
                                 .capacity_bytes = out.capacity_bytes,
                                 .size_known = out.size_known,
                                 .record = run.record,
                                 .n_bits = stream_.has_count ? 0 : stream_.n_bits};
  // Bits and count are read on the device, so that a graph can be replayed with other ones.
  const std::uint64_t most_values = bitpack::packedValues(in.size.n_bytes, 1);
  bitpack::launchUnpack<T>(args, std::min<std::size_t>(most_values, out.capacity_bytes / sizeof(T)),
                           run.stream);
}

template <class T>
void BitpackStage<T>::finishEncodeCuda(const StageRecord& record) {
  stream_ = {static_cast<std::uint32_t>(record.value[bitpack::kBitsSlot]),
             record.value[bitpack::kCountSlot], true};
  has_run_ = true;
}

template <class T>
void BitpackStage<T>::throwDeviceError(const StageRecord& record) const {
  const std::uint64_t n_bits = record.value[bitpack::kBitsSlot];
  const std::uint64_t n_values = record.value[bitpack::kCountSlot];
  FZ_REQUIRE(!isInverse(), ErrorCode::kCorrupt, "{}: {} values of {} bits do not make {} bytes",
             getName(), n_values, n_bits, record.error_value);
  FZ_REQUIRE(record.error_value == 0, ErrorCode::kBadSize,
             "{}: input of {} bytes is no whole number of {}-byte values", getName(),
             record.error_value, sizeof(T));
  const std::uint64_t slot = record.error_index >> 32;
  FZ_REQUIRE(slot < bitpack::kWideSlots, ErrorCode::kBoundViolation,
             "{}: the value at index {} does not fit into {} bits", getName(), record.error_index,
             n_bits);
  FZ_REQUIRE(false, ErrorCode::kBoundViolation,
             "{}: value {} at index {} does not fit into {} bits", getName(),
             bitpack::wideValue(record.value[bitpack::kWideSlot + slot]), record.error_index,
             n_bits);
}

// The rest of the class is instantiated in bitpack_stage.cc.
#define FZ_INSTANTIATE(T)                                                  \
  template std::vector<DeviceField> BitpackStage<T>::deviceFields() const; \
  template void BitpackStage<T>::encodeCuda(const CudaRun&);               \
  template void BitpackStage<T>::decodeCuda(const CudaRun&);               \
  template void BitpackStage<T>::finishEncodeCuda(const StageRecord&);     \
  template void BitpackStage<T>::throwDeviceError(const StageRecord&) const
FZ_INSTANTIATE(std::uint8_t);
FZ_INSTANTIATE(std::uint16_t);
FZ_INSTANTIATE(std::uint32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
