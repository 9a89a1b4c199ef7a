#include <type_traits>

#include "quantizers/quantizer/codec_rel_fast.h"
#include "quantizers/quantizer/cpu/tile.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantizers/quantizer/cpu/rel.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::quantizer::HWY_NAMESPACE {  // NOLINT

/// Codes of n values by a shortcut. False if it could not tell for some of them.
template <class T, class C, class Fast>
HWY_INLINE bool fastCodes(const T* HWY_RESTRICT in,
                          std::size_t n,
                          const Fast& fast,
                          C* HWY_RESTRICT codes) {
  typename Fast::Flag unsure = 0;
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = relFastCode<C>(in[i], fast, unsure);
  }
  return unsure == 0;
}

template <class T, class C>
HWY_NOINLINE void exactCodes(const T* HWY_RESTRICT in,
                             std::size_t n,
                             const RelRule& rule,
                             C* HWY_RESTRICT codes) {
  for (std::size_t i = 0; i < n; ++i) {
    codes[i] = relCode<T, C>(in[i], rule);
  }
}

template <class C>
HWY_INLINE std::uint64_t maskOfZeros(const C* HWY_RESTRICT codes, std::size_t n) {
  alignas(64) std::uint8_t refused[kMaskValues] = {};
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < n; ++i) {
    any |= static_cast<std::uint32_t>(codes[i] == 0);
  }
  if (any == 0) {
    return 0;
  }
  for (std::size_t i = 0; i < n; ++i) {
    refused[i] = static_cast<std::uint8_t>(codes[i] == 0);
  }
  return packFlags(refused);
}

/// Fast is a shortcut's rule, or nullptr_t for none.
template <class T, class C, class Fast>
HWY_INLINE std::uint64_t encodeRelBlock(
    const T* in, std::size_t n, const RelRule& rule, const Fast& fast, C* codes) {
  bool settled = false;
  if constexpr (!std::is_null_pointer_v<Fast>) {
    settled = fastCodes<T, C>(in, n, fast, codes);
  }
  if (!settled) {
    exactCodes<T, C>(in, n, rule, codes);
  }
  return maskOfZeros(codes, n);
}

template <class T, class C, class Fast>
std::size_t encodeRelLoop(const RelRule& rule, const Fast fast, const EncodeTileArgs& args) {
  const T* in = static_cast<const T*>(args.in);
  C* codes = static_cast<C*>(args.codes);
  std::size_t n_refused = 0;
  std::uint64_t* masks = args.masks;
  std::size_t at = 0;
  for (; at + kMaskValues <= args.n_values; at += kMaskValues) {
    const std::uint64_t mask = encodeRelBlock<T, C>(in + at, kMaskValues, rule, fast, codes + at);
    *masks++ = mask;
    n_refused += static_cast<std::size_t>(__builtin_popcountll(mask));
  }
  if (at < args.n_values) {
    const std::uint64_t mask =
        encodeRelBlock<T, C>(in + at, args.n_values - at, rule, fast, codes + at);
    *masks = mask;
    n_refused += static_cast<std::size_t>(__builtin_popcountll(mask));
  }
  return n_refused;
}

template <class T, class C>
std::size_t encodeRelTypes(const RelSettings& settings, const EncodeTileArgs& args) {
  const RelRule rule = makeRelRule<T>(settings);
  const RelShortcut shortcut = relShortcut<T>(settings.bound);
  if constexpr (std::is_same_v<T, float>) {
    if (shortcut == RelShortcut::kFloat) {
      return encodeRelLoop<T, C>(rule, makeRelFloatRule(rule), args);
    }
  }
  return shortcut == RelShortcut::kDouble ? encodeRelLoop<T, C>(rule, makeRelDoubleRule(rule), args)
                                          : encodeRelLoop<T, C>(rule, nullptr, args);
}

std::size_t encodeRel(Widths widths, const RelSettings& settings, const EncodeTileArgs& args) {
  if (widths.value_bytes == 4) {
    return widths.code_bytes == 2 ? encodeRelTypes<float, std::uint16_t>(settings, args)
                                  : encodeRelTypes<float, std::uint32_t>(settings, args);
  }
  return widths.code_bytes == 2 ? encodeRelTypes<double, std::uint16_t>(settings, args)
                                : encodeRelTypes<double, std::uint32_t>(settings, args);
}

template <class T, class C>
void decodeRelLoop(const RelDecodeSettings& settings, const DecodeTileArgs& args) {
  const C* HWY_RESTRICT codes = static_cast<const C*>(args.codes);
  T* HWY_RESTRICT out = static_cast<T*>(args.out);
  if (settings.version < 2) {
    const float log_step = settings.log_step_v1;
    for (std::size_t i = 0; i < args.n_values; ++i) {
      out[i] = relValueV1<T>(codes[i], log_step);
    }
    return;
  }
  const double log_step = relLogStep<T>(settings.bound);
  for (std::size_t i = 0; i < args.n_values; ++i) {
    out[i] = relValue<T>(codes[i], log_step);
  }
}

void decodeRel(Widths widths, const RelDecodeSettings& settings, const DecodeTileArgs& args) {
  if (widths.value_bytes == 4) {
    return widths.code_bytes == 2 ? decodeRelLoop<float, std::uint16_t>(settings, args)
                                  : decodeRelLoop<float, std::uint32_t>(settings, args);
  }
  return widths.code_bytes == 2 ? decodeRelLoop<double, std::uint16_t>(settings, args)
                                : decodeRelLoop<double, std::uint32_t>(settings, args);
}

}  // namespace fz::quantizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::quantizer {

HWY_EXPORT(encodeRel);
HWY_EXPORT(decodeRel);

std::size_t encodeRelTile(Widths widths, const RelSettings& settings, const EncodeTileArgs& args) {
  return HWY_DYNAMIC_DISPATCH(encodeRel)(widths, settings, args);
}
void decodeRelTile(Widths widths, const RelDecodeSettings& settings, const DecodeTileArgs& args) {
  HWY_DYNAMIC_DISPATCH(decodeRel)(widths, settings, args);
}

}  // namespace fz::quantizer
#endif
