// Looks at header, tables and directory of an untrusted stream, as readHeader(), readBook() and
// readDirectory() do on the host, and makes the tables of a decoder: one thread block for each
// table, one for all else. Few packed values are decoded at once.
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/unaligned_load.cuh"
#include "coders/block_ans/book.h"
#include "coders/block_ans/book_codec.h"
#include "coders/block_ans/cuda/book_decode.cuh"
#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::block_ans {

namespace {

constexpr unsigned kThreads = kTableThreads;
static_assert(kThreads == kScale);

/// What a header says.
struct Front {
  std::uint64_t n_values;
  std::uint64_t n_bytes;  ///< of the stream
  std::uint64_t n_chunks;
  Form form;
  bool is_good;
};

/// As checkSize() of stage.cc, readHeader(), and what decodeCpu() looks at.
__device__ Front readFront(const DecodeArgs& args, std::uint32_t value_bytes) {
  Front front = {args.record->value[kCountSlot], cuda::load(args.in.size), 0, Form::kPacked, false};
  constexpr std::uint64_t kChunkValues = std::uint64_t{kMaxChunkGroups} * kGroupValues;
  if (front.n_values == 0 || front.n_bytes == 0) {
    front.is_good = front.n_values == front.n_bytes;
    return front;
  }
  if (front.n_values > kMaxPackedValues &&
      (front.n_bytes <= kHeaderBytes || bits::ceilDiv(front.n_values, kChunkValues) >
                                            (front.n_bytes - kHeaderBytes) / kEntryBytes)) {
    return front;
  }
  const std::uint32_t form = args.in.data[0];
  if (form > static_cast<std::uint32_t>(Form::kCounted)) {
    return front;
  }
  front.form = static_cast<Form>(form);
  if (front.form == Form::kPacked) {
    front.is_good = front.n_values <= kMaxPackedValues;
    return front;
  }
  if (front.n_bytes < kHeaderBytes) {
    return front;
  }
  front.n_chunks = cuda::loadUnaligned<std::uint32_t>(args.in.data, 0) >> 8;
  front.is_good =
      (front.form == Form::kStored) == (front.n_chunks == 0) &&
      front.n_chunks <= (front.n_bytes - kHeaderBytes) / kEntryBytes &&
      (front.form != Form::kStored || front.n_bytes - kHeaderBytes == front.n_values * value_bytes);
  return front;
}

/// The table of a decoder: what it looks up by a slot.
__device__ void storeSlots(const DecodeArgs& args,
                           std::uint32_t table,
                           const std::uint32_t* start) {
  const std::uint32_t slot = threadIdx.x;
  if (table >= kSymbolTables) {
    if (slot < kClassBounds) {
      args.class_bounds[(table - kSymbolTables) * kClassBounds + slot] =
          static_cast<std::uint16_t>(slot <= kClasses ? start[slot] : 0xFFFF);
    }
    return;
  }
  std::uint32_t symbol = 0;
#pragma unroll
  for (std::uint32_t step = kSymbols / 2; step != 0; step /= 2) {
    symbol += start[symbol + step] <= slot ? step : 0;
  }
  const std::uint32_t in_symbol = slot - start[symbol];
  const std::uint32_t freq = start[symbol + 1] - start[symbol];
  std::uint32_t entry = 0;
  if (table <= symbolTable(kMaxDirectClass)) {
    const std::uint32_t value = args.map == Map::kNone ? symbol : valueOf<Map::kZigzag>(symbol);
    entry = in_symbol | (value & 0x7FFu) << 10 | freq << 21;
  } else {
    const std::uint32_t mantissa = symbol < 16 ? symbol : 4 + (symbol & 3u);
    entry = in_symbol | freq << 10 | mantissa << 21 | rawBits(symbol) << 25;
  }
  args.slots[table * kScale + slot] = entry;
}

/// A whole thread block: a table of the stream or of the bank. False: it is damaged.
__device__ bool makeTable(const DecodeArgs& args,
                          const BankTables& bank,
                          const Front& front,
                          std::uint32_t value_bytes,
                          std::uint32_t table) {
  __shared__ TableShared shared;
  if (warpId() == 0) {
    const std::uint32_t limit = tableLimit(table, value_bytes);
    std::uint32_t freq[kLaneSymbols] = {};
    bool is_good = true;
    TablePlace place = {0, 0};
    if (front.form == Form::kCounted) {
      const std::uint64_t room = front.n_bytes - kHeaderBytes;
      is_good = room >= kTables;
      if (is_good) {
        place = placeOf(args.in.data + kHeaderBytes, table);
        is_good = kTables + place.before + place.n_bytes <= room;
      }
    }
    if (is_good && place.n_bytes != 0) {
      const std::uint8_t* const from = args.in.data + kHeaderBytes + kTables + place.before;
      auto* const bytes = reinterpret_cast<std::uint8_t*>(shared.words);
      constexpr unsigned kEach = (sizeof(shared.words) + kWarp - 1) / kWarp;
      std::uint8_t own[kEach];  // all on the way at once
#pragma unroll
      for (unsigned k = 0; k < kEach; ++k) {
        const unsigned i = k * kWarp + laneId();
        own[k] = i < place.n_bytes ? from[i] : std::uint8_t{0};
      }
#pragma unroll
      for (unsigned k = 0; k < kEach; ++k) {
        const unsigned i = k * kWarp + laneId();
        if (i < sizeof(shared.words)) {
          bytes[i] = own[k];
        }
      }
      __syncwarp();
      is_good = readTable(shared, table, place.n_bytes, limit, freq);
    } else {
#pragma unroll
      for (unsigned k = 0; k < kLaneSymbols; ++k) {
        const std::uint32_t symbol = laneId() * kLaneSymbols + k;
        freq[k] = symbol < limit ? bank.freq[bank.begin[table] + symbol] : 0;
      }
    }
    const std::uint32_t own = freq[0] + freq[1] + freq[2] + freq[3];
    std::uint32_t start = cuda::warpInclusiveSum(own) - own;
#pragma unroll
    for (unsigned k = 0; k < kLaneSymbols; ++k) {
      shared.start[laneId() * kLaneSymbols + k] = start;
      start += freq[k];
    }
    if (laneId() == kWarp - 1) {
      shared.start[kSymbols] = start;
      shared.is_good = is_good ? 1 : 0;
    }
  }
  __syncthreads();
  if (shared.is_good == 0) {
    return false;
  }
  storeSlots(args, table, shared.start);
  return true;
}

constexpr unsigned kThreadEntries = 4;

/// A whole thread block: where chunks begin, and whether they are what they should be.
__device__ bool readDirectory(const DecodeArgs& args,
                              const Front& front,
                              std::uint64_t offset,
                              std::uint32_t value_bytes) {
  __shared__ std::uint64_t warp_sums[kThreads / kWarp];
  if (offset > front.n_bytes || kEntryBytes * front.n_chunks > front.n_bytes - offset) {
    return false;
  }
  const std::uint64_t n_groups = groupsOf(front.n_values);
  const std::uint8_t* const entries = args.in.data + offset;
  // Groups in the lower bits, words in the others: no tile has more.
  constexpr unsigned kGroupBits = 24;
  std::uint64_t group = 0;
  std::uint64_t byte = offset + kEntryBytes * front.n_chunks;
  bool is_good = true;
  for (std::uint64_t tile = 0; tile < front.n_chunks; tile += kThreads * kThreadEntries) {
    const std::uint64_t c = tile + threadIdx.x * kThreadEntries;
    std::uint64_t own[kThreadEntries];
    std::uint64_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < kThreadEntries; ++i) {
      own[i] = 0;
      if (c + i < front.n_chunks) {
        const auto entry = cuda::loadUnaligned<std::uint32_t>(entries, c + i);
        own[i] = std::uint64_t{entry >> 10} << kGroupBits | ((entry & 1023u) + 1);
      }
      sum += own[i];
    }
    std::uint64_t of_tile = 0;
    std::uint64_t before = cuda::blockExclusiveSum<kThreads>(sum, warp_sums, &of_tile);
#pragma unroll
    for (unsigned i = 0; i < kThreadEntries; ++i) {
      if (c + i < front.n_chunks) {
        constexpr std::uint64_t kGroupMask = (std::uint64_t{1} << kGroupBits) - 1;
        const std::uint64_t first = group + (before & kGroupMask);
        const std::uint64_t of_chunk = own[i] & kGroupMask;
        const std::uint64_t n_words = own[i] >> kGroupBits;
        if (of_chunk > kMaxChunkGroups || first + of_chunk > n_groups) {
          is_good = false;
        } else {
          const std::uint64_t end = min((first + of_chunk) * kGroupValues, front.n_values);
          is_good = is_good && n_words <= (end - first * kGroupValues) * (value_bytes / 2);
        }
        if (c + i < args.max_chunks) {
          args.chunks[c + i] = {first, byte + 2 * (before >> kGroupBits)};
        }
      }
      before += own[i];
    }
    group += of_tile & ((std::uint64_t{1} << kGroupBits) - 1);
    byte += 2 * (of_tile >> kGroupBits);
    __syncthreads();
  }
  if (threadIdx.x == 0 && front.n_chunks <= args.max_chunks) {
    args.chunks[front.n_chunks] = {group, byte};
  }
  return __syncthreads_and(is_good ? 1 : 0) != 0 && group == n_groups && byte == front.n_bytes;
}

/// A whole thread block: tables' sizes and what stands behind them, then the directory.
__device__ bool readChunks(const DecodeArgs& args, const Front& front, std::uint32_t value_bytes) {
  __shared__ std::uint64_t directory_at;  // 0: damage
  if (front.form != Form::kCounted) {
    return readDirectory(args, front, kHeaderBytes, value_bytes);
  }
  if (warpId() == 0) {
    std::uint64_t at = 0;
    if (front.n_bytes >= kHeaderBytes + kTables) {
      const std::uint32_t n_bytes = placeOf(args.in.data + kHeaderBytes, kTables).before;
      at = kHeaderBytes + kTables + n_bytes;
      for (; at % kBookAlign != 0; ++at) {
        if (at >= front.n_bytes || args.in.data[at] != 0) {
          at = 0;
          break;
        }
      }
    }
    if (laneId() == 0) {
      directory_at = at;
    }
  }
  __syncthreads();
  return directory_at != 0 && readDirectory(args, front, directory_at, value_bytes);
}

constexpr unsigned kMaxPackedBytes = 1 + kMaxPackedValues / kBlockValues * (1 + kBlockValues * 4);

struct PackedShared {
  std::uint8_t bytes[kMaxPackedBytes + 8];
  std::uint32_t at[kMaxPackedValues / kBlockValues];  // of a block behind its width
  std::uint32_t is_good;
};

/// One thread: where the blocks of packed values are.
__device__ bool findBlocks(PackedShared& shared,
                           std::uint32_t n_values,
                           std::uint32_t n_bytes,
                           std::uint32_t value_bytes) {
  std::uint32_t at = 1;
  for (std::uint32_t b = 0; b * kBlockValues < n_values; ++b) {
    if (at >= n_bytes) {
      return false;
    }
    const std::uint32_t width = shared.bytes[at++];
    const std::uint32_t n_bits = min(kBlockValues, n_values - b * kBlockValues) * width;
    const std::uint32_t n_of_block = (n_bits + 7) / 8;
    if (width > 8 * value_bytes || n_of_block > n_bytes - at) {
      return false;
    }
    shared.at[b] = at;
    at += n_of_block;
    if (n_bits % 8 != 0 && shared.bytes[at - 1] >> (n_bits % 8) != 0) {
      return false;
    }
  }
  return at == n_bytes;
}

/// A whole thread block.
template <class T>
__device__ bool decodePacked(const DecodeArgs& args, const Front& front) {
  __shared__ PackedShared shared;
  if (front.n_bytes > kMaxPackedBytes) {
    return false;
  }
  const auto n_bytes = static_cast<std::uint32_t>(front.n_bytes);
  const auto n_values = static_cast<std::uint32_t>(front.n_values);
  for (std::uint32_t i = threadIdx.x; i < n_bytes; i += kThreads) {
    shared.bytes[i] = args.in.data[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.is_good = findBlocks(shared, n_values, n_bytes, sizeof(T)) ? 1 : 0;
  }
  __syncthreads();
  if (shared.is_good == 0) {
    return false;
  }
  if (n_values * sizeof(T) <= args.out.capacity_bytes) {
    for (std::uint32_t i = threadIdx.x; i < n_values; i += kThreads) {
      const std::uint32_t at = shared.at[i / kBlockValues];
      const std::uint32_t width = shared.bytes[at - 1];
      const std::uint32_t bit = i % kBlockValues * width;
      std::uint64_t five = 0;
      for (std::uint32_t b = 0; b < 5; ++b) {
        five |= std::uint64_t{shared.bytes[at + bit / 8 + b]} << (8 * b);
      }
      const auto u =
          static_cast<std::uint32_t>(five >> (bit % 8) & ((std::uint64_t{1} << width) - 1));
      reinterpret_cast<T*>(args.out.data)[i] = unmapped<T>(u, args.map);
    }
  }
  return true;
}

/// What the stream has behind its last whole aligned word.
__device__ void keepTail(const DecodeArgs& args, std::uint64_t n_bytes) {
  const auto end = reinterpret_cast<std::uintptr_t>(args.in.data) + n_bytes;
  const auto n_left =
      static_cast<std::uint32_t>(min(end % 4, static_cast<std::uintptr_t>(n_bytes)));
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < n_left; ++i) {
    const std::uint32_t byte = args.in.data[n_bytes - n_left + i];
    word |= byte << (8 * (end % 4 - n_left + i));
  }
  args.plan->tail[0] = word;
  args.plan->tail[1] = 0;
}

/// A full warp: the first part that is damaged, kTables + 1 if there is none.
__device__ std::uint32_t firstDamage(const DecodePlan& plan) {
  std::uint32_t first = kTables + 1;
  for (std::uint32_t part = laneId(); part <= kTables; part += kWarp) {
    if (__ldcg(&plan.is_part_good[part]) == 0) {
      first = min(first, part);
    }
  }
  return __reduce_min_sync(kAllLanes, first);
}

/// One thread, when all is known: the size, or the damage.
__device__ void finishPlan(const DecodeArgs& args,
                           const Front& front,
                           std::uint32_t first_damage,
                           std::uint32_t value_bytes) {
  DecodePlan& plan = *args.plan;
  *args.n_blocks_done = 0;
  const bool is_good = front.is_good && first_damage > kTables;
  if (!front.is_good) {
    recordReason(args.record, DeviceError::kCorrupt, Reason::kBadHeader, front.n_bytes);
  } else if (first_damage < kTables) {
    recordReason(args.record, DeviceError::kCorrupt, Reason::kBadTable, first_damage);
  } else if (first_damage == kTables) {
    recordReason(args.record, DeviceError::kCorrupt,
                 front.form == Form::kPacked ? Reason::kBadPacked : Reason::kBadDirectory, 0);
  }
  const std::uint64_t out_bytes = front.n_values * value_bytes;
  if (is_good && !args.out.size_known) {
    cuda::publishSize(args.record, 0, out_bytes, args.out.capacity_bytes);
  } else if (is_good && out_bytes > args.out.capacity_bytes) {
    recordReason(args.record, DeviceError::kCorrupt, Reason::kBadHeader, front.n_bytes);
  }
  plan.n_values = front.n_values;
  plan.n_chunks = front.n_chunks;
  plan.form = static_cast<std::uint32_t>(front.form);
  plan.next_chunk = 0;
  plan.is_good = is_good && out_bytes <= args.out.capacity_bytes ? 1 : 0;
}

template <class T>
__global__ void __launch_bounds__(kThreads) prepareKernel(const __grid_constant__ DecodeArgs args,
                                                          const __grid_constant__ BankTables bank) {
  __shared__ Front front;
  if (threadIdx.x == 0) {
    front = readFront(args, sizeof(T));
  }
  __syncthreads();
  bool is_good = true;
  if (front.is_good && front.n_values != 0) {
    if (blockIdx.x < kTables) {
      is_good = front.n_chunks == 0 || makeTable(args, bank, front, sizeof(T), blockIdx.x);
    } else if (front.form == Form::kPacked) {
      is_good = decodePacked<T>(args, front);
    } else {
      is_good = front.n_chunks == 0 || readChunks(args, front, sizeof(T));
      if (threadIdx.x == 0) {
        keepTail(args, front.n_bytes);
      }
    }
  }
  if (threadIdx.x == 0) {
    args.plan->is_part_good[blockIdx.x] = is_good ? 1 : 0;
  }
  if (cuda::isLastBlock(args.n_blocks_done) && warpId() == 0) {
    const std::uint32_t first_damage = firstDamage(*args.plan);
    if (laneId() == 0) {
      finishPlan(args, front, first_damage, sizeof(T));
    }
  }
}

}  // namespace

void launchPrepare(const DecodeArgs& args,
                   const BankTables& bank,
                   std::size_t value_bytes,
                   const cuda::Call& call) {
  const auto kernel =
      value_bytes == 2 ? prepareKernel<std::uint16_t> : prepareKernel<std::uint32_t>;
  call.launch("block_ans prepare", kernel, kTables + 1, kThreads, 0, args, bank);
}

}  // namespace fz::block_ans
