#include "backends/cpu/delta_cpu.h"

#include <algorithm>

#include "backends/cpu/parallel_for.h"
#include "shared/bits.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/delta_cpu.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/prefix_sum_inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::delta::HWY_NAMESPACE {  // NOLINT

namespace hn = hwy::HWY_NAMESPACE;
using fz::HWY_NAMESPACE::RunningSum;

/// Values of one pass over the cache: block starts are corrected while the codes are still there.
constexpr std::size_t kPieceBytes = 8192;

template <class U, Code kCode>
void encodeRun(const U* HWY_RESTRICT in, std::size_t n_values, U before, U* HWY_RESTRICT out) {
  if (n_values == 0) {
    return;
  }
  out[0] = toCode<kCode>(minus(in[0], before));
  for (std::size_t i = 1; i < n_values; ++i) {
    out[i] = toCode<kCode>(minus(in[i], in[i - 1]));
  }
}

template <class U, Code kCode>
void encode(const U* in, std::size_t n_values, std::size_t block, U before, U* out) {
  constexpr std::size_t kPiece = kPieceBytes / sizeof(U);
  std::size_t next_start = block;  // of a block
  for (std::size_t begin = 0; begin < n_values; begin += kPiece) {
    const std::size_t end = std::min(begin + kPiece, n_values);
    encodeRun<U, kCode>(in + begin, end - begin, begin == 0 ? before : in[begin - 1], out + begin);
    for (; next_start < end; next_start += block) {
      out[next_start] = toCode<kCode>(in[next_start]);
    }
  }
}

template <Code kCode, class V>
HWY_INLINE V differences(V codes) {
  if constexpr (kCode == Code::kNegabinary) {
    const hn::DFromV<V> d;
    const V mask = hn::Set(d, bits::kNegabinaryMask<hn::TFromV<V>>);
    return hn::Sub(hn::Xor(codes, mask), mask);
  } else {
    return codes;
  }
}

template <class U, Code kCode>
HWY_INLINE U decodeRun(const U* in, std::size_t n_values, U before, U* out) {
  const typename RunningSum<U>::D d;
  constexpr std::size_t kLanes = RunningSum<U>::kLanes;
  RunningSum<U> running(before);
  std::size_t i = 0;
  for (; i + kLanes <= n_values; i += kLanes) {
    hn::StoreU(running.add(differences<kCode>(hn::LoadU(d, in + i))), d, out + i);
  }
  U value = running.carry();
  for (; i < n_values; ++i) {
    value = plus(value, fromCode<kCode>(in[i]));
    out[i] = value;
  }
  return value;
}

template <class U, Code kCode>
U decode(const U* in, std::size_t n_values, std::size_t block, U before, U* out) {
#ifdef FZ_HAVE_WIDE_SUMS
  if constexpr (sizeof(U) == 4) {
    constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<U>());
    constexpr std::size_t kLongestShortBlock = 256;
    const std::size_t n_whole = n_values / block * block;
    if (block % kLanes == 0 && block <= kLongestShortBlock && before == 0 && n_whole != 0) {
      fz::HWY_NAMESPACE::sumsInBlocks(
          in, n_whole, block, out, [](auto codes) HWY_ATTR { return differences<kCode>(codes); });
      return n_whole == n_values
                 ? out[n_values - 1]
                 : decodeRun<U, kCode>(in + n_whole, n_values - n_whole, U{0}, out + n_whole);
    }
  }
#endif
  for (std::size_t begin = 0; begin < n_values; begin += block) {
    before = decodeRun<U, kCode>(in + begin, std::min(block, n_values - begin),
                                 begin == 0 ? before : U{0}, out + begin);
  }
  return before;
}

template <class U, Code kCode>
U sum(const U* in, std::size_t n_values) {
  U total = 0;
  for (std::size_t i = 0; i < n_values; ++i) {
    total = plus(total, fromCode<kCode>(in[i]));
  }
  return total;
}

template <class U>
const Kernels<U>* table(Code code) {
  static constexpr Kernels<U> kPlain = {&encode<U, Code::kPlain>, &decode<U, Code::kPlain>,
                                        &sum<U, Code::kPlain>};
  static constexpr Kernels<U> kNegabinary = {
      &encode<U, Code::kNegabinary>, &decode<U, Code::kNegabinary>, &sum<U, Code::kNegabinary>};
  return code == Code::kNegabinary ? &kNegabinary : &kPlain;
}

const Kernels<std::uint8_t>* table8(Code code) {
  return table<std::uint8_t>(code);
}
const Kernels<std::uint16_t>* table16(Code code) {
  return table<std::uint16_t>(code);
}
const Kernels<std::uint32_t>* table32(Code code) {
  return table<std::uint32_t>(code);
}
const Kernels<std::uint64_t>* table64(Code code) {
  return table<std::uint64_t>(code);
}

}  // namespace fz::delta::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::delta {

HWY_EXPORT(table8);
HWY_EXPORT(table16);
HWY_EXPORT(table32);
HWY_EXPORT(table64);

template <>
const Kernels<std::uint8_t>& kernels(Code code) {
  return *HWY_DYNAMIC_DISPATCH(table8)(code);
}
template <>
const Kernels<std::uint16_t>& kernels(Code code) {
  return *HWY_DYNAMIC_DISPATCH(table16)(code);
}
template <>
const Kernels<std::uint32_t>& kernels(Code code) {
  return *HWY_DYNAMIC_DISPATCH(table32)(code);
}
template <>
const Kernels<std::uint64_t>& kernels(Code code) {
  return *HWY_DYNAMIC_DISPATCH(table64)(code);
}

namespace {

/// Calls f(tile, begin, end) for ranges of `tile` values.
template <class F>
void forTiles(const CpuExecutor& executor, std::size_t n_values, std::size_t tile, F f) {
  parallelFor(executor, bits::ceilDiv(n_values, tile),
              [&](std::size_t t) { f(t, t * tile, std::min(n_values, (t + 1) * tile)); });
}

/// Largest number of values up to kTileValues that holds whole blocks; 0 when a block is longer.
std::size_t tileOfWholeBlocks(std::size_t block) {
  return kTileValues / block * block;
}

}  // namespace

template <class U>
void encodeBlocks(
    const CpuExecutor& executor, std::span<const U> in, std::size_t block, Code code, U* out) {
  const Kernels<U>& run = kernels<U>(code);
  const std::size_t length = block == 0 ? std::max<std::size_t>(in.size(), 1) : block;
  const std::size_t whole = tileOfWholeBlocks(length);
  const std::size_t tile = whole == 0 ? kTileValues : whole;
  forTiles(executor, in.size(), tile, [&](std::size_t, std::size_t begin, std::size_t end) {
    const U before = begin % length == 0 ? U{0} : in[begin - 1];
    run.encode(in.data() + begin, end - begin, length, before, out + begin);
  });
}

template <class U>
void decodeBlocks(const CpuExecutor& executor,
                  std::span<const U> in,
                  std::size_t block,
                  Code code,
                  std::span<U> tile_sums,
                  U* out) {
  const Kernels<U>& run = kernels<U>(code);
  const std::size_t length = block == 0 ? std::max<std::size_t>(in.size(), 1) : block;
  const std::size_t whole = tileOfWholeBlocks(length);
  if (whole != 0) {
    forTiles(executor, in.size(), whole, [&](std::size_t, std::size_t begin, std::size_t end) {
      run.decode(in.data() + begin, end - begin, length, U{0}, out + begin);
    });
    return;
  }
  if (executor.threadCount() == 1) {  // one pass is all it takes when nobody waits for a sum
    run.decode(in.data(), in.size(), length, U{0}, out);
    return;
  }
  forTiles(executor, in.size(), kTileValues,
           [&](std::size_t t, std::size_t begin, std::size_t end) {
             tile_sums[t] = run.sum(in.data() + begin, end - begin);
           });
  U value = 0;
  for (std::size_t t = 0; t * kTileValues < in.size(); ++t) {
    const U own = tile_sums[t];
    value = t * kTileValues % length == 0 ? U{0} : value;
    tile_sums[t] = value;
    value = plus(value, own);
  }
  forTiles(executor, in.size(), kTileValues,
           [&](std::size_t t, std::size_t begin, std::size_t end) {
             run.decode(in.data() + begin, end - begin, length, tile_sums[t], out + begin);
           });
}

// NOLINTBEGIN(bugprone-macro-parentheses): U is a type
#define FZ_DELTA_INSTANTIATE(U)                                                                 \
  template void encodeBlocks<U>(const CpuExecutor&, std::span<const U>, std::size_t, Code, U*); \
  template void decodeBlocks<U>(const CpuExecutor&, std::span<const U>, std::size_t, Code,      \
                                std::span<U>, U*)
// NOLINTEND(bugprone-macro-parentheses)
FZ_DELTA_INSTANTIATE(std::uint8_t);
FZ_DELTA_INSTANTIATE(std::uint16_t);
FZ_DELTA_INSTANTIATE(std::uint32_t);
FZ_DELTA_INSTANTIATE(std::uint64_t);
#undef FZ_DELTA_INSTANTIATE

}  // namespace fz::delta
#endif
