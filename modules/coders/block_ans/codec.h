#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/bits.h"
#include "shared/host_device.h"

/// The text that defines what is inside a chunk: symbols, classes of blocks and the steps of the
/// lanes. SPEC.md has the same in words. Tuned loops elsewhere must give exactly what this gives.
namespace fz::block_ans {

// Geometry; part of the format.
inline constexpr std::uint32_t kBlockValues = 64;  // one class for each block
inline constexpr std::uint32_t kLanes = 32;        // lane l has values 2l and 2l + 1 of a block
inline constexpr std::uint32_t kGroupBlocks = 64;  // lane l has the classes of blocks 2l, 2l + 1
inline constexpr std::uint32_t kGroupValues = kGroupBlocks * kBlockValues;
inline constexpr std::uint32_t kMaxChunkGroups = 512;

// Alphabets and tables.
inline constexpr std::uint32_t kSymbols = 128;
inline constexpr std::uint32_t kClasses = 17;  // 0: all values are 0
inline constexpr std::uint32_t kMaxClass = kClasses - 1;
inline constexpr std::uint32_t kMaxDirectClass = 4;  // no value of 16 or more up to here
inline constexpr std::uint32_t kContexts = 18;       // class of the block before in the lane, or:
inline constexpr std::uint32_t kFirstContext = 17;   // there is none in the group
inline constexpr std::uint32_t kSymbolTables = 16;   // of classes 1 to 16
inline constexpr std::uint32_t kTables = kSymbolTables + kContexts;

// States of the lanes.
inline constexpr std::uint32_t kScaleBits = 10;
inline constexpr std::uint32_t kScale = 1u << kScaleBits;  // sum of a table's frequencies
inline constexpr std::uint32_t kStateBits = 31;
inline constexpr std::uint32_t kLowState = 1u << 15;  // a lane below it takes a word
inline constexpr std::uint32_t kMergedBits = 5;       // kScale << kMergedBits must be <= kLowState
inline constexpr std::uint32_t kStepBits = 15;        // raw bits of a step of their own

/// How values become the numbers u that are coded.
enum class Map : std::uint8_t { kZigzag, kNone };

template <class T>
FZ_HD std::uint32_t mapped(T value, Map map) {
  using U = std::make_unsigned_t<T>;
  const auto bits = static_cast<U>(value);
  return map == Map::kNone ? bits : bits::zigzag(static_cast<std::make_signed_t<T>>(bits));
}
template <class T>
FZ_HD T unmapped(std::uint32_t u, Map map) {
  using U = std::make_unsigned_t<T>;
  const auto bits = static_cast<U>(u);
  return static_cast<T>(map == Map::kNone ? bits : static_cast<U>(bits::unzigzag(bits)));
}

/// u below 16 is its own symbol; above there are four symbols for each power of two.
FZ_HD std::uint32_t symbolOf(std::uint32_t u) {
  if (u < 16) {
    return u;
  }
  const std::uint32_t n_raw = bits::bitWidth(u) - 3;
  return 8 + 4 * n_raw + (u >> n_raw & 3u);
}
/// Low bits of u that its symbol leaves open.
FZ_HD std::uint32_t rawBits(std::uint32_t symbol) {
  return symbol < 16 ? 0 : (symbol >> 2) - 2;
}
/// The smallest u of a symbol.
FZ_HD std::uint32_t symbolBase(std::uint32_t symbol) {
  return symbol < 16 ? symbol : (4 + (symbol & 3u)) << rawBits(symbol);
}
FZ_HD std::uint32_t lowBits(std::uint32_t value, std::uint32_t n_bits) {
  return value & ((1u << n_bits) - 1);
}
/// Raw bits that are part of the symbol's own step, of a second and of a third one.
FZ_HD std::uint32_t mergedRaw(std::uint32_t n_raw) {
  return n_raw < kMergedBits ? n_raw : kMergedBits;
}
FZ_HD std::uint32_t secondRaw(std::uint32_t n_raw) {
  const std::uint32_t left = n_raw - mergedRaw(n_raw);
  return left < kStepBits ? left : kStepBits;
}
FZ_HD std::uint32_t thirdRaw(std::uint32_t n_raw) {
  return n_raw - mergedRaw(n_raw) - secondRaw(n_raw);
}

/// Class of a block from the sum of its u.
FZ_HD std::uint32_t classOf(std::uint64_t sum) {
  const std::uint32_t n_bits = bits::bitWidth(sum);
  return n_bits < kMaxClass ? n_bits : kMaxClass;
}
/// Symbols of a class are below this; values have 8 * value_bytes bits.
FZ_HD std::uint32_t symbolLimit(std::uint32_t block_class, std::uint32_t value_bytes) {
  if (block_class == kMaxClass) {
    return value_bytes == 2 ? 64 : kSymbols;
  }
  return symbolOf((1u << block_class) - 1) + 1;
}
FZ_HD std::uint32_t symbolTable(std::uint32_t block_class) {
  return block_class - 1;
}
FZ_HD std::uint32_t classTable(std::uint32_t context) {
  return kSymbolTables + context;
}
/// Symbols that a table may have.
FZ_HD std::uint32_t tableLimit(std::uint32_t table, std::uint32_t value_bytes) {
  return table < kSymbolTables ? symbolLimit(table + 1, value_bytes) : kClasses;
}

/// Time that a block takes to decode, in values without raw bits; chunks are cut by it.
FZ_HD constexpr std::uint32_t blockWeight(std::uint32_t block_class) {
  if (block_class <= kMaxDirectClass) {
    return block_class == 0 ? 8 : 64;
  }
  return block_class <= 11 ? 96 : block_class <= 13 ? 128 : 160;
}
inline constexpr std::uint32_t kMaxGroupWeight = kGroupBlocks * 160;
inline constexpr std::uint32_t kMinChunkWeight = 10240;   // >= kMaxGroupWeight: no chunk is empty
inline constexpr std::uint32_t kMaxChunkWeight = 262144;  // kMaxChunkGroups groups of zeros

/// Words that a group and a chunk of this weight can take at most: a lane puts one word for each
/// step, a block has two, four (classes from 9 on) or six (class 16) steps in each lane, its class
/// one.
inline constexpr std::uint32_t kMaxGroupWords = kGroupBlocks * (1 + 6 * kLanes);
FZ_HD constexpr std::uint32_t maxChunkWords(std::uint32_t chunk_weight) {
  return (chunk_weight + kMaxGroupWeight) / 2 * 3;
}

/// What encoding and decoding look up, by table and symbol.
struct Coding {
  std::uint16_t freq[kTables][kSymbols];   ///< of kScale; those of a table add up to it, or are 0
  std::uint16_t start[kTables][kSymbols];  ///< sum of the frequencies before
};
struct SlotSymbols {
  std::uint8_t symbol[kTables][kScale];  ///< that has the slot
};

/// The 32 states on the way from the end of a chunk to its front. Words come out last one first.
class LaneEncoder {
 public:
  /// The words must have room for maxChunkWords.
  FZ_HD explicit LaneEncoder(std::uint16_t* words) : words_(words) {
    for (std::uint32_t& x : x_) {
      x = kLowState;
    }
  }

  FZ_HD void symbol(std::uint32_t lane, std::uint32_t freq, std::uint32_t start) {
    symbolAndBits(lane, freq, start, 0, 0);
  }
  FZ_HD void symbolAndBits(std::uint32_t lane,
                           std::uint32_t freq,
                           std::uint32_t start,
                           std::uint32_t n_raw,
                           std::uint32_t raw) {
    std::uint32_t& x = x_[lane];
    if (x >= freq << (kStateBits - kScaleBits - n_raw)) {
      put(x);
    }
    x = (x / freq) << (kScaleBits + n_raw) | raw << kScaleBits | (start + x % freq);
  }
  FZ_HD void rawStep(std::uint32_t lane, std::uint32_t n_raw, std::uint32_t raw) {
    std::uint32_t& x = x_[lane];
    if (x >> (kStateBits - n_raw) != 0) {
      put(x);
    }
    x = x << n_raw | raw;
  }

  std::uint32_t state(std::uint32_t lane) const { return x_[lane]; }
  std::uint32_t words() const { return n_words_; }

 private:
  FZ_HD void put(std::uint32_t& x) {
    words_[n_words_++] = static_cast<std::uint16_t>(x);
    x >>= 16;
  }
  std::uint32_t x_[kLanes];
  std::uint16_t* words_;
  std::uint32_t n_words_ = 0;
};

/// The values of a block, its steps from the last to the first. `u_at(i)` is value i of 64.
template <class U>
FZ_HD void encodeBlock(LaneEncoder& lanes,
                       const Coding& coding,
                       std::uint32_t block_class,
                       U u_at) {
  const std::uint32_t table = symbolTable(block_class);
  for (std::uint32_t half = 2; half-- > 0;) {
    for (std::uint32_t lane = kLanes; lane-- > 0;) {
      const std::uint32_t u = u_at(2 * lane + half);
      const std::uint32_t n_raw = thirdRaw(rawBits(symbolOf(u)));
      if (n_raw != 0) {
        lanes.rawStep(lane, n_raw, lowBits(u >> (kMergedBits + kStepBits), n_raw));
      }
    }
    for (std::uint32_t lane = kLanes; lane-- > 0;) {
      const std::uint32_t u = u_at(2 * lane + half);
      const std::uint32_t n_raw = secondRaw(rawBits(symbolOf(u)));
      if (n_raw != 0) {
        lanes.rawStep(lane, n_raw, lowBits(u >> kMergedBits, n_raw));
      }
    }
    for (std::uint32_t lane = kLanes; lane-- > 0;) {
      const std::uint32_t u = u_at(2 * lane + half);
      const std::uint32_t symbol = symbolOf(u);
      const std::uint32_t n_raw = mergedRaw(rawBits(symbol));
      lanes.symbolAndBits(lane, coding.freq[table][symbol], coding.start[table][symbol], n_raw,
                          lowBits(u, n_raw));
    }
  }
}

/// The classes of a group's blocks.
FZ_HD void encodeClasses(LaneEncoder& lanes, const Coding& coding, const std::uint8_t* classes) {
  for (std::uint32_t odd = 2; odd-- > 0;) {
    for (std::uint32_t lane = kLanes; lane-- > 0;) {
      const std::uint32_t table = classTable(odd != 0 ? classes[2 * lane] : kFirstContext);
      const std::uint32_t block_class = classes[2 * lane + odd];
      lanes.symbol(lane, coding.freq[table][block_class], coding.start[table][block_class]);
    }
  }
}

/// The 32 states on the way from the front of a chunk to its end.
class LaneDecoder {
 public:
  FZ_HD LaneDecoder(const std::uint32_t* states, const std::uint8_t* words, std::uint32_t n_words)
      : words_(words), n_words_(n_words) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      x_[lane] = states[lane];
    }
  }

  /// The symbol under a lane's state; the lane leaves it and its raw bits behind.
  FZ_HD std::uint32_t symbolAndBits(std::uint32_t lane,
                                    std::uint32_t table,
                                    const Coding& coding,
                                    const SlotSymbols& slots,
                                    std::uint32_t& raw) {
    std::uint32_t& x = x_[lane];
    const std::uint32_t slot = x & (kScale - 1);
    const std::uint32_t symbol = slots.symbol[table][slot];
    const std::uint32_t n_raw = table < kSymbolTables ? mergedRaw(rawBits(symbol)) : 0;
    raw = lowBits(x >> kScaleBits, n_raw);
    x = coding.freq[table][symbol] * (x >> (kScaleBits + n_raw)) + slot -
        coding.start[table][symbol];
    return symbol;
  }
  /// Raw bits of a step of their own.
  FZ_HD std::uint32_t rawStep(std::uint32_t lane, std::uint32_t n_raw) {
    const std::uint32_t raw = lowBits(x_[lane], n_raw);
    x_[lane] >>= n_raw;
    return raw;
  }
  /// Ends a step of this lane; lanes come in ascending order. Past the last word, which only a
  /// damaged chunk comes to, states stay small.
  FZ_HD void refill(std::uint32_t lane) {
    if (x_[lane] < kLowState && at_ != n_words_) {
      const std::uint8_t* word = words_ + 2 * std::uint64_t{at_++};
      x_[lane] = x_[lane] << 16 | word[0] | static_cast<std::uint32_t>(word[1]) << 8;
    }
  }
  FZ_HD void refill() {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      refill(lane);
    }
  }

  /// All words are used and all lanes are back where the encoder began.
  FZ_HD bool isAtEnd() const {
    bool is_back = at_ == n_words_;
    for (const std::uint32_t x : x_) {
      is_back = is_back && x == kLowState;
    }
    return is_back;
  }

 private:
  std::uint32_t x_[kLanes];
  const std::uint8_t* words_;
  std::uint32_t n_words_;
  std::uint32_t at_ = 0;
};

/// The opposite of encodeClasses.
FZ_HD void decodeClasses(LaneDecoder& lanes,
                         const Coding& coding,
                         const SlotSymbols& slots,
                         std::uint8_t* classes) {
  for (std::uint32_t odd = 0; odd < 2; ++odd) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t table = classTable(odd != 0 ? classes[2 * lane] : kFirstContext);
      std::uint32_t raw = 0;
      classes[2 * lane + odd] =
          static_cast<std::uint8_t>(lanes.symbolAndBits(lane, table, coding, slots, raw));
    }
    lanes.refill();
  }
}

/// The opposite of encodeBlock: 64 numbers u.
FZ_HD void decodeBlock(LaneDecoder& lanes,
                       const Coding& coding,
                       const SlotSymbols& slots,
                       std::uint32_t block_class,
                       std::uint32_t* u) {
  for (std::uint32_t half = 0; half < 2; ++half) {
    std::uint32_t n_raw[kLanes];
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      std::uint32_t raw = 0;
      const std::uint32_t symbol =
          lanes.symbolAndBits(lane, symbolTable(block_class), coding, slots, raw);
      u[2 * lane + half] = symbolBase(symbol) | raw;
      n_raw[lane] = rawBits(symbol);
    }
    lanes.refill();
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (secondRaw(n_raw[lane]) != 0) {
        u[2 * lane + half] |= lanes.rawStep(lane, secondRaw(n_raw[lane])) << kMergedBits;
        lanes.refill(lane);
      }
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (thirdRaw(n_raw[lane]) != 0) {
        u[2 * lane + half] |= lanes.rawStep(lane, thirdRaw(n_raw[lane]))
                              << (kMergedBits + kStepBits);
        lanes.refill(lane);
      }
    }
  }
}

}  // namespace fz::block_ans
