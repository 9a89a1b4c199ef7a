#pragma once

#include <cstdint>
#include <type_traits>

#include "shared/host_device.h"

/// The bytes of a shuffled block; SPEC.md has the same in words.
namespace fz::bitshuffle {

/// A block is a whole number of these, so that every plane is whole words.
inline constexpr std::uint32_t kUnitElements = 1024;
/// The largest multiple of 1024 in the config's u32.
inline constexpr std::uint32_t kMaxBlockBytes = 0xFFFFFC00u;

/// How the bits of one plane lie in words, for unsigned elements E.
template <class E>
struct PlaneLayout {
  using Word = std::conditional_t<sizeof(E) == 8, std::uint64_t, std::uint32_t>;
  static constexpr std::uint32_t kPlanes = 8 * sizeof(E);
  static constexpr std::uint32_t kWordElements = 8 * sizeof(Word);

  /// Bit of its word that belongs to element `lane`: narrow elements count from the lowest bit,
  /// wide ones from the highest.
  static FZ_HD std::uint32_t bitOf(std::uint32_t lane) {
    return sizeof(E) >= 4 ? kWordElements - 1 - lane : lane;
  }
};

/// Shuffles one block of n_elements, a multiple of kUnitElements. Word-driven: no two items write
/// one word.
template <class E, class Team>
FZ_HD void encodeBlock(Team team,
                       const E* in,
                       std::uint32_t n_elements,
                       typename PlaneLayout<E>::Word* out) {
  using Layout = PlaneLayout<E>;
  using Word = typename Layout::Word;
  const std::uint32_t plane_words = n_elements / Layout::kWordElements;
  team.each(Layout::kPlanes * plane_words, [=](std::uint32_t w) {
    const std::uint32_t shift = Layout::kPlanes - 1 - w / plane_words;
    const E* group = in + w % plane_words * Layout::kWordElements;
    Word word = 0;
    for (std::uint32_t lane = 0; lane < Layout::kWordElements; ++lane) {
      word |= static_cast<Word>((group[lane] >> shift) & 1u) << Layout::bitOf(lane);
    }
    out[w] = word;
  });
}

/// Inverse of encodeBlock; element-driven.
template <class E, class Team>
FZ_HD void decodeBlock(Team team,
                       const typename PlaneLayout<E>::Word* in,
                       std::uint32_t n_elements,
                       E* out) {
  using Layout = PlaneLayout<E>;
  const std::uint32_t plane_words = n_elements / Layout::kWordElements;
  team.each(n_elements, [=](std::uint32_t i) {
    const std::uint32_t bit = Layout::bitOf(i % Layout::kWordElements);
    E element = 0;
    for (std::uint32_t plane = 0; plane < Layout::kPlanes; ++plane) {
      const auto word = in[plane * plane_words + i / Layout::kWordElements];
      element = static_cast<E>(static_cast<E>(element << 1) | static_cast<E>((word >> bit) & 1u));
    }
    out[i] = element;
  });
}

}  // namespace fz::bitshuffle
