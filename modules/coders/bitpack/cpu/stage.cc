// Bitpack on the CPU.
#include <algorithm>

#include "backends/cpu/parallel_for.h"
#include "coders/bitpack/bitpack_stage.h"
#include "coders/bitpack/codec.h"
#include "coders/bitpack/cpu/pack.h"
#include "core/require.h"
#include "mem/scratch.h"

namespace fz {

namespace {

constexpr std::size_t kTile = bitpack::kTileValues;

std::size_t tileCount(std::size_t n_values) {
  return bits::ceilDiv(n_values, kTile);
}
std::size_t tileSize(std::size_t n_values, std::size_t tile) {
  return std::min(kTile, n_values - tile * kTile);
}

template <class T>
std::uint32_t detectBits(const CpuRun& run, std::size_t n_values, Scratch& tile_ors) {
  const std::uint8_t* in = run.inputs[0].data();
  const auto ors = tile_ors.get<std::uint32_t>(run.pool, tileCount(n_values));
  parallelFor(run.executor, ors.size(), [&](std::size_t tile) {
    ors[tile] = bitpack::orOf(in + tile * kTile * sizeof(T), tileSize(n_values, tile), sizeof(T));
  });
  const std::uint32_t any = bitpack::orOf(ors.data(), ors.size(), sizeof(std::uint32_t));
  return bitpack::bitsFor(any, bitpack::kWidth<T>);
}

}  // namespace

template <class T>
struct BitpackStage<T>::State {
  Scratch tile_ors;
};

template <class T>
BitpackStage<T>::BitpackStage() : state_(std::make_unique<State>()) {
}
template <class T>
BitpackStage<T>::~BitpackStage() = default;

template <class T>
void BitpackStage<T>::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  FZ_REQUIRE(in.size() % sizeof(T) == 0, ErrorCode::kBadSize,
             "{}: input size {} is not a multiple of {} bytes", getName(), in.size(), sizeof(T));
  const std::size_t n_values = in.size() / sizeof(T);
  const std::uint32_t n_bits =
      auto_detect_ ? detectBits<T>(run, n_values, state_->tile_ors) : n_bits_;
  stream_ = {n_bits, n_values, true};
  has_run_ = true;

  const std::size_t tile_bytes = kTile / 8 * n_bits;
  const std::uint64_t n_bytes = bitpack::packedBytes(n_values, n_bits);
  if (out.size() < n_bytes) {
    requestOutputBytes(0, static_cast<std::size_t>(n_bytes));
    return;
  }
  const T* values = reinterpret_cast<const T*>(in.data());
  FirstIndex too_wide;
  parallelFor(run.executor, tileCount(n_values), [&](std::size_t tile) {
    const T* from = values + tile * kTile;
    const std::size_t n = tileSize(n_values, tile);
    const std::uint32_t any =
        bitpack::packValues(from, n, {sizeof(T), n_bits}, out.data() + tile * tile_bytes);
    if (!bitpack::fits(any, n_bits)) {
      const T* first = std::find_if(from, from + n, [&](T v) { return !bitpack::fits(v, n_bits); });
      too_wide.record(static_cast<std::uint64_t>(first - values));
    }
  });
  FZ_REQUIRE(!too_wide.found(), ErrorCode::kBoundViolation,
             "{}: value {} at index {} does not fit into {} bits", getName(),
             values[too_wide.value()], too_wide.value(), n_bits);
  setActualBytes(0, static_cast<std::size_t>(n_bytes));
}

template <class T>
void BitpackStage<T>::decodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  const auto n_values = static_cast<std::size_t>(valuesIn(in.size()));
  FZ_REQUIRE(out.size() / sizeof(T) >= n_values, ErrorCode::kBufferTooSmall,
             "{}: output needs room for {} values, has {} bytes", getName(), n_values, out.size());
  const std::size_t tile_bytes = kTile / 8 * stream_.n_bits;
  parallelFor(run.executor, tileCount(n_values), [&](std::size_t tile) {
    bitpack::unpackValues(in.data() + tile * tile_bytes, tileSize(n_values, tile),
                          {sizeof(T), stream_.n_bits}, out.data() + tile * kTile * sizeof(T));
  });
  setActualBytes(0, n_values * sizeof(T));
}

#define FZ_INSTANTIATE(T)                                  \
  template BitpackStage<T>::BitpackStage();                \
  template BitpackStage<T>::~BitpackStage();               \
  template void BitpackStage<T>::encodeCpu(const CpuRun&); \
  template void BitpackStage<T>::decodeCpu(const CpuRun&)
FZ_INSTANTIATE(std::uint8_t);
FZ_INSTANTIATE(std::uint16_t);
FZ_INSTANTIATE(std::uint32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
