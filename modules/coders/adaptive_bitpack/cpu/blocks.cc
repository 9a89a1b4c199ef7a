#include "coders/adaptive_bitpack/cpu/blocks.h"

#include <algorithm>
#include <cstring>

// Compiled once per vector target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/adaptive_bitpack/cpu/blocks.cc"  // NOLINT
// Bytes from anywhere in two vectors, and bits by matrices.
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_WANT_AVX3_DL 1
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "coders/adaptive_bitpack/cpu/simd.h"
#include "coders/adaptive_bitpack/cpu/simd_blocks.h"
#include "coders/adaptive_bitpack/cpu/simd_fast.h"
#include "coders/adaptive_bitpack/cpu/simd_measure.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::adaptive_bitpack::HWY_NAMESPACE {  // NOLINT

template <class T>
std::size_t encodeRun(
    const T* values, std::size_t n, BlockLayout layout, std::uint8_t* meta, std::uint8_t* payload) {
  const std::size_t block_values = layout.block_values;
  const std::size_t meta_bytes = layout.metaBytes();
  const std::size_t n_whole = n / block_values;
  std::uint8_t* out = payload;
  std::size_t b = 0;
#if HWY_TARGET <= HWY_AVX3_DL
  if (galois::fits(layout)) {
    out = galois::encode(values, n_whole, layout, meta, out);
    b = n_whole;
  }
#endif
  for (; b < n_whole; ++b) {
    const BlockValues<T> block{values + b * block_values, n - b * block_values};
    out = block_values == 32 ? encode32(block, layout, meta + b * meta_bytes, out)
                             : encodeAny(block, layout, meta + b * meta_bytes, out);
  }
  const std::size_t n_left = n - n_whole * block_values;
  if (n_left != 0) {
    alignas(64) T filled[kMaxBlockValues] = {};
    std::memcpy(filled, values + n_whole * block_values, n_left * sizeof(T));
    out = encodeAny(BlockValues<T>{filled, kMaxBlockValues}, layout, meta + n_whole * meta_bytes,
                    out);
  }
  return static_cast<std::size_t>(out - payload);
}

/// Decodes n values of a block that ends where the stream may end; `in` is exactly the block.
template <class T>
HWY_NOINLINE void decodeCarefully(
    ByteView in, BlockForm form, BlockLayout layout, std::size_t n, T* values) {
  constexpr std::size_t kMaxBytes = 4 + (kMaxBlockValues / 8) * (1 + kValueBits<T>);
  std::uint8_t copy[kMaxBytes + kDecodeSlackBytes] = {};
  std::copy(in.begin(), in.end(), copy);
  alignas(64) T block[kMaxBlockValues];
  decodeAny(copy, form, layout, block, kMaxBlockValues);
  std::memcpy(values, block, n * sizeof(T));
}

template <class T>
void decodeRun(
    const std::uint8_t* meta, ByteView payload, std::size_t n, BlockLayout layout, T* values) {
  const std::size_t block_values = layout.block_values;
  const std::uint32_t row_bytes = layout.planeBytes();
  std::size_t position = 0;
  std::size_t n_done = 0;
#if HWY_TARGET <= HWY_AVX3_DL
  if (galois::fits(layout)) {
    n_done = galois::decode(meta, payload, n / block_values, layout, values, &position);
  }
#endif
  meta += n_done * layout.metaBytes();
  for (std::size_t begin = n_done * block_values; begin < n;
       begin += block_values, meta += layout.metaBytes()) {
    const BlockForm form = getForm(meta, layout);
    const std::size_t cost = blockCost(form, row_bytes);
    const std::size_t n_here = std::min(block_values, n - begin);
    if (cost == 0) {
      std::memset(values + begin, 0, n_here * sizeof(T));
    } else if (n_here < block_values || payload.size() - position < cost + kDecodeSlackBytes) {
      decodeCarefully(payload.subspan(position, cost), form, layout, n_here, values + begin);
    } else if (block_values == 32) {
      decode32(payload.data() + position, form, values + begin);
    } else if (block_values != 64 || !decode64(payload.data() + position, form, values + begin)) {
      decodeAny(payload.data() + position, form, layout, values + begin, n - begin);
    }
    position += cost;
  }
}

template <class T>
Kernels<T> kernels() {
  return {&encodeRun<T>, &decodeRun<T>, &measureRun<T>};
}
Kernels<std::int16_t> kernelsInt16() {
  return kernels<std::int16_t>();
}
Kernels<std::int32_t> kernelsInt32() {
  return kernels<std::int32_t>();
}

}  // namespace fz::adaptive_bitpack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::adaptive_bitpack {

HWY_EXPORT(kernelsInt16);
HWY_EXPORT(kernelsInt32);

template <>
Kernels<std::int16_t> kernelsFor<std::int16_t>() {
  return HWY_DYNAMIC_DISPATCH(kernelsInt16)();
}
template <>
Kernels<std::int32_t> kernelsFor<std::int32_t>() {
  return HWY_DYNAMIC_DISPATCH(kernelsInt32)();
}

}  // namespace fz::adaptive_bitpack
#endif
