#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel_for.h"
#include "backends/cpu/scan.h"
#include "coders/adaptive_bitpack/cpu/blocks.h"
#include "core/require.h"

namespace fz::adaptive_bitpack {

namespace {

/// Payload of a tile at most: enough work for a task, and what it reads and writes stays in L2.
/// Not part of the format.
constexpr std::size_t kTileBytes = 64 * 1024;
/// Tiles that each thread encodes before the offsets of all of them are settled.
constexpr std::size_t kTilesPerThread = 16;

/// The cut of n values into tiles of whole blocks.
struct Tiling {
  Tiling(std::size_t n_values, BlockLayout layout, std::size_t block_bytes)
      : n(n_values),
        tile_blocks(std::max<std::size_t>(1, kTileBytes / block_bytes)),
        tile_values(tile_blocks * layout.block_values),
        n_tiles(bits::ceilDiv(n, tile_values)),
        n_blocks(bits::ceilDiv(n, std::size_t{layout.block_values})) {}

  std::size_t valuesOf(std::size_t tile) const {
    return std::min(tile_values, n - tile * tile_values);
  }

  std::size_t n;
  std::size_t tile_blocks;
  std::size_t tile_values;
  std::size_t n_tiles;
  std::size_t n_blocks;
};

template <class T>
class Encoder {
 public:
  Encoder(const CpuRun& run, BlockLayout layout, CpuScratch& scratch)
      : run_(run),
        layout_(layout),
        tiling_(run.inputs[0].size() / sizeof(T), layout, maxBlockCost<T>(layout.planeBytes())),
        kernels_(kernelsFor<T>()),
        slot_bytes_(tiling_.tile_blocks * maxBlockCost<T>(layout.planeBytes()) + kEncodeSlackBytes),
        n_slots_(run.executor.threadCount() == 1
                     ? 1
                     : std::min(run.executor.threadCount() * kTilesPerThread, tiling_.n_tiles)),
        slots_(scratch.slots.get<std::uint8_t>(run.pool, n_slots_ * slot_bytes_)),
        sizes_(scratch.sizes.get<std::uint64_t>(run.pool, n_slots_)),
        end_(tiling_.n_blocks * layout.metaBytes()) {}

  std::size_t encode() {
    if (run_.outputs[0].size() < end_) {
      return 0;
    }
    for (std::size_t tile = 0; tile < tiling_.n_tiles; tile += n_slots_) {
      const std::size_t n_tiles = std::min(n_slots_, tiling_.n_tiles - tile);
      if (!(n_slots_ == 1 ? encodeInPlace(tile) : encodeWave(tile, n_tiles))) {
        return 0;
      }
    }
    return end_;
  }

 private:
  std::size_t room() const { return run_.outputs[0].size() - end_; }

  std::size_t encodeTile(std::size_t tile, std::uint8_t* payload) const {
    const T* values = reinterpret_cast<const T*>(run_.inputs[0].data());
    std::uint8_t* meta = run_.outputs[0].data() + tile * tiling_.tile_blocks * layout_.metaBytes();
    return kernels_.encode(values + tile * tiling_.tile_values, tiling_.valuesOf(tile), layout_,
                           meta, payload);
  }

  /// One thread knows where the tile goes, and needs the slot only where the slack has no room.
  bool encodeInPlace(std::size_t tile) {
    std::uint8_t* out = run_.outputs[0].data() + end_;
    if (room() >= slot_bytes_) {
      end_ += encodeTile(tile, out);
      return true;
    }
    const std::size_t n_bytes = encodeTile(tile, slots_.data());
    if (n_bytes > room()) {
      return false;
    }
    std::memcpy(out, slots_.data(), n_bytes);
    end_ += n_bytes;
    return true;
  }

  /// Threads encode into slots, which are still in cache when the offsets are known.
  bool encodeWave(std::size_t first_tile, std::size_t n_tiles) {
    parallelFor(run_.executor, n_tiles, [&](std::size_t i) {
      sizes_[i] = encodeTile(first_tile + i, slots_.data() + i * slot_bytes_);
    });
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < n_tiles; ++i) {
      total += sizes_[i];
    }
    if (total > room()) {
      return false;
    }
    std::size_t offset = end_;
    for (std::size_t i = 0; i < n_tiles; ++i) {
      offset += sizes_[i];
      sizes_[i] = offset;  // where the tile ends
    }
    parallelFor(run_.executor, n_tiles, [&](std::size_t i) {
      const std::size_t begin = i == 0 ? end_ : sizes_[i - 1];
      std::memcpy(run_.outputs[0].data() + begin, slots_.data() + i * slot_bytes_,
                  sizes_[i] - begin);
    });
    end_ = offset;
    return true;
  }

  const CpuRun& run_;
  BlockLayout layout_;
  Tiling tiling_;
  Kernels<T> kernels_;
  std::size_t slot_bytes_;
  std::size_t n_slots_;
  std::span<std::uint8_t> slots_;
  std::span<std::uint64_t> sizes_;
  std::size_t end_;
};

}  // namespace

template <class T>
std::size_t encodeArchive(const CpuRun& run, BlockLayout layout, CpuScratch& scratch) {
  return Encoder<T>(run, layout, scratch).encode();
}

template <class T>
std::span<const std::uint64_t> checkedOffsets(const CpuRun& run,
                                              BlockLayout layout,
                                              std::size_t n,
                                              std::size_t tile_blocks,
                                              Scratch& scratch) {
  const ByteView archive = run.inputs[0];
  const std::size_t n_blocks = bits::ceilDiv(n, std::size_t{layout.block_values});
  const std::size_t n_payload = archive.size() - n_blocks * layout.metaBytes();
  const Kernels<T> kernels = kernelsFor<T>();
  const std::span<std::uint64_t> offsets =
      scratch.get<std::uint64_t>(run.pool, bits::ceilDiv(n_blocks, tile_blocks));
  FirstIndex bad_block;
  parallelFor(run.executor, offsets.size(), [&](std::size_t tile) {
    const std::size_t first = tile * tile_blocks;
    const std::size_t n_here = std::min(tile_blocks, n_blocks - first);
    const BlocksMeasure measure =
        kernels.measure(archive.data() + first * layout.metaBytes(), n_here, layout);
    offsets[tile] = measure.payload_bytes;
    if (measure.n_good < n_here) {
      bad_block.record(first + measure.n_good);
    }
  });
  if (bad_block.found()) {
    const std::uint8_t* meta = archive.data() + bad_block.value() * layout.metaBytes();
    detail::throwError(
        ErrorCode::kCorrupt,
        fmt::format(
            "AdaptiveBitpack: block {} has rate {} and selection {}, invalid for {}-bit values",
            bad_block.value(), meta[0], layout.outlier_selection ? meta[1] : 0, kValueBits<T>));
  }
  const std::uint64_t payload_bytes = exclusiveScan(offsets);
  FZ_REQUIRE(payload_bytes == n_payload, ErrorCode::kCorrupt,
             "AdaptiveBitpack: the blocks need {} payload bytes, got {}", payload_bytes, n_payload);
  return offsets;
}

template <class T>
void decodeArchive(const CpuRun& run, BlockLayout layout, std::size_t n, CpuScratch& scratch) {
  const Tiling tiling(n, layout, maxBlockCost<T>(layout.planeBytes()));
  const auto offsets = checkedOffsets<T>(run, layout, n, tiling.tile_blocks, scratch.sizes);
  const Kernels<T> kernels = kernelsFor<T>();
  const ByteView archive = run.inputs[0];
  const ByteView payload = archive.subspan(tiling.n_blocks * layout.metaBytes());
  T* values = reinterpret_cast<T*>(run.outputs[0].data());
  parallelFor(run.executor, tiling.n_tiles, [&](std::size_t tile) {
    kernels.decode(archive.data() + tile * tiling.tile_blocks * layout.metaBytes(),
                   payload.subspan(offsets[tile]), tiling.valuesOf(tile), layout,
                   values + tile * tiling.tile_values);
  });
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define FZ_ADAPTIVE_BITPACK_INSTANTIATE(T)                                                       \
  template std::size_t encodeArchive<T>(const CpuRun&, BlockLayout, CpuScratch&);                \
  template std::span<const std::uint64_t> checkedOffsets<T>(const CpuRun&, BlockLayout,          \
                                                            std::size_t, std::size_t, Scratch&); \
  template void decodeArchive<T>(const CpuRun&, BlockLayout, std::size_t, CpuScratch&)
// NOLINTEND(bugprone-macro-parentheses)
FZ_ADAPTIVE_BITPACK_INSTANTIATE(std::int16_t);
FZ_ADAPTIVE_BITPACK_INSTANTIATE(std::int32_t);
#undef FZ_ADAPTIVE_BITPACK_INSTANTIATE

}  // namespace fz::adaptive_bitpack
