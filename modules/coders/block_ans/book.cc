#include "coders/block_ans/book.h"

#include <algorithm>
#include <cstring>

#include "coders/block_ans/book_codec.h"
#include "coders/block_ans/stream.h"
#include "core/require.h"

namespace fz::block_ans {

namespace {

struct Costs {
  std::uint32_t of[kScale + 1] = {};
  constexpr Costs() {
    for (std::uint32_t f = 1; f <= kScale; ++f) {
      of[f] = symbolCost(f);
    }
  }
};
constexpr Costs kCosts;

/// What the symbols of a table cost with these frequencies, in bits.
std::uint64_t costOf(const std::uint64_t* counts, const std::uint16_t* freq, std::uint32_t limit) {
  std::uint64_t cost = 0;
  for (std::uint32_t s = 0; s < limit; ++s) {
    cost += counts[s] * kCosts.of[freq[s]];
  }
  return cost >> kCostBits;
}

// The bank. A block's numbers are taken to be mixed from geometric distributions around their
// mean, which the class tells but for a factor of two; the tails of real ones are heavier than one
// geometric distribution, hence several scales.

constexpr std::uint32_t kUnitBits = 32;

/// ratio^n in units of 2^-kUnitBits.
constexpr std::uint64_t power(std::uint64_t ratio, std::uint64_t n) {
  std::uint64_t result = std::uint64_t{1} << kUnitBits;
  while (n != 0) {
    result = (n & 1) != 0 ? result * ratio >> kUnitBits : result;
    ratio = ratio * ratio >> kUnitBits;
    n >>= 1;
  }
  return result;
}

struct Part {
  std::uint64_t sum_eighths;  ///< sum of a block in eighths of the class's smallest sum
  std::uint64_t weight;
};
constexpr Part kParts[] = {{1, 2}, {9, 15}, {15, 6}, {20, 1}};

/// Adds a geometric distribution of this mean to the masses of symbols, cut at their limit.
void addGeometric(std::uint64_t sum_eighths,
                  std::uint64_t weight,
                  std::uint32_t limit,
                  std::uint64_t* mass) {
  // Mean m = sum / 64: ratio m / (m + 1).
  constexpr std::uint64_t kOne = 8 * std::uint64_t{kBlockValues};
  const std::uint64_t ratio =
      (std::uint64_t{1} << kUnitBits) - (kOne << kUnitBits) / (sum_eighths + kOne);
  std::uint64_t above = std::uint64_t{1} << kUnitBits;
  for (std::uint32_t s = 0; s < limit; ++s) {
    const std::uint64_t next =
        power(ratio, std::uint64_t{symbolBase(s)} + (std::uint64_t{1} << rawBits(s)));
    mass[s] += weight * (above - next);
    above = next;
  }
}

/// A table in which no symbol is missing.
void normaliseAll(std::uint64_t* mass, std::uint32_t limit, std::uint16_t* freq) {
  for (std::uint32_t s = 0; s < limit; ++s) {
    mass[s] = (mass[s] >> 8) + 1;
  }
  normalise(mass, limit, freq);
}

void fillBankSymbols(std::uint32_t block_class, std::uint32_t limit, std::uint16_t* freq) {
  std::uint64_t mass[kSymbols] = {};
  for (const Part& part : kParts) {
    addGeometric(part.sum_eighths << (block_class - 1), part.weight, limit, mass);
  }
  if (block_class == kMaxClass) {  // has sums up to those of the largest numbers
    for (std::uint32_t octave = 1; octave < limit / 4 - 9; ++octave) {
      addGeometric(std::uint64_t{12} << (block_class - 1 + octave), octave < 4 ? 8 : 1, limit,
                   mass);
    }
  }
  normaliseAll(mass, limit, freq);
}

/// Blocks next to each other are alike, and blocks of zeros are frequent.
void fillBankClasses(std::uint32_t context, std::uint16_t* freq) {
  constexpr std::uint64_t kOne = std::uint64_t{1} << kUnitBits;
  std::uint64_t mass[kSymbols] = {};
  for (std::uint32_t c = 0; c < kClasses; ++c) {
    if (context == kFirstContext) {
      mass[c] = c == 0 ? 6 * kOne : kOne;
      continue;
    }
    const std::uint32_t distance = c > context ? c - context : context - c;
    mass[c] = power(2 * kOne / 5, distance);
    mass[c] = distance == 0 ? mass[c] + mass[c] / 4 : c == 0 ? 16 * mass[c] : mass[c];
    mass[c] += kOne / 160;
  }
  normaliseAll(mass, kClasses, freq);
}

void fillStarts(Coding& coding) {
  for (std::uint32_t t = 0; t < kTables; ++t) {
    std::uint32_t start = 0;
    for (std::uint32_t s = 0; s < kSymbols; ++s) {
      coding.start[t][s] = static_cast<std::uint16_t>(start);
      start += coding.freq[t][s];
    }
  }
}

Coding makeBank(std::uint32_t value_bytes) {
  Coding coding = {};
  for (std::uint32_t c = 1; c <= kMaxClass; ++c) {
    fillBankSymbols(c, symbolLimit(c, value_bytes), coding.freq[symbolTable(c)]);
  }
  for (std::uint32_t context = 0; context < kContexts; ++context) {
    fillBankClasses(context, coding.freq[classTable(context)]);
  }
  fillStarts(coding);
  return coding;
}

/// The first of the longest frequencies is not stored: all add up to kScale.
std::uint32_t impliedSymbol(const std::uint32_t* length, std::uint32_t n_symbols) {
  return static_cast<std::uint32_t>(std::max_element(length, length + n_symbols) - length);
}

/// Bytes of a table, at most `out`; 0 when they do not suffice.
std::size_t writeTable(const std::uint16_t* freq, std::uint32_t table, MutableByteView out) {
  std::uint32_t n_symbols = kSymbols;
  while (freq[n_symbols - 1] == 0) {
    --n_symbols;
  }
  std::uint32_t length[kSymbols];
  BitWriter bits(out);
  bits.put(n_symbols - 1, countBits(table));
  std::uint32_t before = kFirstLength;
  for (std::uint32_t s = 0; s < n_symbols; ++s) {
    length[s] = bits::bitWidth(std::uint32_t{freq[s]});
    bits.putUnary(bits::zigzag(static_cast<std::int32_t>(length[s] - before)));
    before = length[s];
  }
  const std::uint32_t implied = impliedSymbol(length, n_symbols);
  for (std::uint32_t s = 0; s < n_symbols; ++s) {
    if (s != implied && length[s] > 1) {
      bits.put(lowBits(freq[s], length[s] - 1), length[s] - 1);
    }
  }
  return bits.finish();
}

/// Reads one table; false when these bytes are none.
bool readTable(ByteView in, std::uint32_t table, std::uint32_t limit, std::uint16_t* freq) {
  BitReader bits(in);
  const std::uint32_t n_symbols = bits.get(countBits(table)) + 1;
  if (n_symbols > limit) {
    return false;
  }
  std::uint32_t length[kSymbols];
  std::uint32_t before = kFirstLength;
  for (std::uint32_t s = 0; s < n_symbols; ++s) {
    const auto change = bits::unzigzag(bits.getUnary(2 * kMaxLength));
    length[s] = before + static_cast<std::uint32_t>(change);
    if (length[s] > kMaxLength) {
      return false;
    }
    before = length[s];
  }
  const std::uint32_t implied = impliedSymbol(length, n_symbols);
  std::uint32_t sum = 0;
  for (std::uint32_t s = 0; s < n_symbols; ++s) {
    if (s != implied && length[s] != 0) {
      const std::uint32_t f = 1u << (length[s] - 1) | bits.get(length[s] - 1);
      freq[s] = static_cast<std::uint16_t>(f);
      sum += f;
    }
  }
  if (sum >= kScale || bits::bitWidth(kScale - sum) != length[implied]) {
    return false;
  }
  freq[implied] = static_cast<std::uint16_t>(kScale - sum);
  return freq[n_symbols - 1] != 0 && bits.isAtEnd();
}

}  // namespace

void normalise(const std::uint64_t* counts, std::uint32_t n_symbols, std::uint16_t* freq) {
  std::uint64_t total = 0;
  std::uint32_t top = 0;
  for (std::uint32_t s = 0; s < n_symbols; ++s) {
    total += counts[s];
    top = counts[s] > counts[top] ? s : top;
    freq[s] = 0;
  }
  if (total == 0) {
    return;
  }
  std::uint32_t sum = 0;
  for (std::uint32_t s = 0; s < n_symbols; ++s) {
    freq[s] = static_cast<std::uint16_t>(shareOf(counts[s], total));
    sum += freq[s];
  }
  if (sum < kScale) {
    freq[top] = static_cast<std::uint16_t>(freq[top] + (kScale - sum));
  }
  while (sum > kScale) {
    std::uint16_t& largest = *std::max_element(freq, freq + n_symbols);
    const std::uint32_t n_taken = taken(largest, sum - kScale);
    largest = static_cast<std::uint16_t>(largest - n_taken);
    sum -= n_taken;
  }
}

const Coding& bank(std::size_t value_bytes) {
  static const Coding kBank16 = makeBank(2);
  static const Coding kBank32 = makeBank(4);
  return value_bytes == 2 ? kBank16 : kBank32;
}

void makeBook(const Counts& counts, std::size_t value_bytes, Book& book) {
  book.coding = bank(value_bytes);
  std::size_t at = kTables;
  for (std::uint32_t t = 0; t < kTables; ++t) {
    const std::uint32_t limit = tableLimit(t, static_cast<std::uint32_t>(value_bytes));
    std::uint16_t freq[kSymbols] = {};
    normalise(counts.of[t], limit, freq);
    const bool is_used = std::any_of(freq, freq + limit, [](std::uint16_t f) { return f != 0; });
    const std::size_t n_bytes =
        is_used ? writeTable(freq, t, MutableByteView(book.bytes).subspan(at, kMaxTableBytes)) : 0;
    const bool is_counted = n_bytes != 0 && 8 * n_bytes + costOf(counts.of[t], freq, limit) <
                                                costOf(counts.of[t], book.coding.freq[t], limit);
    book.bytes[t] = static_cast<std::uint8_t>(is_counted ? n_bytes : 0);
    if (is_counted) {
      std::copy_n(freq, kSymbols, book.coding.freq[t]);
      at += n_bytes;
    }
  }
  const bool is_bank = at == kTables;
  while (at % kBookAlign != 0) {
    book.bytes[at++] = 0;
  }
  book.n_bytes = is_bank ? 0 : at;
  fillStarts(book.coding);
}

std::size_t readBook(ByteView in, std::size_t value_bytes, Coding& coding) {
  FZ_REQUIRE(in.size() >= kTables, ErrorCode::kCorrupt,
             "BlockANS: {} bytes cannot hold the sizes of {} tables", in.size(), kTables);
  coding = bank(value_bytes);
  std::size_t at = kTables;
  for (std::uint32_t t = 0; t < kTables; ++t) {
    const std::size_t n_bytes = in[t];
    if (n_bytes == 0) {
      continue;
    }
    FZ_REQUIRE(n_bytes <= in.size() - at, ErrorCode::kCorrupt,
               "BlockANS: table {} needs {} bytes, {} are left", t, n_bytes, in.size() - at);
    std::fill_n(coding.freq[t], kSymbols, std::uint16_t{0});
    FZ_REQUIRE(readTable(in.subspan(at, n_bytes), t,
                         tableLimit(t, static_cast<std::uint32_t>(value_bytes)), coding.freq[t]),
               ErrorCode::kCorrupt, "BlockANS: table {} is damaged", t);
    at += n_bytes;
  }
  fillStarts(coding);
  for (; at % kBookAlign != 0; ++at) {
    FZ_REQUIRE(at < in.size() && in[at] == 0, ErrorCode::kCorrupt,
               "BlockANS: byte {} behind the tables must be 0", at);
  }
  return at;
}

void fillSlots(const Coding& coding, SlotSymbols& slots) {
  for (std::uint32_t t = 0; t < kTables; ++t) {
    std::uint8_t* slot = slots.symbol[t];
    for (std::uint32_t s = 0; s < kSymbols; ++s) {
      std::memset(slot, static_cast<int>(s), coding.freq[t][s]);
      slot += coding.freq[t][s];
    }
  }
}

}  // namespace fz::block_ans
