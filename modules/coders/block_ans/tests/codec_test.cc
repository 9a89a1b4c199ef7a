// The parts of the format by themselves: symbols, classes, tables, states.
#include "coders/block_ans/codec.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

#include "coders/block_ans/book.h"
#include "coders/block_ans/stream.h"
#include "fz/error.h"
#include "support/stage_case.h"

namespace fz::block_ans {
namespace {

using test::Bytes;

TEST(BlockAnsCodec, SymbolAndRawBitsTellEveryNumber) {
  const auto check = [](std::uint32_t u) {
    const std::uint32_t symbol = symbolOf(u);
    ASSERT_LT(symbol, kSymbols);
    const std::uint32_t n_raw = rawBits(symbol);
    ASSERT_EQ(symbolBase(symbol) | lowBits(u, n_raw), u);
    ASSERT_EQ(mergedRaw(n_raw) + secondRaw(n_raw) + thirdRaw(n_raw), n_raw);
    ASSERT_LE(secondRaw(n_raw), kStepBits);
    ASSERT_LE(thirdRaw(n_raw), kStepBits);
  };
  for (std::uint32_t u = 0; u < 100000; ++u) {
    check(u);
  }
  for (std::uint32_t bit = 5; bit < 32; ++bit) {
    for (std::uint32_t below = 0; below < 100; ++below) {
      check((1u << bit) - 1 - below % (1u << bit));
      check(1u << bit | below % (1u << bit));
    }
  }
  check(0xFFFFFFFF);
}

TEST(BlockAnsCodec, ClassIsTheLengthOfTheSum) {
  EXPECT_EQ(classOf(0), 0u);
  EXPECT_EQ(classOf(1), 1u);
  EXPECT_EQ(classOf(2), 2u);
  EXPECT_EQ(classOf(3), 2u);
  EXPECT_EQ(classOf((1u << 15) - 1), 15u);
  EXPECT_EQ(classOf(1u << 15), 16u);
  EXPECT_EQ(classOf(std::uint64_t{64} * 0xFFFFFFFF), 16u);
}

TEST(BlockAnsCodec, NoValueOfAClassHasASymbolPastItsLimit) {
  for (std::uint32_t c = 1; c < kMaxClass; ++c) {
    EXPECT_EQ(symbolOf((1u << c) - 1) + 1, symbolLimit(c, 4));
    EXPECT_EQ(symbolLimit(c, 2), symbolLimit(c, 4));
  }
  EXPECT_EQ(symbolOf(0xFFFF) + 1, symbolLimit(kMaxClass, 2));
  EXPECT_EQ(symbolOf(0xFFFFFFFF) + 1, symbolLimit(kMaxClass, 4));
  EXPECT_EQ(symbolLimit(kMaxDirectClass, 4), 16u);
}

TEST(BlockAnsCodec, NoGroupAndNoChunkExceedsItsWords) {
  std::uint32_t steps[kClasses] = {};
  for (std::uint32_t c = 1; c <= kMaxClass; ++c) {
    for (std::uint32_t s = 0; s < symbolLimit(c, 4); ++s) {
      const std::uint32_t n_raw = rawBits(s);
      steps[c] = std::max(
          steps[c], 1u + (secondRaw(n_raw) != 0 ? 1u : 0u) + (thirdRaw(n_raw) != 0 ? 1u : 0u));
    }
  }
  for (std::uint32_t c = 0; c < kClasses; ++c) {
    const std::uint32_t n_words = kGroupBlocks * (1 + 2 * kLanes * steps[c]);
    EXPECT_LE(n_words, kMaxGroupWords) << c;
    EXPECT_LE(2 * n_words, 3 * kGroupBlocks * blockWeight(c)) << c;
  }
}

TEST(BlockAnsBook, FrequenciesAddUpWhateverTheCounts) {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 2000; ++round) {
    std::uint64_t counts[kSymbols] = {};
    const auto n_symbols = static_cast<std::uint32_t>(1 + rng() % kSymbols);
    for (std::uint32_t s = 0; s < n_symbols; ++s) {
      counts[s] = rng() % 3 == 0 ? 0 : rng() >> (20 + rng() % 44);
    }
    counts[n_symbols - 1] += 1;
    std::uint16_t freq[kSymbols] = {};
    normalise(counts, kSymbols, freq);
    ASSERT_EQ(std::accumulate(freq, freq + kSymbols, 0u), kScale);
    for (std::uint32_t s = 0; s < kSymbols; ++s) {
      ASSERT_EQ(freq[s] != 0, counts[s] != 0);
    }
  }
}

TEST(BlockAnsBook, SurplusGoesToTheFirstOfTheMostFrequent) {
  const std::uint64_t thirds[3] = {5, 5, 5};
  std::uint16_t freq[3];
  normalise(thirds, 3, freq);
  EXPECT_EQ(freq[0], 342);
  EXPECT_EQ(freq[1], 341);
  EXPECT_EQ(freq[2], 341);
}

TEST(BlockAnsBook, DeficitIsTakenFromTheLargestByQuarters) {
  std::uint64_t counts[101] = {};
  counts[0] = counts[1] = 1000000;
  std::fill(counts + 2, counts + 101, 1);
  std::uint16_t freq[101];
  normalise(counts, 101, freq);
  EXPECT_EQ(freq[0], 512 - 99) << "99 frequencies of 1, less than a quarter of 512";
  EXPECT_EQ(freq[1], 512);
}

TEST(BlockAnsBook, BankKnowsEverySymbolOfEveryTable) {
  for (const std::uint32_t value_bytes : {2u, 4u}) {
    const Coding& coding = bank(value_bytes);
    for (std::uint32_t t = 0; t < kTables; ++t) {
      std::uint32_t sum = 0;
      for (std::uint32_t s = 0; s < kSymbols; ++s) {
        EXPECT_EQ(coding.start[t][s], sum);
        EXPECT_EQ(coding.freq[t][s] != 0, s < tableLimit(t, value_bytes)) << t << " " << s;
        sum += coding.freq[t][s];
      }
      EXPECT_EQ(sum, kScale);
    }
  }
}

Counts someCounts() {
  Counts counts = {};
  std::mt19937_64 rng(2);
  for (std::uint32_t t = 0; t < kTables; ++t) {
    for (std::uint32_t s = 0; t % 3 != 1 && s < tableLimit(t, 4); s += 1 + t % 2) {
      counts.of[t][s] = rng() % 100000;
    }
  }
  return counts;
}

TEST(BlockAnsBook, TablesComeBackFromTheirBytes) {
  Book book;
  makeBook(someCounts(), 4, book);
  ASSERT_GT(book.n_bytes, kTables);
  Coding coding;
  EXPECT_EQ(readBook(ByteView(book.bytes).first(book.n_bytes), 4, coding), book.n_bytes);
  EXPECT_TRUE(std::equal(&coding.freq[0][0], &coding.freq[0][0] + kTables * kSymbols,
                         &book.coding.freq[0][0]));
  EXPECT_TRUE(std::equal(&coding.start[0][0], &coding.start[0][0] + kTables * kSymbols,
                         &book.coding.start[0][0]));
}

TEST(BlockAnsBook, NothingCountedNeedsNoBytes) {
  Book book;
  makeBook(Counts{}, 2, book);
  EXPECT_EQ(book.n_bytes, 0u);
  EXPECT_TRUE(std::equal(&book.coding.freq[0][0], &book.coding.freq[0][0] + kTables * kSymbols,
                         &bank(2).freq[0][0]));
}

/// A book whose only table is the first of classes.
Bytes bookWith(const Bytes& table) {
  Bytes book(kTables);
  book[kSymbolTables] = static_cast<std::uint8_t>(table.size());
  book.insert(book.end(), table.begin(), table.end());
  book.resize(bits::roundUp<std::size_t>(book.size(), kBookAlign));
  return book;
}

TEST(BlockAnsBook, WorkedTableOfTheSpecificationIsRead) {
  Coding coding;
  readBook(bookWith({0x02, 0x62, 0x20, 0x10}), 4, coding);
  const std::uint16_t* freq = coding.freq[kSymbolTables];
  EXPECT_EQ(freq[0], 640);
  EXPECT_EQ(freq[1], 192);
  EXPECT_EQ(freq[2], 192);
  EXPECT_EQ(freq[3], 0);
}

TEST(BlockAnsBook, TablesThatLieAreRefused) {
  const auto refused = [](const Bytes& book, std::size_t value_bytes) {
    Coding coding;
    try {
      readBook(book, value_bytes, coding);
      return false;
    } catch (const Error& e) {
      return e.code() == ErrorCode::kCorrupt;
    }
  };
  Book good;
  makeBook(someCounts(), 4, good);
  const Bytes bytes(good.bytes.begin(),
                    good.bytes.begin() + static_cast<std::ptrdiff_t>(good.n_bytes));
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_TRUE(refused(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)), 4))
        << n;
  }
  EXPECT_TRUE(refused(bytes, 2)) << "a table of class 16 has symbols that 16 bits have not";
  // A length that grows past 11, one below 0, no one in sight, bytes behind the end, padding.
  EXPECT_TRUE(refused(bookWith({0x00, 0x02}), 4));
  EXPECT_TRUE(refused(bookWith({0x00, 0x00, 0x40}), 4));
  EXPECT_TRUE(refused(bookWith({0x00, 0x00, 0x00, 0x00, 0x00}), 4));
  EXPECT_TRUE(refused(bookWith({0x02, 0x62, 0x20, 0x10, 0x00}), 4));
  Bytes padded = bookWith({0x00, 0x08, 0x00});
  EXPECT_FALSE(refused(bookWith({0x00, 0x08}), 4)) << "one class";
  padded.back() = 1;
  EXPECT_TRUE(refused(padded, 4));
  EXPECT_TRUE(refused(bookWith({0x1F}), 4)) << "more than 17 classes";
}

TEST(BlockAnsStream, StatesComeBackFromTheirBytes) {
  std::mt19937_64 rng(3);
  for (int round = 0; round < 500; ++round) {
    std::uint32_t x[kLanes];
    for (std::uint32_t& state : x) {
      const std::uint64_t range = std::uint64_t{1} << (15 + rng() % 16);
      state = static_cast<std::uint32_t>(range + rng() % range);
    }
    x[0] = round == 0 ? kLowState : x[0];
    x[1] = round == 0 ? 0x7FFFFFFF : x[1];
    Bytes bytes(kMaxStateBytes);
    bytes.resize(writeStates(x, bytes));
    ASSERT_GE(bytes.size(), kMinStateBytes);
    ASSERT_EQ(bytes.size() % 2, 0u);
    std::uint32_t read[kLanes];
    ASSERT_EQ(readStates(bytes, read), bytes.size());
    ASSERT_TRUE(std::equal(x, x + kLanes, read));
    bytes.pop_back();
    ASSERT_EQ(readStates(bytes, read), 0u) << "one byte is missing";
  }
}

}  // namespace
}  // namespace fz::block_ans
