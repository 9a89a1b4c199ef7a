// Chunks of values to words.
#include <cstring>

#include "coders/block_ans/cpu/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/block_ans/cpu/encode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include "coders/block_ans/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace fz::block_ans::HWY_NAMESPACE {  // NOLINT

#ifdef FZ_BLOCK_ANS_WIDE

/// How a state takes in its symbol.
struct Steps {
  V reciprocal;
  V threshold;
  V factor;  ///< and above its 16 bits a shift
  V bias;
};

// Where the steps of symbols are looked up: in registers as long as those of a block fit, since
// gathering from memory takes much longer.

struct In16 {
  explicit HWY_INLINE In16(const StepTable& table)
      : reciprocal(_mm512_load_si512(table.reciprocal)),
        threshold(_mm512_load_si512(table.threshold)),
        factor(_mm512_load_si512(table.factor)),
        bias(_mm512_load_si512(table.bias)) {}
  HWY_INLINE Steps of(V symbol) const {
    return {_mm512_permutexvar_epi32(symbol, reciprocal),
            _mm512_permutexvar_epi32(symbol, threshold), _mm512_permutexvar_epi32(symbol, factor),
            _mm512_permutexvar_epi32(symbol, bias)};
  }
  V reciprocal, threshold, factor, bias;
};

struct In32 {
  explicit HWY_INLINE In32(const StepTable& from) : table(from) {}
  HWY_INLINE Steps of(V symbol) const {
    return {find(table.reciprocal, symbol), find(table.threshold, symbol),
            find(table.factor, symbol), find(table.bias, symbol)};
  }
  static HWY_INLINE V find(const std::uint32_t* column, V symbol) {
    return _mm512_permutex2var_epi32(_mm512_load_si512(column), symbol,
                                     _mm512_load_si512(column + kWide));
  }
  const StepTable& table;
};

struct In64 {
  explicit HWY_INLINE In64(const StepTable& from) : table(from) {}
  HWY_INLINE Steps of(V symbol) const {
    const LaneMask upper = isAtLeast(symbol, 32);
    return {find(table.reciprocal, symbol, upper), find(table.threshold, symbol, upper),
            find(table.factor, symbol, upper), find(table.bias, symbol, upper)};
  }
  static HWY_INLINE V find(const std::uint32_t* column, V symbol, LaneMask upper) {
    return _mm512_mask_mov_epi32(In32::find(column, symbol), upper,
                                 In32::find(column + 2 * kWide, symbol));
  }
  const StepTable& table;
};

struct InMemory {
  explicit HWY_INLINE InMemory(const StepTable& from) : table(from) {}
  HWY_INLINE Steps of(V symbol) const {
    return {find(table.reciprocal, symbol), find(table.threshold, symbol),
            find(table.factor, symbol), find(table.bias, symbol)};
  }
  static HWY_INLINE V find(const std::uint32_t* column, V index) {
    return _mm512_i32gather_epi32(index, column, 4);
  }
  const StepTable& table;
};

HWY_INLINE V highProduct(V a, V b) {
  const V even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
  const V odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
  return _mm512_mask_mov_epi32(even, 0xAAAA, odd);
}

/// All lanes, from the last to the first: element i of `upper` is lane 31 - i, of `lower` 15 - i,
/// so that words come out in the order in which they are put.
class WideLanes {
 public:
  explicit WideLanes(std::uint16_t* words)
      : upper_(all(kLowState)), lower_(all(kLowState)), end_(words) {}

  template <class Lookup>
  HWY_INLINE void symbols(const Lookup& lookup, V upper, V lower) {
    upper_ = step(upper_, lookup.of(upper));
    lower_ = step(lower_, lookup.of(lower));
  }
  /// The same with raw bits, which stand at kScaleBits.
  template <class Lookup>
  HWY_INLINE void symbolsAndBits(
      const Lookup& lookup, V upper, V lower, V upper_bits, V lower_bits) {
    symbols(lookup, upper, lower);
    upper_ = _mm512_add_epi32(upper_, upper_bits);
    lower_ = _mm512_add_epi32(lower_, lower_bits);
  }
  /// Contexts of classes differ from lane to lane.
  HWY_INLINE void classes(const StepTable* tables, V upper, V lower) {
    upper_ = step(upper_, InMemory(*tables).of(upper));
    lower_ = step(lower_, InMemory(*tables).of(lower));
  }
  HWY_INLINE void rawSteps(V upper_bits, V upper, V lower_bits, V lower) {
    upper_ = rawStep(upper_, upper_bits, upper);
    lower_ = rawStep(lower_, lower_bits, lower);
  }

  const std::uint16_t* end() const { return end_; }
  /// Of lane 0 to 31.
  void states(std::uint32_t* x) const {
    const V backwards = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    _mm512_storeu_si512(x, _mm512_permutexvar_epi32(backwards, lower_));
    _mm512_storeu_si512(x + kWide, _mm512_permutexvar_epi32(backwards, upper_));
  }

 private:
  HWY_INLINE V put(V x, LaneMask mask) {
    const V words = _mm512_maskz_compress_epi32(mask, x);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(end_), _mm512_cvtepi32_epi16(words));
    end_ += countOf(mask);
    return _mm512_mask_srli_epi32(x, mask, x, 16);
  }
  HWY_INLINE V step(V x, const Steps& steps) {
    x = put(x, _mm512_cmpge_epu32_mask(x, steps.threshold));
    const V quotient =
        _mm512_srlv_epi32(highProduct(x, steps.reciprocal), _mm512_srli_epi32(steps.factor, 16));
    const V product = _mm512_mullo_epi32(quotient, _mm512_and_si512(steps.factor, all(0xFFFF)));
    return _mm512_add_epi32(product, _mm512_add_epi32(x, steps.bias));
  }
  HWY_INLINE V rawStep(V x, V n_bits, V bits) {
    const V above = _mm512_srlv_epi32(x, _mm512_sub_epi32(all(kStateBits), n_bits));
    x = put(x, _mm512_test_epi32_mask(above, above));
    return _mm512_or_si512(_mm512_sllv_epi32(x, n_bits), bits);
  }

  V upper_;
  V lower_;
  std::uint16_t* end_;
};

HWY_INLINE V lowBitsOf(V value, V n_bits) {
  return _mm512_andnot_si512(_mm512_sllv_epi32(all(0xFFFFFFFF), n_bits), value);
}

/// One value of each lane, with its symbol.
struct Half {
  V u[2];  ///< of the upper and the lower lanes
  V n_raw[2];
  V symbol[2];

  HWY_INLINE void findSymbols() {
    for (std::uint32_t i = 0; i < 2; ++i) {
      n_raw[i] = rawBitsOf(u[i]);
      symbol[i] = symbolsOf(u[i], n_raw[i]);
    }
  }
  HWY_INLINE bool hasAtLeast(std::uint32_t limit) const {
    return (isAtLeast(symbol[0], limit) | isAtLeast(symbol[1], limit)) != 0;
  }
  template <class Lookup>
  HWY_INLINE void encode(WideLanes& lanes, const Lookup& lookup) const {
    V bits[2];
    for (std::uint32_t i = 0; i < 2; ++i) {
      const V merged = _mm512_min_epu32(n_raw[i], all(kMergedBits));
      bits[i] = _mm512_slli_epi32(lowBitsOf(u[i], merged), kScaleBits);
    }
    lanes.symbolsAndBits(lookup, symbol[0], symbol[1], bits[0], bits[1]);
  }
  /// Raw bits from `first` on, as far as n_raw says.
  HWY_INLINE void encodeRaw(WideLanes& lanes, std::uint32_t first) const {
    V n_bits[2];
    V bits[2];
    for (std::uint32_t i = 0; i < 2; ++i) {
      const V left = _mm512_max_epi32(_mm512_sub_epi32(n_raw[i], all(first)), all(0));
      n_bits[i] = _mm512_min_epu32(left, all(kStepBits));
      bits[i] = lowBitsOf(_mm512_srli_epi32(u[i], first), n_bits[i]);
    }
    lanes.rawSteps(n_bits[0], bits[0], n_bits[1], bits[1]);
  }
};

/// Values of every second place, those of the upper and the lower lanes.
HWY_INLINE void takeHalf(const V* u, std::uint32_t odd, V* half) {
  const V place = _mm512_add_epi32(
      _mm512_setr_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), all(odd));
  half[0] = _mm512_permutex2var_epi32(u[2], place, u[3]);
  half[1] = _mm512_permutex2var_epi32(u[0], place, u[1]);
}

// The first symbols with raw bits in a second and in a third step.
constexpr std::uint32_t kFirstSecond = 4 * (kMergedBits + 3);
constexpr std::uint32_t kFirstThird = 4 * (kMergedBits + kStepBits + 3);
static_assert(kFirstSecond == 2 * kWide);

HWY_INLINE void encodeBlockWide(WideLanes& lanes,
                                const StepTable& table,
                                std::uint32_t block_class,
                                const V* u) {
  const V any = _mm512_or_si512(_mm512_or_si512(u[0], u[1]), _mm512_or_si512(u[2], u[3]));
  if (block_class <= kMaxDirectClass || isAtLeast(any, 16) == 0) {
    const In16 lookup(table);
    for (std::uint32_t odd = 2; odd-- > 0;) {
      V half[2];
      takeHalf(u, odd, half);
      lanes.symbols(lookup, half[0], half[1]);
    }
    return;
  }
  for (std::uint32_t odd = 2; odd-- > 0;) {
    Half half;
    takeHalf(u, odd, half.u);
    half.findSymbols();
    if (!half.hasAtLeast(kFirstSecond)) {
      half.encode(lanes, In32(table));
      continue;
    }
    if (half.hasAtLeast(kFirstThird)) {
      half.encodeRaw(lanes, kMergedBits + kStepBits);
    }
    half.encodeRaw(lanes, kMergedBits);
    half.hasAtLeast(64) ? half.encode(lanes, InMemory(table)) : half.encode(lanes, In64(table));
  }
}

/// Classes of a group's blocks, of every second one, lanes from the last to the first.
HWY_INLINE void encodeClassesWide(WideLanes& lanes,
                                  const EncodeTables& tables,
                                  const std::uint8_t* classes) {
  const V backwards = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  V even[2];
  V odd[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    const __m256i pairs =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(classes + kLanes * (1 - i)));
    const V wide = _mm512_permutexvar_epi32(backwards, _mm512_cvtepu16_epi32(pairs));
    even[i] = _mm512_and_si512(wide, all(0xFF));
    odd[i] = _mm512_srli_epi32(wide, 8);
  }
  // The tables of contexts follow each other.
  constexpr std::uint32_t kStride = sizeof(StepTable) / sizeof(std::uint32_t);
  const auto in_context = [&](std::uint32_t i) HWY_ATTR {
    return _mm512_add_epi32(_mm512_mullo_epi32(even[i], all(kStride)), odd[i]);
  };
  lanes.classes(&tables.of[classTable(0)], in_context(0), in_context(1));
  lanes.symbols(In32(tables.of[classTable(kFirstContext)]), even[0], even[1]);
}

/// Asks for values that are needed soon: hardware does not expect a way from back to front.
template <class T>
HWY_INLINE void fetchBefore(const ValueView& in, std::uint64_t block) {
  constexpr std::uint64_t kBlocksAhead = 16;
  if (block >= kBlocksAhead) {
    const T* values = static_cast<const T*>(in.values) + (block - kBlocksAhead) * kBlockValues;
    for (std::size_t i = 0; i < kBlockValues; i += 64 / sizeof(T)) {
      __builtin_prefetch(values + i);
    }
  }
}

template <class T, Map kMap>
std::uint32_t encodeGroupsAs(const ValueView& in,
                             const Chunk& chunk,
                             const std::uint8_t* classes,
                             const EncodeTables& tables,
                             std::uint16_t* stack,
                             std::uint32_t* states) {
  WideLanes lanes(stack);
  const std::uint64_t n_raw = rawWords(chunk.n_values, in.value_bytes);
  const std::uint64_t first_group = chunk.first_value / kGroupValues;
  T room[kBlockValues];
  for (std::uint64_t g = first_group + chunk.n_groups; g-- > first_group;) {
    const std::uint8_t* of_group = classes + g * kGroupBlocks;
    for (std::uint32_t b = kGroupBlocks; b-- > 0;) {
      fetchBefore<T>(in, g * kGroupBlocks + b);
      if (of_group[b] != 0) {
        V u[4];
        loadNumbers<T, kMap>(wholeBlock(in, g * kGroupBlocks + b, room), u);
        encodeBlockWide(lanes, tables.of[symbolTable(of_group[b])], of_group[b], u);
      }
    }
    encodeClassesWide(lanes, tables, of_group);
    if (static_cast<std::uint64_t>(lanes.end() - stack) >= n_raw) {
      break;
    }
  }
  lanes.states(states);
  return static_cast<std::uint32_t>(lanes.end() - stack);
}

std::uint32_t encodeGroups(const ValueView& in,
                           const Chunk& chunk,
                           const std::uint8_t* classes,
                           const EncodeTables& tables,
                           std::uint16_t* stack,
                           std::uint32_t* states) {
  std::uint32_t n_words = 0;
  withTypeAndMap(in, [&]<class T, Map kMap>() {
    n_words = encodeGroupsAs<T, kMap>(in, chunk, classes, tables, stack, states);
  });
  return n_words;
}

void copyReversed(const std::uint16_t* words, std::uint32_t n_words, std::uint8_t* out) {
  alignas(64) std::uint16_t places[32];
  for (std::uint16_t i = 0; i < 32; ++i) {
    places[i] = static_cast<std::uint16_t>(31 - i);
  }
  const V backwards = _mm512_load_si512(places);
  std::uint32_t left = n_words;
  for (; left >= 32; left -= 32, out += 64) {
    _mm512_storeu_si512(out,
                        _mm512_permutexvar_epi16(backwards, _mm512_loadu_si512(words + left - 32)));
  }
  copyReversedPlain(words, left, out);
}

void makeTables(const Coding& coding, EncodeTables& tables) {
  for (std::uint32_t t = 0; t < kTables; ++t) {
    const bool is_symbols = t < kSymbolTables;
    for (std::uint32_t s = 0; s < kSymbols; ++s) {
      const std::uint32_t n_raw = is_symbols ? mergedRaw(rawBits(s)) : 0;
      fillStep(coding.freq[t][s], coding.start[t][s], n_raw, s, tables.of[t]);
    }
  }
}

#else

std::uint32_t encodeGroups(const ValueView& in,
                           const Chunk& chunk,
                           const std::uint8_t* classes,
                           const EncodeTables& tables,
                           std::uint16_t* stack,
                           std::uint32_t* states) {
  return encodePlain(in, chunk, classes, tables.coding, stack, states);
}

void copyReversed(const std::uint16_t* words, std::uint32_t n_words, std::uint8_t* out) {
  copyReversedPlain(words, n_words, out);
}

void makeTables(const Coding& coding, EncodeTables& tables) {
  tables.coding = coding;
}

#endif

}  // namespace fz::block_ans::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::block_ans {

HWY_EXPORT(encodeGroups);  // NOLINT
HWY_EXPORT(copyReversed);  // NOLINT
HWY_EXPORT(makeTables);    // NOLINT

void makeEncodeTables(const Coding& coding, EncodeTables& tables) {
  HWY_DYNAMIC_DISPATCH(makeTables)(coding, tables);
}

std::uint32_t encodeChunk(const ValueView& in,
                          const Chunk& chunk,
                          const std::uint8_t* classes,
                          const EncodeTables& tables,
                          std::uint16_t* stack,
                          std::uint8_t* out) {
  const auto n_raw = static_cast<std::uint32_t>(rawWords(chunk.n_values, in.value_bytes));
  std::uint32_t states[kLanes];
  const std::uint32_t n_put =
      HWY_DYNAMIC_DISPATCH(encodeGroups)(in, chunk, classes, tables, stack, states);
  std::uint8_t front[kMaxStateBytes];
  const auto n_front = static_cast<std::uint32_t>(writeStates(states, front));
  if (n_front / 2 + n_put < n_raw) {
    std::memcpy(out, front, n_front);
    HWY_DYNAMIC_DISPATCH(copyReversed)(stack, n_put, out + n_front);
    return n_front / 2 + n_put;
  }
  std::memcpy(out, static_cast<const std::uint8_t*>(in.values) + chunk.first_value * in.value_bytes,
              2 * std::size_t{n_raw});
  return n_raw;
}

}  // namespace fz::block_ans
#endif
