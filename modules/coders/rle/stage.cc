#include <algorithm>
#include <limits>

#include "coders/rle/codec.h"
#include "coders/rle/rle.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "fz/byte_io.h"

namespace fz {

namespace {

constexpr std::uint64_t kMaxValues = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kReserveBytes = 64 * 1024;
constexpr std::uint64_t kReserveFactor = 64;

}  // namespace

template <class T>
SimpleStage::PortBytes RLEStage<T>::encodedBytes(std::size_t input_bytes) const {
  return {static_cast<std::size_t>(rle::layoutOf(input_bytes / sizeof(T), sizeof(T)).n_bytes)};
}

template <class T>
std::size_t RLEStage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::uint64_t n_least = rle::layoutOf(n_values_ == 0 ? 0 : 1, sizeof(T)).n_bytes;
  FZ_REQUIRE(encoded_bytes[0] >= n_least, ErrorCode::kCorrupt,
             "{}: {} values need at least {} bytes, got {}", getName(), n_values_, n_least,
             encoded_bytes[0]);
  // One run may stand for any number of values, so a few damaged bytes could claim gigabytes. What
  // is beyond a generous reserve is asked for by decodeCpu once the lengths have confirmed it.
  const std::uint64_t reserve = (kReserveBytes + kReserveFactor * encoded_bytes[0]) / 4 * 4;
  return static_cast<std::size_t>(std::min(std::uint64_t{n_values_} * sizeof(T), reserve));
}

template <class T>
void RLEStage<T>::checkInput(std::uint64_t n_bytes) const {
  FZ_REQUIRE(n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", getName(), n_bytes, sizeof(T));
  FZ_REQUIRE_SIZE(n_bytes / sizeof(T) <= kMaxValues, getName(),
                  "at most {} values because of 32-bit counts, got {}", kMaxValues,
                  n_bytes / sizeof(T));
}

template <class T>
void RLEStage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>)).u32(n_values_);
}

template <class T>
void RLEStage<T>::readConfig(ByteReader& in) {
  const std::size_t n_bytes = in.remaining();
  if (n_bytes == 0) {
    n_values_ = 0;  // a file without a config names no values
    return;
  }
  const std::uint8_t type = in.u8();
  const std::uint32_t n_values = in.u32();
  FZ_REQUIRE(!in.failed(), ErrorCode::kCorrupt, "{}: expected a config of 5 bytes, got {}",
             getName(), n_bytes);
  FZ_REQUIRE(type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "{}: expected a config for type {}, got {}", getName(),
             static_cast<unsigned>(kDataTypeOf<T>), type);
  n_values_ = n_values;
}

// The members that cpu/stage.cc defines are instantiated there.
template class RLEStage<std::uint8_t>;
template class RLEStage<std::uint16_t>;
template class RLEStage<std::uint32_t>;
template class RLEStage<std::int32_t>;

}  // namespace fz
