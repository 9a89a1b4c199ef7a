#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "quantizers/quantizer/codec.h"
#include "quantizers/quantizer/codec_rel.h"

/// The tile loops, with the widest vectors of this machine. All pointers are aligned to their
/// element; nothing here allocates or throws.
namespace fz::quantizer {

/// Values per task. Work distribution only: no byte depends on it. A multiple of 64.
inline constexpr std::size_t kTileValues = 8192;
inline constexpr std::size_t kMaskValues = 64;

/// Which of the loops: bytes of a value (4, 8) and of a code (2, 4).
struct Widths {
  std::size_t value_bytes;
  std::size_t code_bytes;
};

struct EncodeTileArgs {
  const void* in;
  std::size_t n_values;
  void* codes;
  /// Bit i % 64 of masks[i / 64]: value i was refused. One word per 64 values, the last one too.
  std::uint64_t* masks;
  /// A value to look for on the way, and whether each is to be compared with it from the start.
  std::optional<double> sought = {};
  bool compares = false;
};

struct EncodedTile {
  std::size_t n_refused;
  bool may_have_sought;  ///< or NaN, or infinities
  bool compares;         ///< others are as far from 0 as what is looked for, so each was compared
};

/// Rules of a run for values of either type, made once: tiles may be short.
struct BinRules {
  BinRule<float> of_float;
  BinRule<double> of_double;
  CodeForm form;
};
inline BinRules makeBinRules(const BinSettings& settings) {
  return {makeBinRule<float>(settings), makeBinRule<double>(settings), settings.form};
}

/// Codes of one tile; refused values have code 0. The second returns how many were refused, and
/// looks for nothing.
EncodedTile encodeAbsTile(Widths widths, const BinRules& rules, const EncodeTileArgs& args);
std::size_t encodeRelTile(Widths widths, const RelSettings& settings, const EncodeTileArgs& args);

struct DecodeTileArgs {
  const void* codes;
  std::size_t n_values;
  void* out;
};

struct AbsDecodeSettings {
  double bound_in_use;
  std::uint32_t radius;
  CodeForm form;
};
void decodeAbsTile(Widths widths, const AbsDecodeSettings& settings, const DecodeTileArgs& args);

struct RelDecodeSettings {
  double bound;
  std::uint16_t version;  ///< 1 or 2
  float log_step_v1;      ///< version 1 only
};
void decodeRelTile(Widths widths, const RelDecodeSettings& settings, const DecodeTileArgs& args);
/// The step of version 1 REL streams. Those encoders took it from the host's math library, so this
/// reader does too; nothing that is written depends on it.
float logStepV1(double bound);

/// Smallest and largest finite value; none: low > high.
struct ValueRange {
  double low;
  double high;
};
ValueRange rangeOfTile(std::size_t value_bytes, const void* in, std::size_t n_values);

/// Bits of 64 bytes that are 0 or 1.
inline std::uint64_t packFlags(const std::uint8_t* flags) {
  std::uint64_t mask = 0;
  for (std::size_t group = 0; group < 8; ++group) {
    std::uint64_t bytes = 0;
    __builtin_memcpy(&bytes, flags + 8 * group, 8);
    // Gathers the eight low bits into the top byte, byte 0 lowest.
    mask |= ((bytes * 0x0102040810204080ull) >> 56) << (8 * group);
  }
  return mask;
}

}  // namespace fz::quantizer
