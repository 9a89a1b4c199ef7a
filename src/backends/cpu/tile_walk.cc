#include "backends/cpu/tile_walk.h"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "backends/cpu/field_watch.h"
#include "backends/cpu/parallel_for.h"
#include "backends/cpu/stream_copy.h"
#include "fz/progress.h"
#include "shared/bits.h"

namespace fz {

namespace {

constexpr std::size_t kLineBytes = 64;
/// Machines take a load for one of what was just stored at a distance of a multiple of this, and
/// wait: buffers that a step reads and writes side by side lie half of it apart.
constexpr std::size_t kAliasBytes = 4096;
/// Tiles that a thread takes at a time: enough to make up for waiting for the slab before.
constexpr std::size_t kMaxSlabTiles = 32;
constexpr std::size_t kSlabBytes = 128 * 1024;
constexpr std::size_t kMaxStreamedTileBytes = 64 * 1024;

/// How many tiles make up the work that threads take in order.
std::size_t slabTiles(const TileWalk& walk) {
  const std::size_t tile_bytes =
      std::max<std::size_t>(1, walk.cut.tile_values * walk.chain.widest_bytes);
  const std::size_t fair = walk.cut.tileCount() / (4 * walk.executor.threadCount());
  return std::clamp<std::size_t>(std::min(fair, kSlabBytes / tile_bytes), 1, kMaxSlabTiles);
}

/// What one thread needs: up to two buffers that steps pass a tile between, two for the maps before
/// an order, and room for the payload of a slab or for a tile of the field that is streamed.
struct WorkerScratch {
  std::uint8_t* tiles[2];
  std::uint8_t* pieces[2];
  std::uint8_t* slot;
};

class WorkerScratches {
 public:
  WorkerScratches(const TileWalk& walk, std::size_t n_workers, std::size_t slot_bytes)
      // A band's codes may begin within a line so that the coder's part of them does not.
      : tile_bytes_(spaced(mostValues(walk.cut) * walk.chain.between_bytes + kLineBytes)),
        n_tiles_(buffersBetween(walk.chain)),
        n_pieces_(walk.chain.order == nullptr ? 0 : 2),
        scratch_bytes_((n_tiles_ + n_pieces_) * tile_bytes_ +
                       bits::roundUp(slot_bytes, kLineBytes)),
        memory_(walk.work.buffers.get<std::uint8_t>(walk.pool, n_workers * scratch_bytes_).data()) {
  }

  WorkerScratch at(std::size_t i) const {
    std::uint8_t* base = memory_ + i * scratch_bytes_;
    std::uint8_t* pieces = base + n_tiles_ * tile_bytes_;
    return {{base, base + (n_tiles_ == 2 ? tile_bytes_ : 0)},
            {pieces, pieces + (n_pieces_ == 2 ? tile_bytes_ : 0)},
            pieces + n_pieces_ * tile_bytes_};
  }

 private:
  /// Of a tile. Bands are long, and data may be shorter than one: whole units of the coder suffice.
  static std::size_t mostValues(const TileCut& cut) {
    const bool has_bands = cut.coder_values > 1;
    const std::uint64_t all = bits::roundUp<std::uint64_t>(cut.n_values, cut.coder_values);
    return has_bands ? static_cast<std::size_t>(std::min<std::uint64_t>(cut.maxTileValues(), all))
                     : cut.maxTileValues();
  }
  /// Bands are long enough as they are, and count in what decoding may take.
  static std::size_t spaced(std::size_t n_bytes) {
    return n_bytes > kMaxStreamedTileBytes ? bits::roundUp(n_bytes, kLineBytes)
                                           : bits::roundUp(n_bytes, kAliasBytes) + kAliasBytes / 2;
  }
  static std::size_t buffersBetween(const TileChain& chain) {
    const std::size_t n_parts = chain.steps.size() + (chain.order == nullptr ? 0 : 1);
    return std::min<std::size_t>(2, chain.coder == nullptr ? n_parts - 1 : n_parts);
  }

  std::size_t tile_bytes_;
  std::size_t n_tiles_;
  std::size_t n_pieces_;
  std::size_t scratch_bytes_;
  std::uint8_t* memory_;
};

/// Values of the field through the first op behind it.
void encodeField(
    const TileStep& step, FieldWatch* watch, const TileRange& range, const void* in, void* out) {
  if (watch == nullptr) {
    step.op->encodeTile(range, in, out);
  } else if (step.op->encodeWatched(range, watch->sought(), in, out)) {
    watch->look({static_cast<const std::uint8_t*>(in), range.n_values * step.field_bytes});
  }
}

/// Values of the field through the maps before an order.
class MappedField final : public TileFeed {
 public:
  /// `streamed`: memory for as much as is put at a time, when `out` is written past the caches.
  MappedField(const TileWalk& walk,
              const std::uint8_t* in,
              std::uint8_t* out,
              std::uint8_t* const (&pieces)[2],
              std::uint8_t* streamed)
      : chain_(walk.chain),
        watch_(walk.watch),
        in_(in),
        out_(out),
        pieces_{pieces[0], pieces[1]},
        streamed_(streamed) {}

  void fetch(std::uint64_t first, std::size_t n_values, void* out) override {
    const void* at = in_ + first * chain_.field_bytes;
    const std::size_t n_maps = chain_.maps.size();
    if (n_maps == 0) {
      std::memcpy(out, at, n_values * chain_.field_bytes);
      if (watch_ != nullptr) {
        watch_->look({in_ + first * chain_.field_bytes, n_values * chain_.field_bytes});
      }
    }
    for (std::size_t k = 0; k < n_maps; ++k) {
      void* to = k + 1 == n_maps ? out : pieces_[k % 2];
      encodeField(chain_.maps[k], k == 0 ? watch_ : nullptr, {first, n_values}, at, to);
      at = to;
    }
  }

  void put(std::uint64_t first, std::size_t n_values, const void* in) override {
    std::uint8_t* end = out_ + first * chain_.field_bytes;
    if (chain_.maps.empty()) {
      std::memcpy(end, in, n_values * chain_.field_bytes);
    }
    for (std::size_t k = chain_.maps.size(); k-- > 0;) {
      std::uint8_t* last = streamed_ != nullptr ? streamed_ : end;
      void* to = k == 0 ? last : pieces_[k % 2];
      chain_.maps[k].op->decodeTile({first, n_values}, in, to);
      in = to;
    }
    if (streamed_ != nullptr && !chain_.maps.empty()) {
      streamCopy(end, streamed_, n_values * chain_.field_bytes);
    }
  }

  void expect(std::uint64_t first, std::size_t n_values) override {
    if (streamed_ != nullptr) {
      return;
    }
    const std::size_t begin = first * chain_.field_bytes;
    const std::size_t end = begin + n_values * chain_.field_bytes;
    for (std::size_t at = begin; at < end; at += kLineBytes) {
      if (out_ != nullptr) {
        __builtin_prefetch(out_ + at, 1, 2);
      } else {
        __builtin_prefetch(in_ + at, 0, 2);
      }
    }
  }

 private:
  const TileChain& chain_;
  FieldWatch* watch_;
  const std::uint8_t* in_;
  std::uint8_t* out_;
  std::uint8_t* pieces_[2];
  std::uint8_t* streamed_;
};

/// A tile through the first step of a chain without order. Returns what the next one encodes: in a
/// band that is what begins with the coder's first unit, and ends behind the tile.
const void* encodeFirst(const TileWalk& walk,
                        const TileRange& range,
                        const TileRange& coded,
                        const std::uint8_t* field,
                        std::uint8_t* to) {
  const TileStep& step = walk.chain.steps.front();
  const std::size_t skipped_bytes = (coded.first - range.first) * step.coded_bytes;
  to += bits::roundUp(skipped_bytes, kLineBytes) - skipped_bytes;
  encodeField(step, walk.watch, range, field + range.first * step.field_bytes, to);
  const std::uint64_t end = range.first + range.n_values;
  if (coded.first + coded.n_values > end) {
    step.op->encodeAhead({end, static_cast<std::size_t>(coded.first + coded.n_values - end)},
                         field + end * step.field_bytes, to + range.n_values * step.coded_bytes);
  }
  return to + skipped_bytes;
}

/// A tile of the field through order and steps; returns where its values are. `last` is where the
/// last of them puts its values, or null: in the scratch.
const void* encodeFront(const TileWalk& walk,
                        std::size_t tile,
                        const std::uint8_t* field,
                        const WorkerScratch& scratch,
                        std::uint8_t* last) {
  const TileChain& chain = walk.chain;
  const TileRange range = walk.cut.at(tile);
  const TileRange coded = walk.cut.encodedAt(tile);
  const std::size_t n_left = chain.steps.size();
  std::size_t flip = 0;
  const void* at = field + range.first * chain.field_bytes;
  if (chain.order != nullptr) {
    MappedField feed(walk, field, nullptr, scratch.pieces, nullptr);
    void* to = n_left == 0 && last != nullptr ? last : scratch.tiles[flip++];
    chain.order->gatherTile(range, feed, to);
    at = to;
  }
  for (std::size_t k = 0; k < n_left; ++k) {
    const bool to_output = k + 1 == n_left && last != nullptr;
    std::uint8_t* to = to_output ? last : scratch.tiles[flip++ % 2];
    if (k == 0 && chain.order == nullptr && !to_output) {
      at = encodeFirst(walk, range, coded, field, to);
      continue;
    }
    chain.steps[k].op->encodeTile(coded, at, to);
    at = to;
  }
  return at;
}

/// `at` are the values of decodedAt(tile).
void decodeFront(const TileWalk& walk,
                 std::size_t tile,
                 const void* at,
                 std::size_t flip,
                 const WorkerScratch& scratch,
                 std::uint8_t* field,
                 bool streams) {
  const TileChain& chain = walk.chain;
  const TileRange range = walk.cut.at(tile);
  const TileRange coded = walk.cut.decodedAt(tile);
  std::uint8_t* const end = field + range.first * chain.field_bytes;
  std::uint8_t* const last = streams ? scratch.slot : end;
  const bool in_place = chain.order == nullptr && chain.steps.size() > 1 &&
                        coded.n_values == range.n_values &&
                        chain.steps.front().op->decodesInPlace();
  for (std::size_t k = chain.steps.size(); k-- > 0;) {
    const TileStep& step = chain.steps[k];
    if (k == 0 && chain.order == nullptr) {
      at = static_cast<const std::uint8_t*>(at) + (range.first - coded.first) * step.coded_bytes;
      step.op->decodeTile(range, at, last);
      if (streams) {
        streamCopy(end, last, range.n_values * chain.field_bytes);
      }
      return;
    }
    void* to = k == 1 && in_place ? last : scratch.tiles[flip++ % 2];
    step.op->decodeTile(coded, at, to);
    at = to;
  }
  if (chain.order != nullptr) {
    MappedField feed(walk, nullptr, field, scratch.pieces, streams ? scratch.slot : nullptr);
    chain.order->scatterTile(range, at, feed);
  }
}

/// Whether the rest of the field is not worth encoding or decoding: the run ends with an error.
bool isGivenUp(const TileWalk& walk) {
  return (walk.watch != nullptr && walk.watch->hasFound()) ||
         (walk.progress != nullptr && walk.progress->is_cancelled.load(std::memory_order_relaxed));
}

void countTiles(const TileWalk& walk, std::size_t n_tiles) {
  if (walk.progress != nullptr) {
    walk.progress->n_tiles_done.fetch_add(n_tiles, std::memory_order_relaxed);
  }
}

/// Calls f(slab, scratch) for every slab on all threads; slabs are begun in order.
template <class F>
void forSlabs(const TileWalk& walk, std::size_t n_slabs, std::size_t slot_bytes, F f) {
  const std::size_t n_workers = std::min(walk.executor.threadCount(), n_slabs);
  const WorkerScratches scratches(walk, std::max<std::size_t>(1, n_workers), slot_bytes);
  std::atomic<std::size_t> next{0};
  parallelFor(walk.executor, n_workers, [&](std::size_t worker) {
    const WorkerScratch scratch = scratches.at(worker);
    while (!isGivenUp(walk)) {
      const std::size_t slab = next.fetch_add(1, std::memory_order_relaxed);
      if (slab >= n_slabs) {
        return;
      }
      f(slab, scratch);
      const std::size_t first = slab * slabTiles(walk);
      countTiles(walk, std::min(slabTiles(walk), walk.cut.tileCount() - first));
    }
  });
}

/// One thread knows where a tile goes, and needs a slot only where the end of the output is near.
std::uint64_t encodeInPlace(const TileWalk& walk, ByteView field, MutableByteView payload) {
  const TileChain& chain = walk.chain;
  const std::size_t slot_bytes = chain.coder->maxTileBytes();
  const WorkerScratch scratch = WorkerScratches(walk, 1, slot_bytes).at(0);
  std::uint64_t end = 0;
  for (std::size_t tile = 0; tile < walk.cut.tileCount(); ++tile) {
    if (isGivenUp(walk)) {
      break;
    }
    const TileRange range = walk.cut.encodedAt(tile);
    const void* values = encodeFront(walk, tile, field.data(), scratch, nullptr);
    countTiles(walk, 1);
    const std::size_t room = end < payload.size() ? payload.size() - end : 0;
    if (room >= slot_bytes) {
      const std::size_t n_bytes = chain.coder->encodeTile(range, values, payload.data() + end);
      chain.coder->placeTile(range, end);
      end += n_bytes;
      continue;
    }
    const std::size_t n_bytes = chain.coder->encodeTile(range, values, scratch.slot);
    if (n_bytes != 0 && n_bytes <= room) {
      std::memcpy(payload.data() + end, scratch.slot, n_bytes);
    }
    chain.coder->placeTile(range, end);
    end += n_bytes;
  }
  return end;
}

void waitFor(const std::atomic<std::size_t>& counter, std::size_t value) {
  constexpr int kSpins = 256;
  int n_left = kSpins;
  while (counter.load(std::memory_order_acquire) != value) {
    if (n_left > 0) {
      --n_left;
    } else {
      std::this_thread::yield();  // the thread before us may wait for our core
    }
  }
}

/// Threads encode slabs into slots; a slab's place is known when the one before it has its own.
std::uint64_t encodeInSlots(const TileWalk& walk, ByteView field, MutableByteView payload) {
  const TileChain& chain = walk.chain;
  const std::size_t n_tiles = walk.cut.tileCount();
  const std::size_t slab_tiles = slabTiles(walk);
  const std::size_t tile_slot_bytes = chain.coder->maxTileBytes();
  std::atomic<std::size_t> n_placed{0};
  std::uint64_t end = 0;  // handed from slab to slab with n_placed
  forSlabs(walk, bits::ceilDiv(n_tiles, slab_tiles), slab_tiles * tile_slot_bytes,
           [&](std::size_t slab, const WorkerScratch& scratch) {
             const std::size_t first = slab * slab_tiles;
             const std::size_t n_here = std::min(slab_tiles, n_tiles - first);
             std::array<std::size_t, kMaxSlabTiles + 1> at = {};
             for (std::size_t i = 0; i < n_here; ++i) {
               const TileRange range = walk.cut.encodedAt(first + i);
               const void* values = encodeFront(walk, first + i, field.data(), scratch, nullptr);
               at[i + 1] = at[i] + chain.coder->encodeTile(range, values, scratch.slot + at[i]);
             }
             const std::size_t n_bytes = at[n_here];
             waitFor(n_placed, slab);
             const std::uint64_t begin = end;
             end += n_bytes;
             n_placed.store(slab + 1, std::memory_order_release);
             if (n_bytes != 0 && begin + n_bytes <= payload.size()) {
               std::memcpy(payload.data() + begin, scratch.slot, n_bytes);
             }
             for (std::size_t i = 0; i < n_here; ++i) {
               chain.coder->placeTile(walk.cut.encodedAt(first + i), begin + at[i]);
             }
           });
  return end;
}

}  // namespace

void encodeTiles(const TileWalk& walk, ByteView field, MutableByteView out) {
  const TileChain& chain = walk.chain;
  const std::size_t n_tiles = walk.cut.tileCount();
  if (chain.coder != nullptr) {
    const std::size_t offset = std::min(chain.coder->payloadOffset(), out.size());
    const MutableByteView payload = out.subspan(offset);
    chain.coder->setPayloadBytes(walk.executor.threadCount() == 1 || n_tiles <= 1
                                     ? encodeInPlace(walk, field, payload)
                                     : encodeInSlots(walk, field, payload));
    return;
  }
  const std::size_t slab_tiles = slabTiles(walk);
  forSlabs(walk, bits::ceilDiv(n_tiles, slab_tiles), 0,
           [&](std::size_t slab, const WorkerScratch& scratch) {
             const std::size_t end = std::min(n_tiles, (slab + 1) * slab_tiles);
             for (std::size_t tile = slab * slab_tiles; tile < end; ++tile) {
               encodeFront(walk, tile, field.data(), scratch,
                           out.data() + walk.cut.at(tile).first * chain.coded_bytes);
             }
           });
}

void decodeTiles(const TileWalk& walk, ByteView in, MutableByteView field) {
  const TileChain& chain = walk.chain;
  const std::size_t n_tiles = walk.cut.tileCount();
  const std::size_t slab_tiles = slabTiles(walk);
  // Bands are too long to stay in the first cache until they are copied.
  const std::size_t tile_bytes = walk.cut.tile_values * chain.field_bytes;
  const bool streams = field.size() >= kStreamedBytes && tile_bytes <= kMaxStreamedTileBytes &&
                       (chain.order != nullptr || !chain.steps.empty());
  const std::size_t slot_bytes = streams ? tile_bytes : 0;
  forSlabs(walk, bits::ceilDiv(n_tiles, slab_tiles), slot_bytes,
           [&](std::size_t slab, const WorkerScratch& scratch) {
             const std::size_t end = std::min(n_tiles, (slab + 1) * slab_tiles);
             for (std::size_t tile = slab * slab_tiles; tile < end; ++tile) {
               const TileRange range = walk.cut.decodedAt(tile);
               if (chain.coder == nullptr) {
                 decodeFront(walk, tile, in.data() + range.first * chain.coded_bytes, 0, scratch,
                             field.data(), streams);
                 continue;
               }
               const bool is_alone = chain.steps.empty() && chain.order == nullptr;
               std::uint8_t* to =
                   is_alone ? field.data() + range.first * chain.field_bytes : scratch.tiles[1];
               chain.coder->decodeTile(range, to);
               decodeFront(walk, tile, to, 0, scratch, field.data(), streams);
             }
             if (streams) {
               streamFence();
             }
           });
}

}  // namespace fz
