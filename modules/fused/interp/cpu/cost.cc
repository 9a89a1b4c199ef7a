#include "fused/interp/cpu/cost.h"

#include <algorithm>
#include <bit>

#include "shared/bits.h"

namespace fz::interp {

namespace {

constexpr std::uint64_t kOne = 1024;  // a bit
constexpr std::uint64_t kZeroBlock = 410;
constexpr std::uint64_t kBlockClass = 2 * kOne;
constexpr std::uint64_t kTableEntry = 3 * kOne;
constexpr std::uint32_t kDirect = 16;  // zigzag values below it are symbols themselves

constexpr std::size_t kTableBits = 8;

/// 1024 log2(1 + i / 256), by squaring: no library and no rounding has a say in it.
constexpr std::array<std::uint16_t, (1u << kTableBits) + 1> makeTable() {
  std::array<std::uint16_t, (1u << kTableBits) + 1> table = {};
  for (std::uint32_t i = 0; i <= 1u << kTableBits; ++i) {
    std::uint64_t x = (std::uint64_t{1} << 31) + (std::uint64_t{i} << (31 - kTableBits));
    std::uint32_t bits = 0;
    if (i == 1u << kTableBits) {
      table[i] = kOne;
      continue;
    }
    for (int b = 0; b < 11; ++b) {
      x = x * x >> 31;
      bits <<= 1;
      if (x >> 32 != 0) {
        bits |= 1;
        x >>= 1;
      }
    }
    table[i] = static_cast<std::uint16_t>((bits + 1) / 2);
  }
  return table;
}
constexpr auto kLogs = makeTable();

std::uint32_t zigzag(std::int32_t v) {
  return (static_cast<std::uint32_t>(v) << 1) ^ static_cast<std::uint32_t>(v >> 31);
}

template <class C>
std::uint64_t sumOf(const C* block) {
  if constexpr (sizeof(C) == 2) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kBlockCodes; ++i) {
      sum += zigzag(block[i]);
    }
    return sum;
  } else {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kBlockCodes; ++i) {
      sum += zigzag(block[i]);
    }
    return sum;
  }
}

constexpr std::uint32_t log2Here(std::uint32_t v) {
  const auto exponent = static_cast<std::uint32_t>(std::bit_width(v)) - 1;
  const std::uint32_t fraction = exponent == 0 ? 0 : v << (32 - exponent);
  return exponent * static_cast<std::uint32_t>(kOne) + kLogs[fraction >> (32 - kTableBits)];
}

/// v log2(v)
constexpr std::uint64_t vLogV(std::uint32_t v) {
  return v == 0 ? 0 : std::uint64_t{v} * log2Here(v);
}
constexpr std::size_t kSmall = 2048;  // few blocks have larger sums
constexpr auto kProducts = [] {
  std::array<std::uint32_t, kSmall> products = {};
  for (std::uint32_t v = 0; v < kSmall; ++v) {
    products[v] = static_cast<std::uint32_t>(vLogV(v));
  }
  return products;
}();
std::uint64_t product(std::uint32_t v) {
  return v < kSmall ? kProducts[v] : vLogV(v);
}

/// Of a block, by the sum of sizeOf().
std::uint64_t costOfSum(std::uint64_t sized) {
  if (sized == 0) {
    return kZeroBlock;
  }
  constexpr auto kCount = std::uint32_t{kBlockCodes};
  const auto sum = static_cast<std::uint32_t>(sized & ((1u << kCountShift) - 1));
  const auto count = static_cast<std::uint32_t>(sized >> kCountShift);
  const std::uint64_t sparse = product(kCount) - 2 * product(count) - product(kCount - count) +
                               product(sum) - product(sum - count);
  const std::uint64_t even = product(kCount + sum) - product(sum) - product(kCount);
  return kBlockClass + (sparse + even) / 2;
}

template <class C>
std::uint64_t costOfBlocks(std::span<const C> codes) {
  std::uint64_t cost = 0;
  for (std::size_t at = 0; at + kBlockCodes <= codes.size(); at += kBlockCodes) {
    std::uint32_t sized = 0;
    for (std::size_t i = 0; i < kBlockCodes; ++i) {
      sized += sizeOf(zigzag(codes[at + i]));
    }
    cost += costOfSum(sized);
  }
  return cost;
}

}  // namespace

std::uint32_t log2Of(std::uint32_t v) {
  return log2Here(v);
}

std::uint64_t blockCost(std::span<const std::int16_t> codes) {
  return costOfBlocks(codes);
}
std::uint64_t blockCost(std::span<const std::int32_t> codes) {
  return costOfBlocks(codes);
}

std::uint64_t costOfSums(std::span<const std::uint32_t> columns, std::size_t n_columns) {
  std::uint64_t cost = 0;
  for (std::size_t at = 0; at < columns.size(); at += n_columns) {
    std::uint64_t sum = 0;
    for (const std::uint32_t column : columns.subspan(at, n_columns)) {
      sum += column;
    }
    cost += costOfSum(sum);
  }
  return cost;
}

ClassCost::ClassCost() : symbols_(kClasses * kSymbols) {
}

template <class C>
void ClassCost::addBlocks(std::span<const C> codes) {
  for (std::size_t at = 0; at + kBlockCodes <= codes.size(); at += kBlockCodes) {
    const std::uint64_t sum = sumOf(codes.data() + at);
    const std::size_t block_class =
        sum == 0 ? 0 : std::min<std::size_t>(bits::bitWidth(sum), kClasses - 1);
    ++blocks_[block_class];
    if (block_class == 0) {
      continue;
    }
    std::uint32_t* const counts = symbols_.data() + block_class * kSymbols;
    for (std::size_t i = 0; i < kBlockCodes; ++i) {
      const std::uint32_t u = zigzag(codes[at + i]);
      if (u < kDirect) {
        ++counts[u];
      } else {
        const std::uint32_t exponent = bits::bitWidth(u) - 1;
        ++counts[kDirect + 4 * (exponent - 4) + (u >> (exponent - 2) & 3)];
        raw_bits_ += exponent - 2;
      }
    }
  }
}

void ClassCost::add(std::span<const std::int16_t> codes) {
  addBlocks(codes);
}
void ClassCost::add(std::span<const std::int32_t> codes) {
  addBlocks(codes);
}

std::uint64_t ClassCost::total() const {
  const auto entropy = [](std::span<const std::uint32_t> counts, std::uint64_t per_entry) {
    std::uint64_t n = 0;
    for (const std::uint32_t count : counts) {
      n += count;
    }
    std::uint64_t cost = 0;
    for (const std::uint32_t count : counts) {
      if (count > 0) {
        cost += count * std::uint64_t{log2Of(static_cast<std::uint32_t>(n)) - log2Of(count)} +
                per_entry;
      }
    }
    return cost;
  };
  std::uint64_t cost = raw_bits_ * kOne + entropy(blocks_, 0);
  for (std::size_t c = 1; c < kClasses; ++c) {
    cost += entropy(std::span(symbols_).subspan(c * kSymbols, kSymbols), kTableEntry);
  }
  return cost;
}

}  // namespace fz::interp
