// States, words and values of a chunk that is decoded, where there are vectors of 16 x 32 bits.
// Compiled once per vector target (hence the odd guard). Include after hwy/highway.h.
#if defined(FZ_BLOCK_ANS_ROWS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef FZ_BLOCK_ANS_ROWS_H
#undef FZ_BLOCK_ANS_ROWS_H
#else
#define FZ_BLOCK_ANS_ROWS_H
#endif

#include "backends/cpu/stream_copy.h"
#include "coders/block_ans/cpu/simd.h"

#ifdef FZ_BLOCK_ANS_WIDE

HWY_BEFORE_NAMESPACE();
namespace fz::block_ans::HWY_NAMESPACE {  // NOLINT

// An entry for each slot of a table. The symbol's frequency and the slot's place in it are what a
// state goes on with. From the lowest bit:
//   classes, and symbols of direct classes: 10 place, 11 value (signed), 11 frequency
//   symbols of tables without second steps: 10 place, 11 frequency, 8 least u, 3 raw bits
//   symbols of other tables:                10 place, 11 frequency, 4 first bits of u, 5 raw bits
constexpr std::uint32_t kSlot = kScale - 1;
// The first symbol with raw bits in a second step.
constexpr std::uint32_t kFirstSecond = 4 * (kMergedBits + 3);

/// Numbers that are needed all the time, in registers: compilers make them anew for each use.
struct Numbers {
  V slot, low_state, merged, freq, first, least, one;

  HWY_INLINE Numbers()
      : slot(held(kSlot)),
        low_state(held(kLowState)),
        merged(held(kMergedBits)),
        freq(held(0x7FF)),
        first(held(15)),
        least(held(0xFF)),
        one(held(1)) {}
  static HWY_INLINE V held(std::uint32_t value) {
    V v = all(value);
    asm("" : "+v"(v));
    return v;
  }
};

HWY_INLINE V gather(const std::uint32_t* table, V index) {
  return _mm512_i32gather_epi32(index, table, 4);
}

/// Where a chunk's next word is. Values are read from there on without a look at the end; `limit`
/// is the last place from which a whole block can be.
struct Cursor {
  const std::uint8_t* at;
  const std::uint8_t* limit;

  HWY_INLINE V next() const {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  HWY_INLINE void take(std::uint32_t n_words) { at += 2 * std::size_t{n_words}; }
};

/// The last words of a chunk, which are read from a copy with room behind them.
class Tail {
 public:
  Cursor begin(const std::uint8_t* words, std::uint32_t n_words) {
    end_ = words + 2 * std::size_t{n_words};
    const std::size_t n_before = n_words > kSlackWords ? n_words - kSlackWords : 0;
    Cursor cursor{words, words + 2 * n_before};
    if (n_before == 0) {
      enter(cursor);
    }
    return cursor;
  }
  /// The cursor is past its limit. False: there are no words any more.
  HWY_NOINLINE bool enter(Cursor& cursor) {
    if (is_entered_) {
      return false;
    }
    const auto n_bytes = static_cast<std::size_t>(end_ - cursor.at);
    std::memset(bytes_, 0, sizeof(bytes_));
    std::memcpy(bytes_, cursor.at, n_bytes);
    cursor = {bytes_, bytes_ + n_bytes};
    is_entered_ = true;
    return true;
  }
  /// All words were taken.
  bool isAtEnd(Cursor& cursor) {
    return (cursor.at <= cursor.limit || enter(cursor)) && is_entered_ && cursor.at == cursor.limit;
  }

 private:
  // More than a block or the classes of a group can take, and a vector.
  static constexpr std::uint32_t kSlackWords = 6 * kLanes + 2 * kWide;

  const std::uint8_t* end_ = nullptr;
  bool is_entered_ = false;
  std::uint8_t bytes_[2 * 2 * kSlackWords];
};

/// Both halves of the lanes.
struct Pair {
  V low;
  V high;
};

/// A step of the lanes of a chunk: states, words and what both are compared with.
struct Lanes {
  Pair& x;
  Cursor& words;
  const Numbers& k;

  HWY_INLINE void refill(V& state) {
    const LaneMask low = _mm512_cmplt_epu32_mask(state, k.low_state);
    const V taken = _mm512_maskz_expand_epi32(low, words.next());
    state = _mm512_mask_or_epi32(state, low, _mm512_slli_epi32(state, 16), taken);
    words.take(countOf(low));
  }
  HWY_INLINE void refill() {
    refill(x.low);
    refill(x.high);
  }
  HWY_INLINE V entryOf(V state, const std::uint32_t* table) const {
    return gather(table, _mm512_and_si512(state, k.slot));
  }

  /// A symbol without raw bits; returns its value.
  HWY_INLINE V directStep(V& state, V entry) const {
    state = _mm512_add_epi32(
        _mm512_mullo_epi32(_mm512_srli_epi32(entry, 21), _mm512_srli_epi32(state, kScaleBits)),
        _mm512_and_si512(entry, k.slot));
    return _mm512_srai_epi32(_mm512_slli_epi32(entry, 11), 21);
  }
  /// A symbol whose raw bits are all merged; returns u.
  HWY_INLINE V shortStep(V& state, V entry) const {
    const V n_raw = _mm512_srli_epi32(entry, 29);
    const V above = _mm512_srli_epi32(state, kScaleBits);
    const V rest = _mm512_srlv_epi32(above, n_raw);
    const V freq = _mm512_and_si512(_mm512_srli_epi32(entry, 10), k.freq);
    state = _mm512_add_epi32(_mm512_mullo_epi32(freq, rest), _mm512_and_si512(entry, k.slot));
    const V raw = _mm512_sub_epi32(above, _mm512_sllv_epi32(rest, n_raw));
    return _mm512_add_epi32(raw, _mm512_and_si512(_mm512_srli_epi32(entry, 21), k.least));
  }
  /// A symbol and its merged raw bits; returns u without the others.
  HWY_INLINE V bucketStep(V& state, V entry, V& n_raw) const {
    n_raw = _mm512_srli_epi32(entry, 25);
    const V merged = _mm512_min_epu32(n_raw, k.merged);
    const V above = _mm512_srli_epi32(state, kScaleBits);
    const V rest = _mm512_srlv_epi32(above, merged);
    const V freq = _mm512_and_si512(_mm512_srli_epi32(entry, 10), k.freq);
    state = _mm512_add_epi32(_mm512_mullo_epi32(freq, rest), _mm512_and_si512(entry, k.slot));
    const V raw = _mm512_sub_epi32(above, _mm512_sllv_epi32(rest, merged));
    const V first = _mm512_and_si512(_mm512_srli_epi32(entry, 21), k.first);
    return _mm512_or_si512(_mm512_sllv_epi32(first, n_raw), raw);
  }
  /// Raw bits of a step of their own, which stand at `place` of u.
  HWY_INLINE void rawStep(V& state, V& u, V n_raw, std::uint32_t place) {
    const V left = _mm512_max_epi32(_mm512_sub_epi32(n_raw, all(place)), all(0));
    const V n_bits = _mm512_min_epu32(left, all(kStepBits));
    const V bits = _mm512_andnot_si512(_mm512_sllv_epi32(all(0xFFFFFFFF), n_bits), state);
    u = _mm512_or_si512(u, _mm512_slli_epi32(bits, place));
    state = _mm512_srlv_epi32(state, n_bits);
    refill(state);
  }
  template <Map kMap>
  HWY_INLINE V unmappedOf(V u) const {
    if constexpr (kMap == Map::kNone) {
      return u;
    }
    const V sign = _mm512_sub_epi32(all(0), _mm512_and_si512(u, k.one));
    return _mm512_xor_si512(_mm512_srli_epi32(u, 1), sign);
  }

  HWY_INLINE Pair directHalf(const std::uint32_t* table) {
    Pair value;
    value.low = directStep(x.low, entryOf(x.low, table));
    value.high = directStep(x.high, entryOf(x.high, table));
    refill();
    return value;
  }
  template <Map kMap>
  HWY_INLINE Pair shortHalf(const std::uint32_t* table) {
    Pair u;
    u.low = shortStep(x.low, entryOf(x.low, table));
    u.high = shortStep(x.high, entryOf(x.high, table));
    refill();
    return {unmappedOf<kMap>(u.low), unmappedOf<kMap>(u.high)};
  }
  template <Map kMap>
  HWY_INLINE Pair bucketHalf(const std::uint32_t* table) {
    Pair n_raw;
    Pair u;
    u.low = bucketStep(x.low, entryOf(x.low, table), n_raw.low);
    u.high = bucketStep(x.high, entryOf(x.high, table), n_raw.high);
    refill();
    constexpr std::uint32_t kThird = kMergedBits + kStepBits;
    const V longest = _mm512_max_epu32(n_raw.low, n_raw.high);
    if (_mm512_cmpgt_epu32_mask(longest, k.merged) != 0) {
      rawStep(x.low, u.low, n_raw.low, kMergedBits);
      rawStep(x.high, u.high, n_raw.high, kMergedBits);
      if (isAtLeast(longest, kThird + 1) != 0) {
        rawStep(x.low, u.low, n_raw.low, kThird);
        rawStep(x.high, u.high, n_raw.high, kThird);
      }
    }
    return {unmappedOf<kMap>(u.low), unmappedOf<kMap>(u.high)};
  }
  /// One value of each lane of a block of any class.
  template <Map kMap>
  HWY_INLINE Pair decodeHalf(const DecodeTables& tables, std::uint32_t block_class) {
    if (block_class == 0) {
      return {_mm512_setzero_si512(), _mm512_setzero_si512()};
    }
    const std::uint32_t* table = tables.of[symbolTable(block_class)];
    if (block_class <= kMaxDirectClass) {
      return directHalf(table);
    }
    return tables.is_short[symbolTable(block_class)] ? shortHalf<kMap>(table)
                                                     : bucketHalf<kMap>(table);
  }
  /// Classes of a group's blocks.
  HWY_INLINE void decodeClasses(const DecodeTables& tables, std::uint8_t* classes) {
    const std::uint32_t* table = tables.of[classTable(0)];
    const std::uint32_t* first = tables.of[classTable(kFirstContext)];
    const Pair even = directHalf(first);
    Pair odd;
    odd.low = directStep(x.low, gather(table, inContext(x.low, even.low)));
    odd.high = directStep(x.high, gather(table, inContext(x.high, even.high)));
    refill();
    storePairs(even.low, odd.low, classes);
    storePairs(even.high, odd.high, classes + kLanes);
  }

 private:
  HWY_INLINE V inContext(V state, V context) const {
    return _mm512_or_si512(_mm512_slli_epi32(context, kScaleBits), _mm512_and_si512(state, k.slot));
  }
  static HWY_INLINE void storePairs(V first, V second, std::uint8_t* classes) {
    const V pairs = _mm512_or_si512(first, _mm512_slli_epi32(second, 8));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(classes), _mm512_cvtepi32_epi16(pairs));
  }
};

/// Past the caches where the output is longer than they are.
template <bool kStream>
HWY_INLINE void store(void* out, V values) {
  if constexpr (kStream) {
    _mm512_stream_si512(static_cast<V*>(out), values);
  } else {
    _mm512_storeu_si512(out, values);
  }
}

/// Values of even and of odd places next to each other.
template <bool kStream, class T>
HWY_INLINE void storeValues(const Pair& even, const Pair& odd, T* out) {
  if constexpr (sizeof(T) == 2) {
    constexpr __mmask32 kOdd = 0xAAAAAAAA;
    store<kStream>(out, _mm512_mask_blend_epi16(kOdd, even.low, _mm512_slli_epi32(odd.low, 16)));
    store<kStream>(out + 2 * kWide,
                   _mm512_mask_blend_epi16(kOdd, even.high, _mm512_slli_epi32(odd.high, 16)));
  } else {
    const V front = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const V back = _mm512_add_epi32(front, all(8));
    store<kStream>(out, _mm512_permutex2var_epi32(even.low, front, odd.low));
    store<kStream>(out + kWide, _mm512_permutex2var_epi32(even.low, back, odd.low));
    store<kStream>(out + 2 * kWide, _mm512_permutex2var_epi32(even.high, front, odd.high));
    store<kStream>(out + 3 * kWide, _mm512_permutex2var_epi32(even.high, back, odd.high));
  }
}

/// A chunk on the way from its first group to its last.
template <class T>
struct Reader {
  Tail tail;
  Pair x;
  Cursor words;
  T* out;                ///< of the next group
  std::uint64_t n_left;  ///< values from there on

  Reader(const ChunkWords& in, const Chunk& chunk, T* values)
      : x{_mm512_loadu_si512(in.states), _mm512_loadu_si512(in.states + kWide)},
        words(tail.begin(in.words, in.n_words)),
        out(values + chunk.first_value),
        n_left(chunk.n_values) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  HWY_INLINE bool hasRoom(Cursor& at) { return at.at <= at.limit || tail.enter(at); }
  std::uint64_t wholeGroups() const { return n_left / kGroupValues; }
  bool isAtEnd() {
    const LaneMask low = _mm512_cmpneq_epi32_mask(x.low, all(kLowState));
    const LaneMask high = _mm512_cmpneq_epi32_mask(x.high, all(kLowState));
    return (low | high) == 0 && tail.isAtEnd(words);
  }
};

}  // namespace fz::block_ans::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
#endif
