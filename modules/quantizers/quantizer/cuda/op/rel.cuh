#pragma once

// REL, encoding: a shortcut for most values, relCode for those that it cannot settle. Device code
// only.

#include <cstdint>
#include <type_traits>

#include "quantizers/quantizer/codec_rel_fast.h"

namespace fz::quantizer::device {

/// For bounds without a shortcut.
struct NoShortcut {};

/// Fast is the rule of a shortcut.
template <class T, class C, class Fast>
struct RelCoder {
  RelRule rule;
  Fast fast;

  /// Codes of neighbouring values; the bits of those that were refused.
  template <unsigned kCount>
  __device__ __forceinline__ unsigned encode(const T (&x)[kCount], C (&codes)[kCount]) const {
    unsigned open = (1u << kCount) - 1u;
    if constexpr (!std::is_same_v<Fast, NoShortcut>) {
      open = 0;
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) {
        typename Fast::Flag unsure = 0;
        codes[e] = relFastCode<C>(x[e], fast, unsure);
        open |= (unsure != 0 ? 1u : 0u) << e;
      }
    }
    // One copy of the long way; selects instead of an index keep the piece in registers.
#pragma unroll 1
    while (open != 0) {
      const auto at = static_cast<unsigned>(__ffs(static_cast<int>(open))) - 1;
      T value = x[0];
#pragma unroll
      for (unsigned e = 1; e < kCount; ++e) {
        value = e == at ? x[e] : value;
      }
      const C code = relCode<T, C>(value, rule);
#pragma unroll
      for (unsigned e = 0; e < kCount; ++e) {
        codes[e] = e == at ? code : codes[e];
      }
      open &= open - 1;
    }
    bool any_refused = false;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      any_refused |= codes[e] == 0;
    }
    if (!any_refused) {
      return 0;
    }
    unsigned refused = 0;
#pragma unroll
    for (unsigned e = 0; e < kCount; ++e) {
      refused |= (codes[e] == 0 ? 1u : 0u) << e;
    }
    return refused;
  }
};

}  // namespace fz::quantizer::device
