// Words of chunks to values.
#include <algorithm>
#include <cstring>

#include "coders/block_ans/cpu/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/block_ans/cpu/decode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "coders/block_ans/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace fz::block_ans::HWY_NAMESPACE {  // NOLINT

#ifdef FZ_BLOCK_ANS_WIDE

// An entry for each slot of a table. The symbol's frequency and the slot's place in it are what a
// state goes on with.
//   classes, and symbols of direct classes: place : 10 | value : 11, signed | frequency : 11
//   symbols of other classes: place : 10 | frequency : 11 | first bits of u : 4 | raw bits : 5
constexpr std::uint32_t kSlot = kScale - 1;

HWY_INLINE V gather(const std::uint32_t* table, V index) {
  return _mm512_i32gather_epi32(index, table, 4);
}

/// Words of a chunk. Reading goes on past their end by less than kSlack words, so the last ones are
/// copied to where that does no harm.
class WordReader {
 public:
  /// More than the words that a block or the classes of a group can take, and a vector.
  static constexpr std::uint32_t kSlack = 6 * kLanes + 2 * kWide;

  WordReader(const std::uint8_t* words, std::uint32_t n_words)
      : at_(words), left_end_(words + 2 * std::size_t{n_words}), limit_(left_end_) {
    if (n_words <= kSlack) {
      moveToTail();
    } else {
      limit_ = left_end_ - 2 * std::size_t{kSlack};
    }
  }

  /// Before each block. False: more words were taken than there are.
  HWY_INLINE bool hasRoom() {
    if (at_ <= limit_) [[likely]] {
      return true;
    }
    if (is_tail_) {
      return false;
    }
    moveToTail();
    return true;
  }
  HWY_INLINE V next() const {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at_)));
  }
  HWY_INLINE void take(std::uint32_t n_words) { at_ += 2 * std::size_t{n_words}; }
  bool isAtEnd() const { return is_tail_ && at_ == limit_; }

  WordReader(const WordReader&) = delete;
  WordReader& operator=(const WordReader&) = delete;

 private:
  void moveToTail() {
    const auto n_bytes = static_cast<std::size_t>(left_end_ - at_);
    std::memset(tail_, 0, sizeof(tail_));
    std::memcpy(tail_, at_, n_bytes);
    at_ = tail_;
    limit_ = tail_ + n_bytes;
    is_tail_ = true;
  }

  const std::uint8_t* at_;
  const std::uint8_t* left_end_;
  const std::uint8_t* limit_;
  bool is_tail_ = false;
  std::uint8_t tail_[4 * kSlack];
};

HWY_INLINE void refill(V& x, WordReader& words) {
  const LaneMask low = _mm512_cmplt_epu32_mask(x, all(kLowState));
  const V taken = _mm512_maskz_expand_epi32(low, words.next());
  x = _mm512_mask_or_epi32(x, low, _mm512_slli_epi32(x, 16), taken);
  words.take(countOf(low));
}

/// Both halves of the lanes.
struct Pair {
  V low;
  V high;
};

HWY_INLINE void refill(Pair& x, WordReader& words) {
  refill(x.low, words);
  refill(x.high, words);
}

/// A symbol without raw bits; returns its value.
HWY_INLINE V directStep(V& x, V entry) {
  x = _mm512_add_epi32(
      _mm512_mullo_epi32(_mm512_srli_epi32(entry, 21), _mm512_srli_epi32(x, kScaleBits)),
      _mm512_and_si512(entry, all(kSlot)));
  return _mm512_srai_epi32(_mm512_slli_epi32(entry, 11), 21);
}

/// A symbol and its merged raw bits; returns u without the others.
HWY_INLINE V bucketStep(V& x, V entry, V& n_raw) {
  n_raw = _mm512_srli_epi32(entry, 25);
  const V merged = _mm512_min_epu32(n_raw, all(kMergedBits));
  const V above = _mm512_srli_epi32(x, kScaleBits);
  const V rest = _mm512_srlv_epi32(above, merged);
  const V freq = _mm512_and_si512(_mm512_srli_epi32(entry, 10), all(0x7FF));
  x = _mm512_add_epi32(_mm512_mullo_epi32(freq, rest), _mm512_and_si512(entry, all(kSlot)));
  const V raw = _mm512_sub_epi32(above, _mm512_sllv_epi32(rest, merged));
  const V first = _mm512_and_si512(_mm512_srli_epi32(entry, 21), all(15));
  return _mm512_or_si512(_mm512_sllv_epi32(first, n_raw), raw);
}

/// Raw bits of a step of their own, which stand at `place` of u.
HWY_INLINE void rawStep(V& x, V& u, V n_bits, std::uint32_t place, WordReader& words) {
  const V bits = _mm512_andnot_si512(_mm512_sllv_epi32(all(0xFFFFFFFF), n_bits), x);
  u = _mm512_or_si512(u, _mm512_slli_epi32(bits, place));
  x = _mm512_srlv_epi32(x, n_bits);
  refill(x, words);
}

HWY_INLINE V bitsBehind(V n_raw, std::uint32_t place) {
  return _mm512_max_epi32(_mm512_sub_epi32(n_raw, all(place)), all(0));
}

template <Map kMap>
HWY_INLINE V unmappedOf(V u) {
  if constexpr (kMap == Map::kNone) {
    return u;
  }
  const V sign = _mm512_sub_epi32(all(0), _mm512_and_si512(u, all(1)));
  return _mm512_xor_si512(_mm512_srli_epi32(u, 1), sign);
}

/// One value of each lane of a block whose class is not direct.
template <Map kMap>
HWY_INLINE Pair bucketHalf(Pair& x, const std::uint32_t* table, WordReader& words) {
  Pair n_raw;
  Pair u;
  u.low = bucketStep(x.low, gather(table, _mm512_and_si512(x.low, all(kSlot))), n_raw.low);
  u.high = bucketStep(x.high, gather(table, _mm512_and_si512(x.high, all(kSlot))), n_raw.high);
  refill(x, words);
  constexpr std::uint32_t kSecond = kMergedBits;
  constexpr std::uint32_t kThird = kMergedBits + kStepBits;
  const V longest = _mm512_max_epu32(n_raw.low, n_raw.high);
  if (isAtLeast(longest, kSecond + 1) != 0) {
    rawStep(x.low, u.low, _mm512_min_epu32(bitsBehind(n_raw.low, kSecond), all(kStepBits)), kSecond,
            words);
    rawStep(x.high, u.high, _mm512_min_epu32(bitsBehind(n_raw.high, kSecond), all(kStepBits)),
            kSecond, words);
    if (isAtLeast(longest, kThird + 1) != 0) {
      rawStep(x.low, u.low, bitsBehind(n_raw.low, kThird), kThird, words);
      rawStep(x.high, u.high, bitsBehind(n_raw.high, kThird), kThird, words);
    }
  }
  return {unmappedOf<kMap>(u.low), unmappedOf<kMap>(u.high)};
}

HWY_INLINE Pair directHalf(Pair& x, const std::uint32_t* table, WordReader& words) {
  Pair value;
  value.low = directStep(x.low, gather(table, _mm512_and_si512(x.low, all(kSlot))));
  value.high = directStep(x.high, gather(table, _mm512_and_si512(x.high, all(kSlot))));
  refill(x, words);
  return value;
}

/// Values of even and of odd places next to each other.
template <class T>
HWY_INLINE void storeValues(const Pair& even, const Pair& odd, T* out) {
  if constexpr (sizeof(T) == 2) {
    _mm512_storeu_si512(
        out, _mm512_mask_blend_epi16(0xAAAAAAAA, even.low, _mm512_slli_epi32(odd.low, 16)));
    _mm512_storeu_si512(out + 2 * kWide, _mm512_mask_blend_epi16(0xAAAAAAAA, even.high,
                                                                 _mm512_slli_epi32(odd.high, 16)));
  } else {
    const V front = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const V back = _mm512_add_epi32(front, all(8));
    _mm512_storeu_si512(out, _mm512_permutex2var_epi32(even.low, front, odd.low));
    _mm512_storeu_si512(out + kWide, _mm512_permutex2var_epi32(even.low, back, odd.low));
    _mm512_storeu_si512(out + 2 * kWide, _mm512_permutex2var_epi32(even.high, front, odd.high));
    _mm512_storeu_si512(out + 3 * kWide, _mm512_permutex2var_epi32(even.high, back, odd.high));
  }
}

template <class T, Map kMap>
HWY_INLINE void decodeBlockWide(
    Pair& x, const DecodeTables& tables, std::uint32_t block_class, WordReader& words, T* out) {
  if (block_class == 0) {
    std::memset(out, 0, kBlockValues * sizeof(T));
    return;
  }
  const std::uint32_t* table = tables.of[symbolTable(block_class)];
  if (block_class <= kMaxDirectClass) {
    const Pair even = directHalf(x, table, words);
    storeValues(even, directHalf(x, table, words), out);
  } else {
    const Pair even = bucketHalf<kMap>(x, table, words);
    storeValues(even, bucketHalf<kMap>(x, table, words), out);
  }
}

/// Classes of a group's blocks.
HWY_INLINE void decodeClassesWide(Pair& x,
                                  const DecodeTables& tables,
                                  WordReader& words,
                                  std::uint8_t* classes) {
  const std::uint32_t* table = tables.of[classTable(0)];
  const auto decode = [&](V& state, V context) HWY_ATTR {
    const V index = _mm512_or_si512(_mm512_slli_epi32(context, kScaleBits),
                                    _mm512_and_si512(state, all(kSlot)));
    return directStep(state, gather(table, index));
  };
  Pair even;
  even.low = decode(x.low, all(kFirstContext));
  even.high = decode(x.high, all(kFirstContext));
  refill(x, words);
  Pair odd;
  odd.low = decode(x.low, even.low);
  odd.high = decode(x.high, even.high);
  refill(x, words);
  const auto pairs = [](V first, V second) HWY_ATTR {
    return _mm512_cvtepi32_epi16(_mm512_or_si512(first, _mm512_slli_epi32(second, 8)));
  };
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(classes), pairs(even.low, odd.low));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(classes + kLanes), pairs(even.high, odd.high));
}

template <class T, Map kMap>
bool decodeAs(const ChunkWords& in,
              const Chunk& chunk,
              const DecodeTables& tables,
              const ValueView& shape,
              T* values) {
  WordReader words(in.words, in.n_words);
  Pair x{_mm512_loadu_si512(in.states), _mm512_loadu_si512(in.states + kWide)};
  T past_end = 0;
  for (std::uint64_t g = 0; g < chunk.n_groups; ++g) {
    std::uint8_t classes[kGroupBlocks];
    if (!words.hasRoom()) {
      return false;
    }
    decodeClassesWide(x, tables, words, classes);
    for (std::uint32_t b = 0; b < kGroupBlocks; ++b) {
      if (!words.hasRoom()) {
        return false;
      }
      const std::uint64_t first = chunk.first_value + (g * kGroupBlocks + b) * kBlockValues;
      if (first + kBlockValues <= shape.n_values) [[likely]] {
        decodeBlockWide<T, kMap>(x, tables, classes[b], words, values + first);
        continue;
      }
      T block[kBlockValues];
      decodeBlockWide<T, kMap>(x, tables, classes[b], words, block);
      for (std::uint32_t i = 0; i < kBlockValues; ++i) {
        if (first + i < shape.n_values) {
          values[first + i] = block[i];
        } else {
          past_end = static_cast<T>(past_end | block[i]);
        }
      }
    }
  }
  const LaneMask is_off = static_cast<LaneMask>(_mm512_cmpneq_epi32_mask(x.low, all(kLowState)) |
                                                _mm512_cmpneq_epi32_mask(x.high, all(kLowState)));
  return is_off == 0 && words.hasRoom() && words.isAtEnd() && past_end == 0;
}

bool decodeGroups(const ChunkWords& in,
                  const Chunk& chunk,
                  const DecodeTables& tables,
                  const ValueView& shape,
                  void* out) {
  bool is_whole = false;
  withTypeAndMap(shape, [&]<class T, Map kMap>() {
    is_whole = decodeAs<T, kMap>(in, chunk, tables, shape, static_cast<T*>(out));
  });
  return is_whole;
}

void makeTables(const Coding& coding, Map map, DecodeTables& tables) {
  for (std::uint32_t t = 0; t < kTables; ++t) {
    std::uint32_t* entry = tables.of[t];
    for (std::uint32_t s = 0; s < kSymbols; ++s) {
      const std::uint32_t freq = coding.freq[t][s];
      std::uint32_t first = 0;
      if (t >= kSymbolTables) {
        first = s << 10 | freq << 21;
      } else if (t < kMaxDirectClass) {
        const auto value = unmapped<std::uint32_t>(s, map);
        first = lowBits(value, 11) << 10 | freq << 21;
      } else {
        const std::uint32_t n_raw = rawBits(s);
        first = freq << 10 | symbolBase(s) >> n_raw << 21 | n_raw << 25;
      }
      for (std::uint32_t i = 0; i < freq; ++i) {
        *entry++ = first + i;
      }
    }
  }
}

#else

bool decodeGroups(const ChunkWords& in,
                  const Chunk& chunk,
                  const DecodeTables& tables,
                  const ValueView& shape,
                  void* out) {
  return decodePlain(in, chunk, tables.coding, tables.slots, shape, out);
}

void makeTables(const Coding& coding, Map /*map*/, DecodeTables& tables) {
  tables.coding = coding;
  fillSlots(coding, tables.slots);
}

#endif

}  // namespace fz::block_ans::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::block_ans {

HWY_EXPORT(decodeGroups);  // NOLINT
HWY_EXPORT(makeTables);    // NOLINT

void makeDecodeTables(const Coding& coding, Map map, DecodeTables& tables) {
  HWY_DYNAMIC_DISPATCH(makeTables)(coding, map, tables);
}

bool decodeChunk(ByteView stream,
                 const Chunk& chunk,
                 const DecodeTables& tables,
                 const ValueView& shape,
                 void* out) {
  const ByteView bytes =
      stream.subspan(static_cast<std::size_t>(chunk.byte_offset), 2 * std::size_t{chunk.n_words});
  if (isStored(chunk, shape.value_bytes)) {
    std::memcpy(static_cast<std::uint8_t*>(out) + chunk.first_value * shape.value_bytes,
                bytes.data(), bytes.size());
    return true;
  }
  ChunkWords words;
  const std::size_t n_front = readStates(bytes, words.states);
  words.words = bytes.data() + n_front;
  words.n_words = static_cast<std::uint32_t>((bytes.size() - n_front) / 2);
  return n_front != 0 && HWY_DYNAMIC_DISPATCH(decodeGroups)(words, chunk, tables, shape, out);
}

}  // namespace fz::block_ans
#endif
