// RLE on the CPU.
#include <algorithm>
#include <bit>
#include <limits>

#include "backends/cpu/parallel_for.h"
#include "backends/cpu/scan.h"
#include "coders/rle/cpu/tile.h"
#include "coders/rle/rle.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "mem/scratch.h"

namespace fz {

namespace {

constexpr std::uint64_t kNoStart = std::numeric_limits<std::uint64_t>::max();

/// What a stage keeps between calls.
struct Scratches {
  Scratch marks;  ///< one bit per value: a run begins here
  Scratch tile_starts;
  Scratch next_starts;
};

/// What the two passes of the encoder know about its tiles.
struct EncoderTiles {
  std::span<std::uint64_t> marks;
  std::span<std::uint64_t> first_runs;   ///< runs per tile, then their exclusive sum
  std::span<std::uint64_t> next_starts;  ///< first start in the tile, then the first behind it
  std::uint64_t n_values;

  rle::TileMarks marksOf(std::size_t tile) const {
    const std::uint64_t begin = std::uint64_t{tile} * rle::kTileValues;
    const std::uint64_t n = std::min<std::uint64_t>(rle::kTileValues, n_values - begin);
    return {marks.data() + tile * rle::kTileMarkWords,
            static_cast<std::uint32_t>(bits::ceilDiv(n, std::uint64_t{64})), begin,
            next_starts[tile]};
  }

  void mark(const void* in, std::size_t tile, std::size_t value_bytes) const {
    const std::uint64_t begin = std::uint64_t{tile} * rle::kTileValues;
    const std::uint64_t n = std::min<std::uint64_t>(rle::kTileValues, n_values - begin);
    std::uint64_t* out = marks.data() + tile * rle::kTileMarkWords;
    first_runs[tile] = rle::markTile(in, begin, static_cast<std::uint32_t>(n), value_bytes, out);
    const std::uint64_t* const end = out + bits::ceilDiv(n, std::uint64_t{64});
    const std::uint64_t* const word =
        std::find_if(static_cast<const std::uint64_t*>(out), end,
                     [](std::uint64_t marks_of_64) { return marks_of_64 != 0; });
    next_starts[tile] = word == end ? kNoStart
                                    : begin + 64 * static_cast<std::uint64_t>(word - out) +
                                          static_cast<std::uint64_t>(std::countr_zero(*word));
  }
};

/// Replaces the first start of every tile by the first start behind the tile.
void turnIntoNextStarts(std::span<std::uint64_t> starts, std::uint64_t n_values) {
  std::uint64_t next = n_values;
  for (std::size_t tile = starts.size(); tile-- > 0;) {
    const std::uint64_t own = starts[tile];
    starts[tile] = next;
    next = own == kNoStart ? next : own;
  }
}

/// Checks count, size and lengths of an untrusted stream of n_expected values; returns the runs,
/// and in tile_starts the position of every kTileRuns-th run.
std::uint64_t checkStream(const CpuRun& run,
                          std::size_t value_bytes,
                          std::uint32_t n_expected,
                          Scratch& tile_starts) {
  const ByteView in = run.inputs[0];
  const std::uint64_t n_runs = loadLe<std::uint32_t>(in.data());
  const rle::Layout layout = rle::layoutOf(n_runs, value_bytes);
  FZ_REQUIRE(in.size() == layout.n_bytes, ErrorCode::kCorrupt, "RLE: {} runs need {} bytes, got {}",
             n_runs, layout.n_bytes, in.size());
  const auto* lengths = reinterpret_cast<const std::uint32_t*>(in.data() + layout.lengths_at);
  const std::size_t n_tiles = bits::ceilDiv(n_runs, std::uint64_t{rle::kTileRuns});
  const auto starts = tile_starts.get<std::uint64_t>(run.pool, n_tiles);
  parallelFor(run.executor, n_tiles, [&](std::size_t tile) {
    const std::uint64_t first = std::uint64_t{tile} * rle::kTileRuns;
    starts[tile] =
        rle::sumLengths(lengths + first, std::min<std::uint64_t>(rle::kTileRuns, n_runs - first));
  });
  const std::uint64_t n_values = exclusiveScan(starts);
  FZ_REQUIRE(n_values == n_expected, ErrorCode::kCorrupt,
             "RLE: run lengths must add up to {}, got {}", n_expected, n_values);
  return n_runs;
}

}  // namespace

template <class T>
struct RLEStage<T>::State : Scratches {};

template <class T>
RLEStage<T>::RLEStage() : state_(std::make_unique<State>()) {
}
template <class T>
RLEStage<T>::~RLEStage() = default;

template <class T>
void RLEStage<T>::encodeCpu(const CpuRun& run) {
  Scratches& work = *state_;
  const ByteView in = run.inputs[0];
  checkInput(in.size());
  const std::size_t n_values = in.size() / sizeof(T);
  n_values_ = static_cast<std::uint32_t>(n_values);

  const std::size_t n_tiles = bits::ceilDiv(n_values, std::size_t{rle::kTileValues});
  const EncoderTiles tiles{work.marks.get<std::uint64_t>(run.pool, n_tiles * rle::kTileMarkWords),
                           work.tile_starts.get<std::uint64_t>(run.pool, n_tiles),
                           work.next_starts.get<std::uint64_t>(run.pool, n_tiles), n_values};
  parallelFor(run.executor, n_tiles,
              [&](std::size_t tile) { tiles.mark(in.data(), tile, sizeof(T)); });
  turnIntoNextStarts(tiles.next_starts, n_values);
  const std::uint64_t n_runs = exclusiveScan(tiles.first_runs);

  const rle::Layout layout = rle::layoutOf(n_runs, sizeof(T));
  const MutableByteView out = run.outputs[0];
  if (out.size() < layout.n_bytes) {
    requestOutputBytes(0, static_cast<std::size_t>(layout.n_bytes));
    return;
  }
  storeLe(out.data(), static_cast<std::uint32_t>(n_runs));
  const std::uint64_t values_end = rle::kValuesAt + n_runs * sizeof(T);
  std::fill(out.data() + values_end, out.data() + layout.lengths_at, std::uint8_t{0});
  auto* lengths = reinterpret_cast<std::uint32_t*>(out.data() + layout.lengths_at);
  parallelFor(run.executor, n_tiles, [&](std::size_t tile) {
    const std::uint64_t first = tiles.first_runs[tile];
    rle::writeTile(in.data(), tiles.marksOf(tile), sizeof(T),
                   out.data() + rle::kValuesAt + first * sizeof(T), lengths + first);
  });
  setActualBytes(0, static_cast<std::size_t>(layout.n_bytes));
}

template <class T>
void RLEStage<T>::decodeCpu(const CpuRun& run) {
  Scratches& work = *state_;
  const ByteView in = run.inputs[0];
  const MutableByteView out = run.outputs[0];
  decodedBytes({{in.size()}});  // refuses what is too short to be read
  const std::uint64_t n_runs = checkStream(run, sizeof(T), n_values_, work.tile_starts);
  const std::size_t n_decoded = std::size_t{n_values_} * sizeof(T);
  if (out.size() < n_decoded) {
    requestOutputBytes(0, n_decoded);
    return;
  }
  const std::uint8_t* values = in.data() + rle::kValuesAt;
  const auto* lengths = reinterpret_cast<const std::uint32_t*>(
      in.data() + rle::layoutOf(n_runs, sizeof(T)).lengths_at);
  const auto starts = work.tile_starts.get<std::uint64_t>(
      run.pool, bits::ceilDiv(n_runs, std::uint64_t{rle::kTileRuns}));
  const std::uint64_t n_values = n_values_;
  // Tasks are pieces of the output, so one long run is shared out as well as many short ones.
  const std::size_t n_tasks = bits::ceilDiv(n_values, std::uint64_t{rle::kFillValues});
  parallelFor(run.executor, n_tasks, [&](std::size_t task) {
    const std::uint64_t begin = std::uint64_t{task} * rle::kFillValues;
    const auto behind = std::upper_bound(starts.begin(), starts.end(), begin);
    const auto tile = static_cast<std::uint64_t>(behind - starts.begin()) - 1;
    std::uint64_t first = tile * rle::kTileRuns;
    std::uint64_t start = starts[tile];
    while (start + lengths[first] <= begin) {
      start += lengths[first++];
    }
    rle::fillTile({values + first * sizeof(T), lengths + first, begin - start}, sizeof(T),
                  out.data() + begin * sizeof(T),
                  std::min<std::uint64_t>(rle::kFillValues, n_values - begin));
  });
  setActualBytes(0, n_decoded);
}

#define FZ_INSTANTIATE(T)                              \
  template RLEStage<T>::RLEStage();                    \
  template RLEStage<T>::~RLEStage();                   \
  template void RLEStage<T>::encodeCpu(const CpuRun&); \
  template void RLEStage<T>::decodeCpu(const CpuRun&)
FZ_INSTANTIATE(std::uint8_t);
FZ_INSTANTIATE(std::uint16_t);
FZ_INSTANTIATE(std::uint32_t);
FZ_INSTANTIATE(std::int32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
