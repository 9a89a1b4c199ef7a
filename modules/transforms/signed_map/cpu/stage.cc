// Zigzag and Negabinary on the CPU: alone, and in a fused group.
#include <algorithm>
#include <type_traits>

#include "backends/cpu/parallel_for.h"
#include "transforms/signed_map/codec.h"
#include "transforms/signed_map/signed_map_stage.h"

// Compiled once per vector target; the plain loops below are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/signed_map/cpu/stage.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

namespace fz::signed_map {
/// n_values values of value_bytes bytes each. Never throws.
using Loop = void (*)(const void* in, std::size_t n_values, std::size_t value_bytes, void* out);
}  // namespace fz::signed_map

HWY_BEFORE_NAMESPACE();
namespace fz::signed_map::HWY_NAMESPACE {  // NOLINT

template <class From, class To, class F>
void mapLoop(const void* in, std::size_t n_values, void* out, F map) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (std::size_t i = 0; i < n_values; ++i) {
    to[i] = map(from[i]);
  }
}

/// n_values values of S or, when decoding, of its unsigned type.
template <class Map, bool kEncode, class S>
void mapValues(const void* in, std::size_t n_values, void* out) {
  using U = std::make_unsigned_t<S>;
  if constexpr (kEncode) {
    mapLoop<S, U>(in, n_values, out, [](S value) { return Map::encode(value); });
  } else {
    mapLoop<U, S>(in, n_values, out, [](U code) { return Map::decode(code); });
  }
}

template <class Map, bool kEncode>
void mapBytes(const void* in, std::size_t n_values, std::size_t value_bytes, void* out) {
  switch (value_bytes) {
    case 1:
      return mapValues<Map, kEncode, std::int8_t>(in, n_values, out);
    case 2:
      return mapValues<Map, kEncode, std::int16_t>(in, n_values, out);
    case 4:
      return mapValues<Map, kEncode, std::int32_t>(in, n_values, out);
    default:
      return mapValues<Map, kEncode, std::int64_t>(in, n_values, out);
  }
}

Loop loopFor(Kind kind, bool encodes) {
  if (kind == Kind::kZigzag) {
    return encodes ? &mapBytes<ZigzagMap, true> : &mapBytes<ZigzagMap, false>;
  }
  return encodes ? &mapBytes<NegabinaryMap, true> : &mapBytes<NegabinaryMap, false>;
}

}  // namespace fz::signed_map::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz {

namespace signed_map {

HWY_EXPORT(loopFor);

namespace {

/// The map in one direction, for the widest vectors of this machine.
Loop loop(Kind kind, bool encodes) {
  return HWY_DYNAMIC_DISPATCH(loopFor)(kind, encodes);
}

}  // namespace
}  // namespace signed_map

namespace {

constexpr std::size_t kTileBytes = 64u << 10;  // work per task only; not part of the format

void mapTiles(const CpuRun& run, std::size_t value_bytes, signed_map::Loop map) {
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  parallelFor(run.executor, bits::ceilDiv(in.size(), kTileBytes), [&](std::size_t tile) {
    const std::size_t begin = tile * kTileBytes;
    const std::size_t n_bytes = std::min(kTileBytes, in.size() - begin);
    map(in.data() + begin, n_bytes / value_bytes, value_bytes, out.data() + begin);
  });
}

}  // namespace

/// The stage's part in groups.
struct SignedMapStage::State final : CpuTileOp {
  explicit State(SignedMapStage& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& /*cut*/) override {
    stage.requireWholeValues(run.inputs[0].size());
  }
  void encodeTile(const TileRange& range, const void* in, void* out) override {
    signed_map::loop(stage.kind_, true)(in, range.n_values, valueBytes(), out);
  }
  void decodeTile(const TileRange& range, const void* in, void* out) override {
    signed_map::loop(stage.kind_, false)(in, range.n_values, valueBytes(), out);
  }
  void endTiles(const CpuRun& run) override { stage.setActualBytes(0, run.inputs[0].size()); }

  std::size_t valueBytes() const { return getDataTypeSize(stage.signed_type_); }

  SignedMapStage& stage;
};

SignedMapStage::SignedMapStage(signed_map::Kind kind, DataType signed_type, DataType unsigned_type)
    : kind_(kind),
      signed_type_(signed_type),
      unsigned_type_(unsigned_type),
      state_(std::make_unique<State>(*this)) {
}
SignedMapStage::~SignedMapStage() = default;

CpuTilePart* SignedMapStage::cpuTilePart() {
  return state_.get();
}

void SignedMapStage::encodeCpu(const CpuRun& run) {
  requireWholeValues(run.inputs[0].size());
  mapTiles(run, state_->valueBytes(), signed_map::loop(kind_, true));
  setActualBytes(0, run.inputs[0].size());
}

void SignedMapStage::decodeCpu(const CpuRun& run) {
  requireWholeValues(run.inputs[0].size());
  mapTiles(run, state_->valueBytes(), signed_map::loop(kind_, false));
  setActualBytes(0, run.inputs[0].size());
}

}  // namespace fz
#endif
