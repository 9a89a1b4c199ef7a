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

/// Symbols below 16 of blocks of one class, as bytes: those of 8 symbols, one nibble each, are a
/// lane of 32 bits, of which even and odd nibbles are summed apart.
class NibbleCounts {
 public:
  void add(const V* u) {
    V low = _mm512_setzero_si512();
    V high = low;
    for (std::uint32_t i = 0; i < 4; ++i) {
      // A shift by 32 or more, as by a negative number, gives 0.
      const V at = _mm512_slli_epi32(u[i], 2);
      low = _mm512_add_epi32(low, _mm512_sllv_epi32(all(1), at));
      high = _mm512_add_epi32(high, _mm512_sllv_epi32(all(1), _mm512_sub_epi32(at, all(32))));
    }
    const V nibble = all(0x0F0F0F0F);
    add(0, _mm512_and_si512(low, nibble));
    add(1, _mm512_and_si512(_mm512_srli_epi32(low, 4), nibble));
    add(2, _mm512_and_si512(high, nibble));
    add(3, _mm512_and_si512(_mm512_srli_epi32(high, 4), nibble));
    ++n_blocks_;
  }
  /// The next block might overflow a byte: each has four values for a lane.
  bool isFull() const { return n_blocks_ == 63; }

  /// Adds all to counts of symbols and starts anew.
  void flush(std::uint32_t* counts) {
    for (std::uint32_t part = 0; part < 4; ++part) {
      for (std::uint32_t byte = 0; byte < 64; ++byte) {
        counts[part / 2 * 8 + byte % 4 * 2 + part % 2] += bytes_[part][byte];
      }
    }
    std::memset(bytes_, 0, sizeof(bytes_));
    n_blocks_ = 0;
  }

 private:
  HWY_INLINE void add(std::uint32_t part, V counts) {
    std::uint8_t* const sum = bytes_[part];
    _mm512_store_si512(sum, _mm512_add_epi8(_mm512_load_si512(sum), counts));
  }

  alignas(64) std::uint8_t bytes_[4][64] = {};
  std::uint32_t n_blocks_ = 0;
};

/// Counts the symbols of a block of a class in which few are below 16, or some above.
HWY_INLINE void countSymbols(const V* u, SubCounts& counts, std::uint32_t table) {
  alignas(16) std::uint8_t symbols[kBlockValues];
  for (std::uint32_t i = 0; i < 4; ++i) {
    const V s = symbolsOf(u[i], rawBitsOf(u[i]));
    _mm_store_si128(reinterpret_cast<__m128i*>(symbols + kWide * i), _mm512_cvtepi32_epi8(s));
  }
  for (std::uint32_t i = 0; i < kBlockValues; i += kCountCopies) {
    for (std::uint32_t copy = 0; copy < kCountCopies; ++copy) {
      ++counts.of[copy][table][symbols[i + copy]];
    }
  }
}

/// Counts those of 16 or more, which are few.
HWY_INLINE void countLarge(const V* u, SubCounts& counts, std::uint32_t table) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    LaneMask large = isAtLeast(u[i], 16);
    if (large != 0) {
      alignas(64) std::uint32_t symbols[kWide];
      _mm512_store_si512(symbols, symbolsOf(u[i], rawBitsOf(u[i])));
      for (; large != 0; large = static_cast<LaneMask>(large & (large - 1))) {
        ++counts.of[0][table][symbols[bits::firstSet(large)]];
      }
    }
  }
}

HWY_INLINE std::uint32_t classOfNumbers(const V* u) {
  // Numbers beyond 2^15 decide the class alone, and must not overflow the sum.
  V sum = _mm512_min_epu32(u[0], all(1u << kMaxClass));
  for (std::uint32_t i = 1; i < 4; ++i) {
    sum = _mm512_add_epi32(sum, _mm512_min_epu32(u[i], all(1u << kMaxClass)));
  }
  return classOf(static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sum)));
}

// Above this class most symbols are 16 or more.
constexpr std::uint32_t kMaxNibbleClass = 11;

template <class T, Map kMap>
void measureAs(const ValueView& in, GroupRange groups, std::uint8_t* classes, SubCounts* counts) {
  NibbleCounts nibbles[kMaxNibbleClass + 1];
  T room[kBlockValues];
  for (std::uint64_t b = groups.begin * kGroupBlocks; b < groups.end * kGroupBlocks; ++b) {
    V u[4];
    loadNumbers<T, kMap>(wholeBlock(in, b, room), u);
    const std::uint32_t block_class = classOfNumbers(u);
    classes[b] = static_cast<std::uint8_t>(block_class);
    if (counts == nullptr) {
      continue;
    }
    const std::uint32_t context = b % 2 == 0 ? kFirstContext : classes[b - 1];
    ++counts->of[0][classTable(context)][block_class];
    if (block_class == 0) {
      continue;
    }
    const std::uint32_t table = symbolTable(block_class);
    if (block_class > kMaxNibbleClass) {
      countSymbols(u, *counts, table);
      continue;
    }
    NibbleCounts& small = nibbles[block_class];
    small.add(u);
    if (small.isFull()) {
      small.flush(counts->of[1][table]);
    }
    if (block_class > kMaxDirectClass) {
      countLarge(u, *counts, table);
    }
  }
  for (std::uint32_t c = 1; counts != nullptr && c <= kMaxNibbleClass; ++c) {
    nibbles[c].flush(counts->of[1][symbolTable(c)]);
  }
}

void measure(const ValueView& in, GroupRange groups, std::uint8_t* classes, SubCounts* counts) {
  withTypeAndMap(in, [&]<class T, Map kMap>() { measureAs<T, kMap>(in, groups, classes, counts); });
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
