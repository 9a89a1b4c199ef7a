#pragma once

// From codes to values; what a decoder must know of the config. Device code only.

#include <cstdint>

#include "quantizers/quantizer/codec_rel_fast.h"
#include "quantizers/quantizer/cuda/op/tile.cuh"

namespace fz::quantizer::device {

/// What the config says, checked against the streams.
struct Head {
  std::uint64_t n_values;
  std::uint64_t n_outliers;
  double bound;
  Failure failure;
  bool ok;
};

__device__ __forceinline__ Head readHead(const DecodeJob& job) {
  const std::uint64_t* slots = job.record->value;
  Head head{};
  head.n_values = slots[kSlotValues] & 0xffffffffull;
  head.n_outliers = slots[kSlotOutliers] & 0xffffffffull;
  head.bound = storedBound(slots);
  bool sizes_match = cuda::load(job.codes.size) == head.n_values * job.code_bytes;
  if (job.has_lists) {
    const std::uint64_t value_bytes = cuda::load(job.outlier_values.size);
    const std::uint64_t index_bytes = cuda::load(job.outlier_indices.size);
    const std::uint64_t k = head.n_outliers;
    sizes_match &= job.exact_lists ? value_bytes == k * job.value_bytes && index_bytes == k * 4
                                   : value_bytes / job.value_bytes >= k && index_bytes / 4 >= k;
  }
  const bool is_rel = job.form == DecodeForm::kRel || job.form == DecodeForm::kRelV1;
  const bool bound_ok = is_rel || (fp::isFinite(head.bound) && head.bound >= 0.0);
  head.failure = sizes_match ? Failure::kBound : Failure::kStreamSizes;
  head.ok = sizes_match && bound_ok;
  return head;
}

template <class T>
__device__ __forceinline__ bool fitsOutput(const DecodeJob& job, const Head& head) {
  return head.n_values * sizeof(T) <= job.output.capacity_bytes;
}

template <class T, class C, DecodeForm kForm>
struct Decoder {
  T step;
  double log_step;
  float log_step_v1;
  std::uint32_t radius;

  using U = BitsOf<T>;

  __device__ __forceinline__ U operator()(C code) const {
    if constexpr (kForm == DecodeForm::kRel) {
      return fp::bits(relValue<T>(code, log_step));
    } else if constexpr (kForm == DecodeForm::kRelV1) {
      return fp::bits(relValueV1<T>(code, log_step_v1));
    } else {
      constexpr bool kZigzag = kForm != DecodeForm::kTwosComplement;
      const BitsOf<T> value = fp::bits(decodeBin<T>(binOf(code, kZigzag), step));
      if constexpr (kForm == DecodeForm::kInplace) {
        return isRawBits(code, radius) ? code : value;
      } else {
        return value;
      }
    }
  }

  /// Some neighbouring values; roots(i) gives relRoot(i).
  template <unsigned kCount, class Roots>
  __device__ __forceinline__ void piece(const C (&codes)[kCount],
                                        const Roots& roots,
                                        U (&values)[kCount]) const {
    if constexpr (kForm == DecodeForm::kRel && sizeof(T) == 4) {
      unsigned open = 0;
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) {
        bool unsure = false;
        const float size = relFastMagnitude(relBin(codes[e]), log_step, roots, unsure);
        values[e] = fp::bits(relSigned(codes[e], size));
        open |= (unsure && codes[e] != 0 ? 1u : 0u) << e;
      }
      // One copy of the long way; selects instead of an index keep the piece in registers.
#pragma unroll 1
      for (; open != 0; open &= open - 1) {
        const auto at = static_cast<unsigned>(__ffs(static_cast<int>(open))) - 1;
        C code = codes[0];
#pragma unroll
        for (unsigned e = 1; e < kCount; ++e) {
          code = e == at ? codes[e] : code;
        }
        const U value = (*this)(code);
#pragma unroll
        for (unsigned e = 0; e < kCount; ++e) {
          values[e] = e == at ? value : values[e];
        }
      }
    } else {
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) {
        values[e] = (*this)(codes[e]);
      }
    }
  }
};

}  // namespace fz::quantizer::device
