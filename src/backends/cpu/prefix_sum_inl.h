// Running sums in vector registers, for files compiled once per vector target.
#if defined(FZ_PREFIX_SUM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_PREFIX_SUM_INL
#undef FZ_PREFIX_SUM_INL
#else
#define FZ_PREFIX_SUM_INL
#endif
#undef FZ_HAVE_WIDE_SUMS

#include <array>
#include <cstddef>
#include <cstdint>
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

#if HWY_TARGET != HWY_SCALAR && HWY_MAX_BYTES >= 32
#define FZ_HAVE_WIDE_SUMS 1

/// Value kLane of every kGroup values in the second half of them, 0 in the first.
template <std::size_t kLane, std::size_t kGroup, class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> toSecondHalves(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  alignas(64) static constexpr auto kFrom = [] {
    std::array<std::uint32_t, kLanes> from{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      from[i] = static_cast<std::uint32_t>(i / kGroup * kGroup + kLane);
    }
    return from;
  }();
  const auto place = hn::And(hn::Iota(d, 0), hn::Set(d, std::uint32_t{kGroup / 2}));
  return hn::IfThenElseZero(hn::Ne(place, hn::Zero(d)),
                            hn::TableLookupLanes(v, hn::SetTableIndices(d, kFrom.data())));
}

/// Running sums of values of 32 bits inside each eight of them.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> sumsInEights(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
  return hn::Add(v, toSecondHalves<3, 8>(d, v));
}

/// Running sums of values of 32 bits over a whole vector.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> sumsInVector(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  v = sumsInEights(d, v);
#if HWY_MAX_BYTES >= 64
  v = hwy::HWY_NAMESPACE::Add(v, toSecondHalves<7, 16>(d, v));
#endif
  return v;
}

/// The last value of a vector in all places.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> lastOfVector(D d, hwy::HWY_NAMESPACE::Vec<D> v) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  alignas(64) static constexpr auto kLast = [] {
    std::array<std::uint32_t, kLanes> from{};
    from.fill(static_cast<std::uint32_t>(kLanes - 1));
    return from;
  }();
  return hn::TableLookupLanes(v, hn::SetTableIndices(d, kLast.data()));
}

/// Running sums inside blocks of whole vectors: wide ones pay here, since a block's end breaks the
/// chain of carries. `change` is applied to the values first. n_values are whole blocks, and `out`
/// may be `in`.
template <class Change>
HWY_INLINE void sumsInBlocks(const std::uint32_t* in,
                             std::size_t n_values,
                             std::size_t block,
                             std::uint32_t* out,
                             Change change) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<std::uint32_t> d;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<std::uint32_t>());
  if (block == 2 * kLanes) {
    for (std::size_t i = 0; i < n_values; i += 2 * kLanes) {
      const auto first = sumsInVector(d, change(hn::LoadU(d, in + i)));
      const auto second = sumsInVector(d, change(hn::LoadU(d, in + i + kLanes)));
      hn::StoreU(first, d, out + i);
      hn::StoreU(hn::Add(second, lastOfVector(d, first)), d, out + i + kLanes);
    }
    return;
  }
  for (std::size_t begin = 0; begin < n_values; begin += block) {
    auto carry = hn::Zero(d);
    for (std::size_t i = begin; i < begin + block; i += kLanes) {
      const auto sums = sumsInVector(d, change(hn::LoadU(d, in + i)));
      hn::StoreU(hn::Add(sums, carry), d, out + i);
      // Not from what is stored: keeps the chain at one addition.
      carry = hn::Add(carry, lastOfVector(d, sums));
    }
  }
}
#endif

}  // namespace fz::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
