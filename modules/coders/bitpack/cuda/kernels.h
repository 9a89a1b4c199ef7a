#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"
#include "shared/host_device.h"

namespace fz::cuda {
struct Call;
}

/// The stage's kernels. Launchers only enqueue. Where sizes are wrong, error_value of the record
/// has the bytes that came.
namespace fz::bitpack {

// What the record's values are.
inline constexpr std::uint32_t kBitsSlot = 0;   ///< bits per value; a device field
inline constexpr std::uint32_t kCountSlot = 1;  ///< number of values; a device field
inline constexpr std::uint32_t kOrSlot = 2;     ///< encoding: OR of all values, for auto-detect
/// From here on, one slot per 2^32 values: the first value that does not fit, see wideEntry.
inline constexpr std::uint32_t kWideSlot = 3;
inline constexpr std::uint64_t kWideSlots = StageRecord::kValues - kWideSlot;

/// A value that does not fit and the low half of its index, so that the largest entry is the first
/// value's.
FZ_HD constexpr std::uint64_t wideEntry(std::uint64_t index, std::uint32_t value) {
  return ~(index << 32 | value);
}
FZ_HD constexpr std::uint32_t wideValue(std::uint64_t entry) {
  return static_cast<std::uint32_t>(~entry);
}

/// One run in either direction.
struct PackArgs {
  const std::uint8_t* in;
  DeviceSize in_size;
  std::uint8_t* out;
  std::uint64_t capacity_bytes;
  bool size_known;
  StageRecord* record;
  /// Encoding, 0: from the OR in the record. Decoding, 0: bits and count stand in the record;
  /// else as many values as fit.
  std::uint32_t n_bits;
};

/// OR of all values into the record.
template <class T>
void launchOr(const PackArgs& args, const cuda::Call& call);
template <class T>
void launchPack(const PackArgs& args, const cuda::Call& call);
/// For up to n_values values.
template <class T>
void launchUnpack(const PackArgs& args, std::size_t n_values, const cuda::Call& call);

}  // namespace fz::bitpack
