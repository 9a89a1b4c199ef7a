#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/host_device.h"

/// The values of a field that are looked at for missing ones where nobody declared any: a few
/// words of 64, spread over the field.
namespace fz::field_sample {

inline constexpr std::size_t kWordValues = 64;
inline constexpr std::size_t kWords = 64;

FZ_HD std::uint64_t count(std::uint64_t n_words) {
  return n_words < kWords ? n_words : kWords;
}
/// The i-th of count(n_words) words. Odd places of equal shares, so that no period of the field
/// hides from all of them.
FZ_HD std::uint64_t word(std::uint64_t i, std::uint64_t n_words) {
  constexpr std::uint64_t kScatter = 2654435761;
  const std::uint64_t share = n_words / count(n_words);
  return i * share + i * kScatter % share;
}

}  // namespace fz::field_sample
