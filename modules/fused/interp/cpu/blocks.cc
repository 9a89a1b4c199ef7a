#include "fused/interp/cpu/blocks.h"

#include <algorithm>
#include <functional>

#include "shared/bits.h"

namespace fz::interp {

namespace {

constexpr std::uint64_t kOne = kCostOfBit;
constexpr std::uint64_t kTableEntry = 3 * kOne;
constexpr std::uint32_t kDirect = 16;  // zigzag values below it are symbols themselves

constexpr LogTable kLogs = makeLogTable();

constexpr std::size_t kSmall = 2048;  // few blocks have larger sums
const auto kProducts = []() noexcept {
  std::array<std::uint32_t, kSmall> products = {};
  for (std::uint32_t v = 0; v < kSmall; ++v) {
    products[v] = static_cast<std::uint32_t>(vLogV(kLogs.data(), v));
  }
  return products;
}();

std::uint32_t zigzag(std::int32_t v) {
  return (static_cast<std::uint32_t>(v) << 1) ^ static_cast<std::uint32_t>(v >> 31);
}

std::uint64_t costOfSized(std::uint64_t sized) {
  return costOfSum(sized, [](std::uint32_t v) {
    return v < kSmall ? std::uint64_t{kProducts[v]} : vLogV(kLogs.data(), v);
  });
}

}  // namespace

std::uint32_t log2Of(std::uint32_t v) {
  return log2By(kLogs.data(), v);
}

std::uint64_t costOfSums(std::span<const std::uint32_t> columns, std::size_t n_columns) {
  std::uint64_t cost = 0;
  for (std::size_t at = 0; at < columns.size(); at += n_columns) {
    std::uint64_t sum = 0;
    for (const std::uint32_t column : columns.subspan(at, n_columns)) {
      sum += column;
    }
    cost += costOfSized(sum);
  }
  return cost;
}

std::uint64_t costOfSizes(std::span<const std::uint32_t> sizes) {
  std::uint64_t cost = 0;
  for (const std::uint32_t sized : sizes) {
    cost += costOfSized(sized);
  }
  return cost;
}

ClassCost::ClassCost() : symbols_(kClasses * kSymbols) {
}

template <class C>
void ClassCost::addBlocks(std::span<const C> codes) {
  // Neighbours are often alike, and an increment waits for the one before it of the same counter.
  constexpr std::size_t kTables = 4;
  std::vector<std::array<std::uint32_t, kTables>> counted(kClasses * kSymbols);
  for (std::size_t at = 0; at + kBlockCodes <= codes.size(); at += kBlockCodes) {
    const C* const block = codes.data() + at;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kBlockCodes; ++i) {
      sum += zigzag(block[i]);
    }
    const std::size_t block_class =
        sum == 0 ? 0 : std::min<std::size_t>(bits::bitWidth(sum), kClasses - 1);
    ++blocks_[block_class];
    if (block_class == 0) {
      continue;
    }
    auto* const counts = counted.data() + block_class * kSymbols;
    for (std::size_t i = 0; i < kBlockCodes; ++i) {
      const std::uint32_t u = zigzag(block[i]);
      const std::uint32_t exponent = bits::bitWidth(u | kDirect) - 1;
      const bool is_direct = u < kDirect;
      const std::uint32_t symbol = kDirect + 4 * (exponent - 4) + (u >> (exponent - 2) & 3);
      ++counts[is_direct ? u : symbol][i % kTables];
      raw_bits_ += is_direct ? 0 : exponent - 2;
    }
  }
  for (std::size_t i = 0; i < counted.size(); ++i) {
    for (const std::uint32_t count : counted[i]) {
      symbols_[i] += count;
    }
  }
}

void ClassCost::add(std::span<const std::int16_t> codes) {
  addBlocks(codes);
}
void ClassCost::add(std::span<const std::int32_t> codes) {
  addBlocks(codes);
}

void ClassCost::add(const ClassCost& other) {
  std::transform(blocks_.begin(), blocks_.end(), other.blocks_.begin(), blocks_.begin(),
                 std::plus<>());
  std::transform(symbols_.begin(), symbols_.end(), other.symbols_.begin(), symbols_.begin(),
                 std::plus<>());
  raw_bits_ += other.raw_bits_;
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
