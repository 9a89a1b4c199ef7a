#pragma once

// Bins with fewer operations than quantize() takes, for the values where the result is known to be
// the same.

#include "fused/lorenzo_quant/codec.h"

namespace fz::lorenzo_quant {

/// Bins of a few values that lie inside their cells, as nearly all do. The values are judged
/// together, with as few comparisons as can be: where all() is true, every bin is usable and the
/// one that quantize() gives; where it is not, ask quantize().
template <class T>
class FastBins {
 public:
  using Word = typename Number<T>::Word;
  // Adding 1.5 * 2^(p-1) rounds to an integer of either sign, up to half of the shift's own unit
  // range, and leaves it in the low bits.
  static constexpr T kShift = T(1.5) * Number<T>::kUnitShift;
  /// What add() returns for bin 0: differences of bins are those of what it returns.
  static constexpr Word kBias =
      sizeof(T) == 4 ? static_cast<Word>(0x4B400000u) : static_cast<Word>(0x4338000000000000u);

  /// The bin of x, plus kBias.
  FZ_HD Word add(T x, const Step<T>& s) {
    const T scaled = fp::mul(x, s.inv_step);
    const T shifted = fp::add(scaled, kShift);
    const T even = fp::sub(shifted, kShift);
    const T diff = fp::sub(x, fp::mul(even, s.step));
    // No half, so both round alike; below the bound after rounding, so below it before.
    is_good_ = is_good_ & (fp::abs(fp::sub(scaled, even)) < T(0.5)) & (fp::abs(diff) < s.bound);
    reach_ = fp::add(reach_, fp::abs(scaled));
    return fp::bits(shifted);
  }
  /// Scaled magnitudes must be below.
  FZ_HD static constexpr T limitFor(int ndim) {
    const int bits = Number<T>::kExactBits - (ndim > 2 ? ndim : 2);
    return static_cast<T>((std::int64_t{1} << bits) - 1);
  }
  template <int kDim>
  FZ_HD bool all() const {
    constexpr T kLimit = limitFor(kDim);
    return is_good_ & (reach_ < kLimit);
  }

 private:
  bool is_good_ = true;
  T reach_ = 0;  ///< sum of the scaled magnitudes, so no smaller than any of them; or no number
};

/// The same with fewer operations again, for values that are not too near the edge of their cell
/// either. A bin is the integer nearest to p = x * inv_step, which is not rounded, r is what is
/// left of p, and R is no smaller than any bin's magnitude. With inv_step * step = 1 + d and h half
/// a unit in the last place of 1 (2^-24 for float):
///
/// * quantize() rounds p first. Halves are numbers of T, so its result is another one only where p
///   becomes a half, which is less than h * (R + 1) away.
/// * x is p * step / (1 + d), and the product of bin and step is off by at most h * R * step: the
///   distance of the two is at most step * (|r| + (R + 1) * (|d| + h)), to be within half a step.
///
/// So it is enough that |r| < 1/2 - (R + 1) * (|d| + h), up to the rounding of this comparison,
/// which is why Step::slack is slightly more than |d| + h and the half slightly less. What is not a
/// number fails every comparison.
template <class T>
class NearBins;

template <>
class NearBins<float> {
 public:
  /// The bin of x, plus FastBins::kBias.
  FZ_HD std::uint32_t add(float x, const Step<float>& s) {
    constexpr float kShift = FastBins<float>::kShift;
    const float shifted = fp::mulAdd(x, s.inv_step, kShift);
    const float bin = fp::sub(shifted, kShift);
    rest_ = fp::maxOrNan(rest_, fp::abs(fp::mulAdd(x, s.inv_step, -bin)));
    reach_ = fp::maxOrNan(reach_, fp::abs(bin));
    return fp::bits(shifted);
  }
  FZ_HD bool all(const Step<float>& s) const {
    constexpr float kHalf = 0.5f - 0x1p-22f;
    constexpr float kLimit = 0x1p20f;  // far below Step::limit and what the shift can take
    const float edge = fp::mulAdd(-s.slack, fp::add(reach_, 1.0f), kHalf);
    return (rest_ < edge) & (reach_ < kLimit);
  }
  /// No smaller than the magnitude of any bin, where all() is true.
  FZ_HD float reach() const { return reach_; }

 private:
  float rest_ = 0;
  float reach_ = 0;
};

/// There is no fast maximum of doubles, but so much room in them that all may have one limit.
template <>
class NearBins<double> {
 public:
  FZ_HD std::uint64_t add(double x, const Step<double>& s) {
    constexpr double kShift = FastBins<double>::kShift;
    constexpr double kEdge = 0.5 - 0x1p-18;
    const double shifted = fp::mulAdd(x, s.inv_step, kShift);
    const double bin = fp::sub(shifted, kShift);
    is_near_ = is_near_ & (fp::abs(fp::mulAdd(x, s.inv_step, -bin)) < kEdge);
    reach_ = fp::add(reach_, fp::abs(bin));
    return fp::bits(shifted);
  }
  FZ_HD bool all(const Step<double>& s) const {
    // slack is more than 2^-53, so this limits the bins as well.
    return is_near_ & (fp::mul(reach_, s.slack) < 0x1p-20);
  }
  FZ_HD double reach() const { return reach_; }

 private:
  bool is_near_ = true;
  double reach_ = 1;  ///< a sum
};

}  // namespace fz::lorenzo_quant
