#pragma once

// BitplaneRZE at the end of a fused group. A warp works on one chunk: lane l has words 32 l .. 32 l
// + 31 and turns them into word l of every plane, so that a group of a plane lies in four
// neighbouring lanes. Device code only.

#include "backends/cuda/group/lines.cuh"
#include "backends/cuda/lookback.cuh"
#include "fused/bitplane_rze/codec.h"
#include "fused/bitplane_rze/cuda/kernels.h"
#include "fused/bitplane_rze/cuda/op/decode.cuh"
#include "fused/bitplane_rze/cuda/op/encode.cuh"

namespace fz::bitplane_rze {

namespace device {

using cuda::kAllLanes;
using cuda::kWarp;
using cuda::laneId;
using cuda::warpId;

constexpr unsigned kThreads = kChunksPerBlock * kWarp;
constexpr unsigned kPieces = kChunkBytes / 16;  // of 16 bytes, in a chunk
static_assert(kPlanes == kWarp && kPlaneWords == kWarp);

/// Header and size, by one thread that knows the length of the stream.
__device__ __forceinline__ void finishArchive(const BitplaneArgs& args,
                                              std::uint64_t n_symbols,
                                              std::uint64_t n_stream_words) {
  const Layout layout = layoutOf(n_symbols);
  const std::uint64_t n_bytes = n_symbols == 0 ? 0 : layout.stream_at + 4 * n_stream_words;
  cuda::publishSize(args.record, 0, n_bytes, args.out.capacity_bytes);
  args.record->value[kSymbolsSlot] = n_symbols;
  if (n_bytes == 0 || n_bytes > args.out.capacity_bytes) {
    return;
  }
  auto* words = reinterpret_cast<std::uint32_t*>(args.out.data);
  words[0] = static_cast<std::uint32_t>(n_symbols);
  words[1] = static_cast<std::uint32_t>(n_symbols >> 32);
  words[2] = 0;
  words[3] = kHeaderBytes;
  words[4] = static_cast<std::uint32_t>(layout.starts_at);
  words[5] = static_cast<std::uint32_t>(layout.stream_at);
  words[6] = static_cast<std::uint32_t>(n_bytes);
  for (unsigned i = 7; i < kHeaderBytes / 4; ++i) {
    words[i] = 0;
  }
}

/// Half a symbol at the end.
__device__ __forceinline__ bool hasOddBytes(const BitplaneArgs& args) {
  return cuda::load(args.in.size) % 2 != 0;
}

template <class Front>
__device__ __forceinline__ void encodeChunks(const BitplaneArgs& args, const Front& front) {
  __shared__ uint4 staged[kChunksPerBlock][kPieces];
  __shared__ std::uint32_t groups_of_warp[kChunksPerBlock];
  __shared__ std::uint64_t groups_before_block;
  const std::uint64_t n_symbols = front.count();
  const bool is_first = blockIdx.x == 0 && threadIdx.x == 0;
  if (n_symbols > kMaxSymbols || n_symbols == 0 || hasOddBytes(args)) {
    if (is_first) {
      finishArchive(args, 0, 0);
      if (n_symbols != 0 || hasOddBytes(args)) {
        cuda::recordError(args.record, DeviceError::kDoesNotFit, cuda::load(args.in.size));
      }
    }
    return;
  }
  const Layout layout = layoutOf(n_symbols);
  const std::uint64_t first_chunk = std::uint64_t{blockIdx.x} * kChunksPerBlock;
  if (first_chunk >= layout.n_chunks) {
    return;
  }
  const std::uint64_t chunk = first_chunk + warpId();
  std::uint32_t planes[32];
  {
    typename Front::Value symbols[2 * kPlanes];
    group::rowsOf<2 * kPlanes>(front, chunk * kChunkSymbols, staged[warpId()], symbols);
#pragma unroll
    for (unsigned i = 0; i < kPlanes; ++i) {
      planes[i] = std::uint32_t{static_cast<std::uint16_t>(symbols[2 * i])} |
                  std::uint32_t{static_cast<std::uint16_t>(symbols[2 * i + 1])} << 16;
    }
  }
  std::uint32_t set = 0;
#pragma unroll
  for (const std::uint32_t word : planes) {
    set |= word;
  }
  const StoredGroups groups(set);
  if (laneId() == 0) {
    groups_of_warp[warpId()] = groups.n_groups;
  }
  __syncthreads();
  std::uint32_t groups_before_warp = 0;
  std::uint32_t groups_of_block = 0;
#pragma unroll
  for (unsigned w = 0; w < kChunksPerBlock; ++w) {
    groups_before_warp += w < warpId() ? groups_of_warp[w] : 0u;
    groups_of_block += groups_of_warp[w];
  }
  // What the block has is known before its planes are, so that those behind it need not wait.
  const cuda::LookBack look_back{args.states};
  if (threadIdx.x == 0) {
    look_back.publish(blockIdx.x, groups_of_block);
  }
  wordsToPlanes(__reduce_or_sync(kAllLanes, set), planes);
  if (warpId() == 0) {
    const std::uint64_t before = look_back.prefix(blockIdx.x, groups_of_block);
    if (laneId() == 0) {
      groups_before_block = before;
    }
  }
  __syncthreads();
  const std::uint64_t groups_before = groups_before_block + groups_before_warp;
  const std::uint64_t end_word = (groups_before + groups.n_groups) * kGroupWords;
  if (chunk < layout.n_chunks && layout.stream_at + 4 * end_word <= args.out.capacity_bytes) {
    args.out.data[layout.flagsAt(chunk) + laneId()] = static_cast<std::uint8_t>(groups.flags);
    if (laneId() == 0) {
      *reinterpret_cast<std::uint32_t*>(args.out.data + layout.startAt(chunk)) =
          static_cast<std::uint32_t>(groups_before * kGroupWords);
    }
    auto* stream = reinterpret_cast<std::uint32_t*>(args.out.data + layout.stream_at) +
                   groups_before * kGroupWords;
    groups.store(planes, stream);
  }
  if (threadIdx.x == kThreads - 1 && first_chunk + kChunksPerBlock >= layout.n_chunks) {
    finishArchive(args, n_symbols, end_word);  // chunks behind the last one have no groups
  }
}

/// False when there is nothing to decode: no symbols, a buffer to be grown, or damage. Said once.
__device__ __forceinline__ bool openArchive(const BitplaneArgs& args,
                                            Layout& layout,
                                            std::uint64_t* n_archive) {
  const bool reports = blockIdx.x == 0 && threadIdx.x == 0;
  const std::uint64_t n_symbols = args.record->value[kSymbolsSlot];
  const std::uint64_t n_bytes = cuda::load(args.in.size);
  layout = layoutOf(n_symbols);
  *n_archive = n_bytes;
  bool good = n_symbols <= kMaxSymbols;
  if (good && n_symbols == 0) {
    good = n_bytes == 0;
  } else if (good) {
    good = n_bytes >= layout.stream_at && (n_bytes - layout.stream_at) % 4 == 0;
    if (good) {
      const auto* words = reinterpret_cast<const std::uint32_t*>(args.in.data);
      // All of them are on their way before the first is looked at.
      const std::uint32_t wrong = (words[0] ^ static_cast<std::uint32_t>(n_symbols)) |
                                  (words[1] ^ static_cast<std::uint32_t>(n_symbols >> 32)) |
                                  words[2] | (words[3] ^ kHeaderBytes) |
                                  (words[4] ^ static_cast<std::uint32_t>(layout.starts_at)) |
                                  (words[5] ^ static_cast<std::uint32_t>(layout.stream_at)) |
                                  (words[6] ^ static_cast<std::uint32_t>(n_bytes));
      good = wrong == 0 && n_bytes <= 0xFFFFFFFFu;
    }
  }
  if (!good && reports) {
    cuda::recordError(args.record, DeviceError::kCorrupt, 0);
    args.record->error_value = kHeaderIsWrong;
  }
  if (good && reports && !args.out.size_known) {
    cuda::publishSize(args.record, 0, 2 * n_symbols, args.out.capacity_bytes);
  }
  return good && 2 * n_symbols <= args.out.capacity_bytes;
}

template <class Front>
__device__ __forceinline__ void decodeChunks(const BitplaneArgs& args, const Front& front) {
  __shared__ uint4 staged[kChunksPerBlock][kPieces];
  Layout layout;
  std::uint64_t n_archive;
  const std::uint64_t chunk = std::uint64_t{blockIdx.x} * kChunksPerBlock + warpId();
  const std::uint64_t n_symbols = args.record->value[kSymbolsSlot];
  if (!openArchive(args, layout, &n_archive) || !front.begin(n_symbols)) {
    return;
  }
  const bool exists = chunk < layout.n_chunks;
  if (!Front::kBlockWide && !exists) {
    return;  // no barrier follows that other warps could wait at
  }
  const RunReader reader{args.record, args.in.data, layout, (n_archive - layout.stream_at) / 4};
  std::uint32_t words[kPlanes];
  reader.read(chunk * kPlaneWords + laneId(), exists, words);
  typename Front::Value symbols[2 * kPlanes];
#pragma unroll
  for (unsigned i = 0; i < kPlanes; ++i) {
    symbols[2 * i] = static_cast<std::uint16_t>(words[i]);
    symbols[2 * i + 1] = static_cast<std::uint16_t>(words[i] >> 16);
  }
  group::putRows<2 * kPlanes>(front, chunk * kChunkSymbols, n_symbols, staged[warpId()], symbols);
}

/// For a front that takes the symbols in an order of its own.
template <class Front>
__device__ __forceinline__ void decodeRuns(const BitplaneArgs& args, const Front& front) {
  static_assert(kThreads == group::kRunThreads);
  Layout layout;
  std::uint64_t n_archive;
  if (openArchive(args, layout, &n_archive) && front.begin(args.record->value[kSymbolsSlot])) {
    front.decodeRuns(
        RunReader{args.record, args.in.data, layout, (n_archive - layout.stream_at) / 4});
  }
}

}  // namespace device

struct BitplaneRzeOp {
  using Args = BitplaneArgs;
  /// See AnyChain.
  template <class Front>
  static constexpr bool kFitsRows = group::kFitsOwnStaging<Front, 2 * kPlanes>;

  template <class Front>
  struct Encoding {
    static_assert(sizeof(typename Front::Value) == 2);
    static constexpr unsigned kThreads = device::kThreads;
    static constexpr unsigned kBlocks = 4;
    static constexpr unsigned kTileValues = kChunksPerBlock * kChunkSymbols;
    static constexpr bool kIsPersistent = false;
    static constexpr unsigned kSharedBytes = 0;
  };
  template <class Front>
  using Decoding = Encoding<Front>;

  template <class Front>
  static __device__ __forceinline__ void encode(const BitplaneArgs& args, const Front& front) {
    device::encodeChunks(args, front);
    front.finish();
  }
  template <class Front>
  static __device__ __forceinline__ void decode(const BitplaneArgs& args, const Front& front) {
    if constexpr (group::kTakesRuns<Front>) {
      device::decodeRuns(args, front);
    } else {
      device::decodeChunks(args, front);
    }
  }
};

}  // namespace fz::bitplane_rze
