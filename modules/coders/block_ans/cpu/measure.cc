// Classes and counts of blocks.
#include <algorithm>
#include <cstring>

#include "coders/block_ans/cpu/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/block_ans/cpu/measure.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "coders/block_ans/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace fz::block_ans::HWY_NAMESPACE {  // NOLINT

#ifdef FZ_BLOCK_ANS_WIDE

/// Symbols below 8 * kEights of blocks of one class, in bytes: for each eight of them a lane of 32
/// bits has a nibble for each symbol, of which even and odd ones are summed apart.
template <std::uint32_t kEights>
class NibbleCounts {
 public:
  HWY_INLINE void add(const V* symbol) {
    V nibbles[kEights] = {};
    for (std::uint32_t i = 0; i < 4; ++i) {
      // A shift by 32 or more, as by a negative number, gives 0.
      const V at = _mm512_slli_epi32(symbol[i], 2);
      for (std::uint32_t e = 0; e < kEights; ++e) {
        const V in_lane = _mm512_sub_epi32(at, all(32 * e));
        nibbles[e] = _mm512_add_epi32(nibbles[e], _mm512_sllv_epi32(all(1), in_lane));
      }
    }
    const V low = all(0x0F0F0F0F);
    for (std::uint32_t e = 0; e < kEights; ++e) {
      addTo(even_[e], _mm512_and_si512(nibbles[e], low));
      addTo(odd_[e], _mm512_and_si512(_mm512_srli_epi32(nibbles[e], 4), low));
    }
    ++n_blocks_;
  }
  /// The next block might overflow a byte: each has four values for a lane.
  bool isFull() const { return n_blocks_ == 63; }

  /// Adds all to counts of symbols and starts anew.
  void flush(std::uint32_t* counts) {
    for (std::uint32_t e = 0; e < kEights; ++e) {
      for (std::uint32_t byte = 0; byte < 64; ++byte) {
        counts[8 * e + byte % 4 * 2] += even_[e][byte];
        counts[8 * e + byte % 4 * 2 + 1] += odd_[e][byte];
      }
    }
    std::memset(even_, 0, sizeof(even_));
    std::memset(odd_, 0, sizeof(odd_));
    n_blocks_ = 0;
  }

 private:
  static HWY_INLINE void addTo(std::uint8_t* bytes, V counts) {
    _mm512_store_si512(bytes, _mm512_add_epi8(_mm512_load_si512(bytes), counts));
  }

  alignas(64) std::uint8_t even_[kEights][64] = {};
  alignas(64) std::uint8_t odd_[kEights][64] = {};
  std::uint32_t n_blocks_ = 0;
};

/// Counts symbols one by one.
HWY_INLINE void countEach(const V* symbol, SubCounts& counts, std::uint32_t table) {
  alignas(16) std::uint8_t bytes[kBlockValues];
  for (std::uint32_t i = 0; i < 4; ++i) {
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes + kWide * i), _mm512_cvtepi32_epi8(symbol[i]));
  }
  for (std::uint32_t i = 0; i < kBlockValues; i += kCountCopies) {
    for (std::uint32_t copy = 0; copy < kCountCopies; ++copy) {
      ++counts.of[copy][table][bytes[i + copy]];
    }
  }
}

/// Counts those from a limit on, which are few.
HWY_INLINE void countFrom(std::uint32_t limit,
                          const V* symbol,
                          SubCounts& counts,
                          std::uint32_t table) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    LaneMask large = isAtLeast(symbol[i], limit);
    if (large != 0) {
      alignas(64) std::uint32_t symbols[kWide];
      _mm512_store_si512(symbols, symbol[i]);
      for (; large != 0; large = static_cast<LaneMask>(large & (large - 1))) {
        ++counts.of[0][table][symbols[bits::firstSet(large)]];
      }
    }
  }
}

HWY_INLINE void findSymbols(const V* u, V* symbol) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    symbol[i] = symbolsOf(u[i], rawBitsOf(u[i]));
  }
}

/// The counts of a thread on their way to SubCounts. Which way is the quickest depends on how many
/// symbols a class has.
class Counter {
 public:
  explicit Counter(SubCounts* counts) : counts_(counts) {}

  HWY_INLINE void add(const V* u, std::uint32_t block_class) {
    const std::uint32_t table = symbolTable(block_class);
    V symbol[4];
    if (block_class <= kMaxOf16) {
      of_16_[table].add(u);
      if (of_16_[table].isFull()) {
        of_16_[table].flush(counts_->of[1][table]);
      }
      const V any = _mm512_or_si512(_mm512_or_si512(u[0], u[1]), _mm512_or_si512(u[2], u[3]));
      if (isAtLeast(any, 16) != 0) {
        findSymbols(u, symbol);
        countFrom(16, symbol, *counts_, table);
      }
      return;
    }
    findSymbols(u, symbol);
    if (block_class > kMaxOf32) {
      countEach(symbol, *counts_, table);
      return;
    }
    of_32_[table - kMaxOf16].add(symbol);
    if (of_32_[table - kMaxOf16].isFull()) {
      of_32_[table - kMaxOf16].flush(counts_->of[1][table]);
    }
    countFrom(32, symbol, *counts_, table);
  }
  void finish() {
    for (std::uint32_t t = 0; t < kMaxOf16; ++t) {
      of_16_[t].flush(counts_->of[1][t]);
    }
    for (std::uint32_t t = kMaxOf16; t < kMaxOf32; ++t) {
      of_32_[t - kMaxOf16].flush(counts_->of[1][t]);
    }
  }

 private:
  // Up to these classes few symbols are 16 or 32 and more.
  static constexpr std::uint32_t kMaxOf16 = 8;
  static constexpr std::uint32_t kMaxOf32 = 13;

  NibbleCounts<2> of_16_[kMaxOf16];
  NibbleCounts<4> of_32_[kMaxOf32 - kMaxOf16];
  SubCounts* counts_;
};

HWY_INLINE std::uint32_t classOfNumbers(const V* u) {
  // Numbers beyond 2^15 decide the class alone, and must not overflow the sum.
  V sum = _mm512_min_epu32(u[0], all(1u << kMaxClass));
  for (std::uint32_t i = 1; i < 4; ++i) {
    sum = _mm512_add_epi32(sum, _mm512_min_epu32(u[i], all(1u << kMaxClass)));
  }
  return classOf(static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sum)));
}

template <class T, Map kMap, bool kCounts>
void measureAs(const ValueView& in, GroupRange groups, std::uint8_t* classes, SubCounts* counts) {
  Counter counter(counts);
  T room[kBlockValues];
  for (std::uint64_t b = groups.begin * kGroupBlocks; b < groups.end * kGroupBlocks; ++b) {
    V u[4];
    loadNumbers<T, kMap>(wholeBlock(in, b, room), u);
    const std::uint32_t block_class = classOfNumbers(u);
    classes[b] = static_cast<std::uint8_t>(block_class);
    if constexpr (kCounts) {
      const std::uint32_t context = b % 2 == 0 ? kFirstContext : classes[b - 1];
      ++counts->of[0][classTable(context)][block_class];
      if (block_class != 0) {
        counter.add(u, block_class);
      }
    }
  }
  if constexpr (kCounts) {
    counter.finish();
  }
}

void measure(const ValueView& in, GroupRange groups, std::uint8_t* classes, SubCounts* counts) {
  withTypeAndMap(in, [&]<class T, Map kMap>() {
    counts == nullptr ? measureAs<T, kMap, false>(in, groups, classes, counts)
                      : measureAs<T, kMap, true>(in, groups, classes, counts);
  });
}

#else

void measure(const ValueView& in, GroupRange groups, std::uint8_t* classes, SubCounts* counts) {
  measurePlain(in, groups, classes, counts);
}

#endif

}  // namespace fz::block_ans::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::block_ans {

HWY_EXPORT(measure);  // NOLINT

void measureGroups(const ValueView& in,
                   GroupRange groups,
                   std::uint8_t* classes,
                   SubCounts* counts) {
  HWY_DYNAMIC_DISPATCH(measure)(in, groups, classes, counts);
}

}  // namespace fz::block_ans
#endif
