#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "fz/span.h"
#include "mem/scratch.h"
#include "quantizers/quantizer/cpu/tile.h"
#include "quantizers/quantizer/quantizer.h"

namespace fz::quantizer {

/// What a run found, and the run itself on the CPU, alone and in a group alike: begin, tiles in any
/// order, end.
struct QuantizerBase::State final : CpuTileOp {
  explicit State(QuantizerBase& owner) : stage(owner) {}

  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  void encodeTile(const TileRange& range, const void* in, void* out) override;
  bool encodeWatched(const TileRange& range,
                     const SoughtValues& sought,
                     const void* in,
                     void* out) override;
  void decodeTile(const TileRange& range, const void* in, void* out) override;
  void endTiles(const CpuRun& run) override;

  CodeForm codeForm() const;
  /// Linear codes know no threshold.
  double threshold() const;
  /// ABS and NOA: how a rung codes data of this range, which is 0 where it does not count.
  BinSettings binSettings(double range, unsigned rung) const;

  QuantizerBase& stage;

  // Of the last encode, on either backend.
  unsigned rung = 0;
  bool wants_rerun = false;
  std::size_t n_violations = 0;
  std::size_t first_violation = 0;
  double first_violating_value = 0.0;

 private:
  /// A tile; returns whether it may have what is looked for.
  bool encodePieces(const TileRange& range,
                    std::optional<double> sought,
                    const void* in,
                    void* out);
  /// Up to kTileValues values.
  EncodedTile encodePiece(const TileRange& range,
                          std::optional<double> sought,
                          const void* in,
                          void* codes);
  std::size_t settleRefused(const TileRange& range,
                            std::size_t n_refused,
                            const EncodeTileArgs& args);
  void resolveBound(const CpuRun& run);
  double scanRange(const CpuRun& run) const;
  void beginEncode(const CpuRun& run);
  void endEncode(const CpuRun& run);
  void wrapRefused(const std::uint64_t* masks, std::size_t n, const void* in, void* codes) const;
  std::size_t keepRefused(std::uint64_t* masks, std::size_t n, const void* in, void* codes) const;
  void recordViolations(const TileRange& range, const std::uint64_t* masks, const void* in);
  void settleViolations();
  void keepOutliers(const TileRange& range, std::size_t n_refused, const void* in);
  void writeOutliers(const CpuRun& run, std::size_t n_outliers);
  template <class U>
  void gatherOutliers(const CpuRun& run, std::span<const std::uint64_t> offsets) const;
  template <class U>
  void orderOutliers(const CpuRun& run, std::span<const std::uint64_t> offsets, std::size_t n);
  void beginDecode(const CpuRun& run);
  void takeOutliers(const CpuRun& run);
  void sortOutliers(const CpuRun& run);
  void decodeCodes(const TileRange& range, const void* in, void* out) const;
  void putOutliers(const TileRange& range, void* out) const;

  // What the tiles of a run found so far; the same whatever the threads do.
  std::atomic<bool> compares_ = false;  ///< how tiles look for values; no finding depends on it
  std::atomic<std::uint64_t> n_refused_ = 0;
  std::atomic<std::uint64_t> first_refused_ = 0;
  double first_refused_value_ = 0.0;
  std::mutex first_refused_mutex_;  ///< of the two
  std::atomic<bool> are_refused_finite_ = true;
  BinRules rules_ = {};
  // Where outliers are listed.
  std::span<std::uint64_t> refused_;  ///< a bit per value
  TileCut cut_;
  // Of an encode of tiles from a stage before, which are gone when all outliers are counted: those
  // of a tile stand together, tiles as they came.
  MutableByteView kept_;                   ///< the port of the values
  std::span<std::uint64_t> kept_at_;       ///< of each tile, where its outliers begin
  std::atomic<std::uint64_t> n_kept_ = 0;  ///< with those for which there was no room
  // Of a decode.
  const std::uint32_t* indices_ = nullptr;  ///< ascending
  const std::uint8_t* values_ = nullptr;

  Scratch masks_;
  Scratch tile_counts_;
  Scratch tile_places_;
  Scratch outliers_;
};

/// Calls f(index) for every set bit of the masks of n values, in order.
template <class F>
void forEachRefused(const std::uint64_t* masks, std::size_t n, F f) {
  for (std::size_t at = 0; at < n; at += kMaskValues) {
    for (std::uint64_t mask = masks[at / kMaskValues]; mask != 0; mask &= mask - 1) {
      f(at + static_cast<std::size_t>(__builtin_ctzll(mask)));
    }
  }
}

}  // namespace fz::quantizer
