#include "shared/bits.h"
#include "transforms/zigzag/zigzag_cuda.h"
#include "transforms/zigzag/zigzag_stage.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/zigzag/zigzag_cpu.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "backends/cpu/signed_map_inl.h"

HWY_BEFORE_NAMESPACE();
namespace fz::zigzag::HWY_NAMESPACE {  // NOLINT

void encode(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  fz::HWY_NAMESPACE::mapToUnsigned(in, n_values, value_bytes, out,
                                   [](auto value) { return bits::zigzag(value); });
}
void decode(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  fz::HWY_NAMESPACE::mapToSigned(in, n_values, value_bytes, out,
                                 [](auto code) { return bits::unzigzag(code); });
}

}  // namespace fz::zigzag::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::zigzag {

HWY_EXPORT(encode);
HWY_EXPORT(decode);

SignedMap map() {
  return {
    [](const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
      HWY_DYNAMIC_DISPATCH(encode)(in, n_values, value_bytes, out);
    },
        [](const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
          HWY_DYNAMIC_DISPATCH(decode)(in, n_values, value_bytes, out);
        },
#if FZ_HAVE_CUDA
        &enqueueEncode, &enqueueDecode, "fz::zigzag::MapOp", "transforms/zigzag/zigzag_op.cuh"
#endif
  };
}

}  // namespace fz::zigzag
#endif
