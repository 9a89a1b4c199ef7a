#include "quantizers/quantizer/cpu/tile.h"

#include <type_traits>

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantizers/quantizer/cpu/tile.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::quantizer::HWY_NAMESPACE {  // NOLINT

/// Values that are tried together.
constexpr std::size_t kRunValues = 256;

/// First try for n values; returns whether any was refused.
template <class T, class C, bool kZigzag>
HWY_INLINE bool firstTry(const T* HWY_RESTRICT in,
                         std::size_t n,
                         const BinRule<T> rule,
                         C* HWY_RESTRICT codes,
                         std::uint8_t* HWY_RESTRICT refused) {
  std::int32_t any = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t bin = 0;
    const bool ok = tryBin(in[i], rule, bin);
    codes[i] = codeOf<C>(bin, kZigzag);
    refused[i] = static_cast<std::uint8_t>(!ok);
    any |= static_cast<std::int32_t>(!ok);
  }
  return any != 0;
}

/// Second try, in f64, for the values that are still refused.
template <class C, bool kZigzag>
HWY_NOINLINE void secondTry(const float* HWY_RESTRICT in,
                            std::size_t n,
                            const BinRule<float> rule,
                            C* HWY_RESTRICT codes,
                            std::uint8_t* HWY_RESTRICT refused) {
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t bin = 0;
    const bool ok = tryBinWide(in[i], rule, bin);
    const C code = codeOf<C>(bin, kZigzag);
    codes[i] = refused[i] != 0 ? code : codes[i];
    refused[i] = static_cast<std::uint8_t>(refused[i] & static_cast<std::uint8_t>(!ok));
  }
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// A value that is looked for; the sign of a zero does not count.
template <class T>
struct Sought {
  explicit Sought(double value)
      : bits(value == 0.0 ? 0 : fp::bits(static_cast<T>(value))),
        counting(value == 0.0 ? static_cast<BitsOf<T>>(~BitsOf<T>{0} >> 1) : ~BitsOf<T>{0}) {}
  BitsOf<T> bits;
  BitsOf<T> counting;
};

/// Codes of n values, all of which have one and none of which is looked for; false when some have
/// not or are, the codes are then of no use. Most data are done with this: nothing is kept per
/// value but the code. The smallest difference from what is looked for takes no mask register, for
/// which the checks of the codes wait already.
template <class T, class C, bool kZigzag, FastCheck kCheck, bool kLooks>
HWY_INLINE bool encodeAll(const T* HWY_RESTRICT in,
                          std::size_t n,
                          const BinRule<T> rule,
                          const Sought<T> sought,
                          C* HWY_RESTRICT codes) {
  BitsOf<T> n_refused = 0;
  BitsOf<T> least = ~BitsOf<T>{0};
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t bin = 0;
    const bool ok = fastBin<kCheck>(in[i], rule, bin);
    codes[i] = codeOf<C>(bin, kZigzag);
    n_refused += ok ? 0u : 1u;
    if constexpr (kLooks) {
      const BitsOf<T> unlike = (fp::bits(in[i]) ^ sought.bits) & sought.counting;
      least = unlike < least ? unlike : least;
    }
  }
  return n_refused == 0 && least != 0;
}

template <class T, class C, bool kZigzag>
HWY_INLINE std::uint64_t encodeBlock(const T* HWY_RESTRICT in,
                                     std::size_t n,
                                     const BinRule<T>& rule,
                                     C* HWY_RESTRICT codes) {
  alignas(64) std::uint8_t refused[kMaskValues] = {};
  if (!firstTry<T, C, kZigzag>(in, n, rule, codes, refused)) {
    return 0;
  }
  if constexpr (sizeof(T) == 4) {
    secondTry<C, kZigzag>(in, n, rule, codes, refused);
  }
  return packFlags(refused);
}

/// A rule for fast tries that also refuses values as far from 0 as `sought`: nearly all fill values
/// are further away than any valid one, and then looking for them takes no time at all.
template <FastCheck kCheck, class T>
BinRule<T> nearerThan(T sought, const BinRule<T>& rule) {
  BinRule<T> nearer = rule;
  const T scaled = fp::abs(fp::mul(sought, rule.inv_step));
  if constexpr (kCheck == FastCheck::kRange) {
    const T inside = fp::sub(scaled, T{1});  // a bin is that of a number at most a half away
    nearer.lower = -inside > rule.lower ? -inside : rule.lower;
    nearer.upper = inside < rule.upper ? inside : rule.upper;
  } else {
    nearer.reach = scaled < rule.reach ? scaled : rule.reach;
  }
  return nearer;
}

template <class T, class C, bool kZigzag, FastCheck kCheck>
EncodedTile encodeLoop(const BinRule<T>& rule, const EncodeTileArgs& args) {
  BinRule<T> fast_rule = rule;
  if constexpr (kCheck == FastCheck::kLimit) {
    fast_rule.reach = fastLimit(rule);
  }
  const Sought<T> sought(args.sought.value_or(0.0));
  const BinRule<T> first_rule =
      args.sought ? nearerThan<kCheck>(static_cast<T>(*args.sought), fast_rule) : fast_rule;
  const T* in = static_cast<const T*>(args.in);
  C* codes = static_cast<C*>(args.codes);
  std::uint64_t* masks = args.masks;
  EncodedTile found = {0, false, args.compares};
  const auto encodeRun = [&](std::size_t at) HWY_ATTR {
    if (!found.compares && encodeAll<T, C, kZigzag, kCheck, false>(in + at, kRunValues, first_rule,
                                                                   sought, codes + at)) {
      return true;
    }
    if (!args.sought || !encodeAll<T, C, kZigzag, kCheck, true>(in + at, kRunValues, fast_rule,
                                                                sought, codes + at)) {
      return false;
    }
    found.compares = true;
    return true;
  };
  const auto encodeSome = [&](std::size_t at, std::size_t n) HWY_ATTR {
    const std::uint64_t mask = encodeBlock<T, C, kZigzag>(in + at, n, rule, codes + at);
    *masks++ = mask;
    found.n_refused += static_cast<std::size_t>(__builtin_popcountll(mask));
    found.may_have_sought = true;
  };
  std::size_t at = 0;
  while (at + kMaskValues <= args.n_values) {
    if (at % kRunValues == 0 && at + kRunValues <= args.n_values && encodeRun(at)) {
      for (std::size_t i = 0; i < kRunValues / kMaskValues; ++i) {
        *masks++ = 0;
      }
      at += kRunValues;
      continue;
    }
    encodeSome(at, kMaskValues);
    at += kMaskValues;
  }
  if (at < args.n_values) {
    encodeSome(at, args.n_values - at);
  }
  return found;
}

template <class T, class C>
EncodedTile encodeForm(const BinRule<T>& rule, CodeForm form, const EncodeTileArgs& args) {
  if (form == CodeForm::kLinear) {
    constexpr bool kIsWide = sizeof(T) == 4 && sizeof(C) == 4;
    constexpr FastCheck kCheck = kIsWide ? FastCheck::kReach : FastCheck::kRange;
    return encodeLoop<T, C, false, kCheck>(rule, args);
  }
  const bool zigzag = form == CodeForm::kZigzag || form == CodeForm::kInplace;
  return zigzag ? encodeLoop<T, C, true, FastCheck::kLimit>(rule, args)
                : encodeLoop<T, C, false, FastCheck::kLimit>(rule, args);
}

EncodedTile encodeAbs(Widths widths, const BinRules& rules, const EncodeTileArgs& args) {
  if (widths.value_bytes == 4) {
    return widths.code_bytes == 2
               ? encodeForm<float, std::uint16_t>(rules.of_float, rules.form, args)
               : encodeForm<float, std::uint32_t>(rules.of_float, rules.form, args);
  }
  return widths.code_bytes == 2
             ? encodeForm<double, std::uint16_t>(rules.of_double, rules.form, args)
             : encodeForm<double, std::uint32_t>(rules.of_double, rules.form, args);
}

template <class T, class C, bool kZigzag>
void decodeLoop(const DecodeTileArgs& args, const T step) {
  const C* HWY_RESTRICT codes = static_cast<const C*>(args.codes);
  T* HWY_RESTRICT out = static_cast<T*>(args.out);
  for (std::size_t i = 0; i < args.n_values; ++i) {
    out[i] = decodeBin<T>(binOf(codes[i], kZigzag), step);
  }
}

void decodeInplaceLoop(const DecodeTileArgs& args, const float step, const std::uint32_t radius) {
  const auto* HWY_RESTRICT codes = static_cast<const std::uint32_t*>(args.codes);
  auto* HWY_RESTRICT out = static_cast<std::uint32_t*>(args.out);  // bits: a NaN keeps its payload
  for (std::size_t i = 0; i < args.n_values; ++i) {
    const std::uint32_t value = fp::bits(decodeBin<float>(binOf(codes[i], true), step));
    out[i] = isRawBits(codes[i], radius) ? codes[i] : value;
  }
}

template <class T, class C>
void decodeForm(const AbsDecodeSettings& settings, const DecodeTileArgs& args) {
  const T step = fp::mul(T{2}, static_cast<T>(settings.bound_in_use));
  if (settings.form == CodeForm::kInplace) {
    if constexpr (sizeof(T) == 4 && sizeof(C) == 4) {
      decodeInplaceLoop(args, step, settings.radius);
    }
  } else if (settings.form == CodeForm::kZigzag) {
    decodeLoop<T, C, true>(args, step);
  } else {
    decodeLoop<T, C, false>(args, step);
  }
}

void decodeAbs(Widths widths, const AbsDecodeSettings& settings, const DecodeTileArgs& args) {
  if (widths.value_bytes == 4) {
    return widths.code_bytes == 2 ? decodeForm<float, std::uint16_t>(settings, args)
                                  : decodeForm<float, std::uint32_t>(settings, args);
  }
  return widths.code_bytes == 2 ? decodeForm<double, std::uint16_t>(settings, args)
                                : decodeForm<double, std::uint32_t>(settings, args);
}

}  // namespace fz::quantizer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::quantizer {

HWY_EXPORT(encodeAbs);
HWY_EXPORT(decodeAbs);

EncodedTile encodeAbsTile(Widths widths, const BinRules& rules, const EncodeTileArgs& args) {
  return HWY_DYNAMIC_DISPATCH(encodeAbs)(widths, rules, args);
}
void decodeAbsTile(Widths widths, const AbsDecodeSettings& settings, const DecodeTileArgs& args) {
  HWY_DYNAMIC_DISPATCH(decodeAbs)(widths, settings, args);
}

}  // namespace fz::quantizer
#endif
