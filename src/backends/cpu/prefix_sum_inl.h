// Running sums in vector registers, for files compiled once per vector target.
#if defined(FZ_PREFIX_SUM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_PREFIX_SUM_INL
#undef FZ_PREFIX_SUM_INL
#else
#define FZ_PREFIX_SUM_INL
#endif

#include <cstddef>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fz::HWY_NAMESPACE {  // NOLINT

/// Inclusive running sum modulo 2^W, one vector at a time. Vectors of 128 bits on every target:
/// sums across the halves of wider ones cost more than they save here, where memory is the limit.
/// (The baseline of old compilers has no vectors; one value is one vector there.)
template <class U>
class RunningSum {
 public:
#if HWY_TARGET == HWY_SCALAR
  using D = hwy::HWY_NAMESPACE::ScalableTag<U>;
  static constexpr std::size_t kLanes = 1;
#else
  using D = hwy::HWY_NAMESPACE::Full128<U>;
  static constexpr std::size_t kLanes = 16 / sizeof(U);
#endif
  using V = hwy::HWY_NAMESPACE::Vec<D>;

  explicit HWY_INLINE RunningSum(U before) : carry_(hwy::HWY_NAMESPACE::Set(D(), before)) {
  }

  /// Running sums of `v`, continuing where the last call ended.
  HWY_INLINE V add(V v) {
    namespace hn = hwy::HWY_NAMESPACE;
    v = withinVector(v);
    const V sums = hn::Add(v, carry_);
    carry_ = hn::Add(carry_, last(v));  // not from `sums`: keeps the chain at one addition
    return sums;
  }

  /// The last value of the last call, or the start value.
  HWY_INLINE U carry() const {
    return hwy::HWY_NAMESPACE::GetLane(carry_);
  }

 private:
#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE V withinVector(V v) {
    return v;
  }
  static HWY_INLINE V last(V v) {
    return v;
  }
#else
  static HWY_INLINE V withinVector(V v) {
    namespace hn = hwy::HWY_NAMESPACE;
    const D d;
    v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
    if constexpr (kLanes > 2) {
      v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
    }
    if constexpr (kLanes > 4) {
      v = hn::Add(v, hn::ShiftLeftLanes<4>(d, v));
    }
    if constexpr (kLanes > 8) {
      v = hn::Add(v, hn::ShiftLeftLanes<8>(d, v));
    }
    return v;
  }
  static HWY_INLINE V last(V v) {
    namespace hn = hwy::HWY_NAMESPACE;
    if constexpr (sizeof(U) == 1) {
      return hn::TableLookupBytes(v, hn::Set(D(), U{15}));
    } else {
      return hn::Broadcast<kLanes - 1>(v);
    }
  }
#endif

  V carry_;
};

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
