#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fused/interp/blocks.h"
#include "fused/interp/stream.h"

/// What codes will cost, without coding them: in integers, so that a search decides alike
/// everywhere. Costs are in 1/1024 bit.
namespace fz::interp {

/// 1024 log2(v), rounded down somewhere in its last digit; v > 0.
std::uint32_t log2Of(std::uint32_t v);

/// Whole blocks of 64 by what is added up of them: cheap. A coder with classes by sums learns some
/// of the difference between both models of costOfSum().
std::uint64_t blockCost(std::span<const std::int16_t> codes);
std::uint64_t blockCost(std::span<const std::int32_t> codes);
/// The same by the sum of sizeOf() of each block.
std::uint64_t costOfSizes(std::span<const std::uint32_t> sizes);
/// The same for a row of blocks whose sizeOf() was added up in columns, n_columns to a block.
std::uint64_t costOfSums(std::span<const std::uint32_t> columns, std::size_t n_columns);

/// The entropy of symbols, given the class of their block, with what the tables take: close to
/// what BlockANS makes of the same codes.
class ClassCost {
 public:
  ClassCost();
  void add(std::span<const std::int16_t> codes);
  void add(std::span<const std::int32_t> codes);
  /// The codes of another one.
  void add(const ClassCost& other);
  std::uint64_t total() const;

 private:
  template <class C>
  void addBlocks(std::span<const C> codes);

  static constexpr std::size_t kClasses = 17;
  static constexpr std::size_t kSymbols = 128;
  std::array<std::uint32_t, kClasses> blocks_ = {};
  std::vector<std::uint32_t> symbols_;
  std::uint64_t raw_bits_ = 0;
};

}  // namespace fz::interp
