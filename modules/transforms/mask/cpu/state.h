#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "mem/scratch.h"
#include "shared/bits.h"
#include "transforms/mask/mask_stage.h"
#include "transforms/mask/stream.h"

namespace fz::mask {

inline constexpr std::size_t kWordValues = 64;
inline constexpr std::size_t kTileValues = 4096;  // work per task only; not part of the format
// What a tile says of the last valid value up to its end: nothing yet, that there is none, or its
// index and this.
inline constexpr std::uint64_t kUnknown = 0;
inline constexpr std::uint64_t kNoneYet = 1;
inline constexpr std::uint64_t kIndexBase = 2;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
BitsOf<T> bitsAt(const T* values, std::size_t index) {
  BitsOf<T> bits;
  std::memcpy(&bits, values + index, sizeof(bits));
  return bits;
}

/// Calls f(index) for every set bit of the words of values [first, end), in order.
template <class F>
void forEachMissing(const std::uint64_t* words, std::size_t first, std::size_t end, F f) {
  for (std::size_t at = first; at < end; at += kWordValues) {
    for (std::uint64_t word = words[at / kWordValues]; word != 0; word &= word - 1) {
      f(at + bits::firstSet(word));
    }
  }
}

/// f(T{}) for the type of a stage.
template <class F>
void withType(DataType type, F f) {
  if (type == DataType::FLOAT32) {
    f(float{});
  } else {
    f(double{});
  }
}

/// What a run found, and the run itself, alone and in a group alike: begin, tiles in any order,
/// end.
struct MaskBase::State final : CpuTileOp {
  explicit State(MaskBase& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  void encodeTile(const TileRange& range, const void* in, void* out) override;
  void decodeTile(const TileRange& range, const void* in, void* out) override;
  bool decodesInPlace() const override { return true; }
  void endTiles(const CpuRun& run) override;

  /// Whether missing values are filled behind all tiles, by tiles of the grid.
  bool fillsTiles() const { return stage.hold_[1] > 1 || stage.hold_[2] > 1; }
  /// Values that belong together: whole words of the mask, and what is filled together.
  std::size_t unitValues() const;

  MaskBase& stage;
  std::size_t n_values = 0;
  std::size_t tile_values = kTileValues;

  struct TileFinding {
    std::atomic<std::uint64_t> last_valid;
    std::uint64_t pattern;
    bool has_missing;
    bool has_patterns;  ///< several
  };

  void beginEncode(const CpuRun& run);
  void beginDecode(const CpuRun& run);
  void endEncode(const CpuRun& run);
  template <class T>
  void encodeValues(const TileRange& range, const T* in, T* out);
  template <class T>
  void decodeValues(const TileRange& range, const T* in, T* out) const;
  std::size_t tilesBeside() const;
  void fillTiles(const CpuRun& run) const;
  template <class T>
  void fillBeside(const std::array<std::uint64_t, 3>& origin, T* values) const;
  template <class T>
  void fillTile(const std::array<std::uint64_t, 3>& origin, T* values) const;
  template <class T>
  void holdIn(const TileRange& range, T* out);
  template <class T>
  void holdInField(const TileRange& range, std::span<T> values);
  template <class T>
  void holdInWords(std::span<T> values, const std::uint64_t* tile_words) const;
  template <class T>
  void holdInUnits(const TileRange& range, T* out) const;
  std::uint64_t lastValidIn(const TileRange& range) const;
  template <class T>
  std::uint64_t lastValidBefore(std::size_t tile) const;
  template <class T>
  void findPatterns(const CpuRun& run);
  template <class T>
  void writeStream(const CpuRun& run, StreamWriter& out);
  template <class T>
  void readStream(const CpuRun& run);
  /// Throws Error(kCorrupt) for a value that is not missing, or an index that no pattern has.
  template <class T>
  void checkPatterns(const CpuRun& run) const;

  template <class T>
  std::span<const T> fillOf() const {
    if constexpr (sizeof(T) == 4) {
      return fill_f32;
    } else {
      return fill_f64;
    }
  }
  template <class T>
  T patternValue(std::size_t index) const {
    const auto pattern = static_cast<BitsOf<T>>(patterns[index]);
    return __builtin_bit_cast(T, pattern);
  }

  std::size_t patternIndex(std::size_t word, std::uint32_t bit) const {
    std::size_t index = 0;
    for (std::size_t layer = 0; layer < index_words.size(); ++layer) {
      index |= static_cast<std::size_t>(index_words[layer][word] >> bit & 1) << layer;
    }
    return index;
  }

  const std::uint8_t* field = nullptr;  ///< of an encode
  Grid grid;
  std::vector<float> fill_f32;
  std::vector<double> fill_f64;
  std::span<std::uint64_t> words;
  std::span<TileFinding> findings;
  std::uint64_t first_valid = kNoneYet;
  std::vector<std::uint64_t> patterns;  ///< ascending; empty: each value for itself
  // Of a decode.
  std::vector<std::span<std::uint64_t>> index_words;  ///< bits of the pattern's index
  std::span<std::uint64_t> ranks;                     ///< missing values before each kTileValues
  const std::uint8_t* raw_values = nullptr;

  Scratch words_memory;
  Scratch findings_memory;
  Scratch index_memory;
  Scratch ranks_memory;
  LayerScratch layer_memory;
};

}  // namespace fz::mask
