#pragma once

// Where chunks go in a stream, and which form it has: by a thread block of an encoder, when all
// chunks are there. Device code only.

#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"

namespace fz::block_ans {

inline constexpr unsigned kEncodeWarps = kEncodeThreads / kWarp;

inline constexpr unsigned kThreadChunks = 8;

/// A whole thread block: where each chunk begins among chunks. Returns the bytes of all.
inline __device__ std::uint64_t sumChunks(const EncodeArgs& args, std::uint64_t n_chunks) {
  __shared__ std::uint64_t warp_sums[kEncodeWarps];
  std::uint64_t carry = 0;
  for (std::uint64_t tile = 0; tile < n_chunks; tile += kEncodeThreads * kThreadChunks) {
    const std::uint64_t c = tile + threadIdx.x * kThreadChunks;
    std::uint32_t n_words[kThreadChunks];
    std::uint64_t own = 0;
#pragma unroll
    for (unsigned i = 0; i < kThreadChunks; i += 4) {
      uint4 four = make_uint4(0, 0, 0, 0);
      if (c + i < n_chunks) {
        four = __ldcg(reinterpret_cast<const uint4*>(args.chunk_words + c + i));
      }
      n_words[i] = four.x;
      n_words[i + 1] = four.y;
      n_words[i + 2] = four.z;
      n_words[i + 3] = four.w;
    }
#pragma unroll
    for (unsigned i = 0; i < kThreadChunks; ++i) {
      n_words[i] = c + i < n_chunks ? n_words[i] : 0;
      own += n_words[i];
    }
    std::uint64_t of_tile = 0;
    std::uint64_t before =
        carry + cuda::blockExclusiveSum<kEncodeThreads>(own, warp_sums, &of_tile);
#pragma unroll
    for (unsigned i = 0; i < kThreadChunks; ++i) {
      if (c + i < n_chunks) {
        args.chunk_at[c + i] = 2 * before;
      }
      before += n_words[i];
    }
    carry += of_tile;
    __syncthreads();
  }
  return 2 * carry;
}

/// Bytes of tables in a stream.
inline __device__ std::uint32_t bookBytes(const EncodePlan& plan) {
  std::uint32_t n_bytes = 0;
  for (std::uint32_t t = 0; t < kTables; ++t) {
    n_bytes += plan.table_bytes[t];
  }
  return n_bytes == 0 ? 0 : (kTables + n_bytes + 3) / 4 * 4;
}

struct PackedBlocks {
  static constexpr unsigned kMax = kMaxPackedValues / kBlockValues;
  std::uint32_t width[kMax];
  std::uint32_t at[kMax + 1];  ///< of its width in the stream
};

__device__ __forceinline__ std::uint32_t blockLength(std::uint32_t n_values, std::uint32_t block) {
  return min(kBlockValues, n_values - block * kBlockValues);
}

/// A whole thread block: the form kPacked of few values. Returns its bytes.
template <class T, Map kMap>
inline __device__ std::uint32_t measurePacked(const T* values,
                                              std::uint32_t n_values,
                                              PackedBlocks& blocks) {
  const std::uint32_t n_blocks = (n_values + kBlockValues - 1) / kBlockValues;
  for (std::uint32_t b = warpId(); b < n_blocks; b += kEncodeWarps) {
    std::uint32_t all = 0;
    for (std::uint32_t i = laneId(); i < blockLength(n_values, b); i += kWarp) {
      all |= numberOf<kMap>(values[b * kBlockValues + i]);
    }
    all = __reduce_or_sync(kAllLanes, all);
    if (laneId() == 0) {
      blocks.width[b] = bits::bitWidth(all);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t at = 1;
    for (std::uint32_t b = 0; b < n_blocks; ++b) {
      blocks.at[b] = at;
      at += 1 + (blockLength(n_values, b) * blocks.width[b] + 7) / 8;
    }
    blocks.at[n_blocks] = at;
  }
  __syncthreads();
  return blocks.at[n_blocks];
}

template <class T, Map kMap>
inline __device__ void writePackedBlocks(const T* values,
                                         std::uint32_t n_values,
                                         const PackedBlocks& blocks,
                                         std::uint8_t* out) {
  const std::uint32_t n_blocks = (n_values + kBlockValues - 1) / kBlockValues;
  if (threadIdx.x == 0) {
    out[0] = static_cast<std::uint8_t>(Form::kPacked);
  }
  for (std::uint32_t b = warpId(); b < n_blocks; b += kEncodeWarps) {
    const std::uint32_t width = blocks.width[b];
    std::uint8_t* const to = out + blocks.at[b];
    const std::uint32_t n_bytes = blocks.at[b + 1] - blocks.at[b] - 1;
    if (laneId() == 0) {
      to[0] = static_cast<std::uint8_t>(width);
    }
    for (std::uint32_t i = laneId(); i < n_bytes; i += kWarp) {
      std::uint32_t byte = 0;
      for (std::uint32_t bit = 0; bit < 8; ++bit) {
        const std::uint32_t at = 8 * i + bit;
        const std::uint32_t value = at / width;
        if (value < blockLength(n_values, b)) {
          const std::uint32_t u = numberOf<kMap>(values[b * kBlockValues + value]);
          byte |= (u >> (at % width) & 1u) << bit;
        }
      }
      to[1 + i] = static_cast<std::uint8_t>(byte);
    }
  }
}

/// A whole thread block, when all chunks are there.
template <class T, Map kMap>
__device__ __noinline__ void placeStream(const EncodeArgs& args) {
  __shared__ PackedBlocks blocks;
  EncodePlan& plan = *args.plan;
  const std::uint64_t n_values = plan.n_values;
  const std::uint64_t n_chunks = plan.n_chunks;
  const std::uint64_t of_chunks = sumChunks(args, n_chunks);
  const std::uint32_t n_book_bytes = bookBytes(plan);
  const std::uint64_t n_stored = kHeaderBytes + n_values * sizeof(T);
  std::uint64_t n_bytes = kHeaderBytes + n_book_bytes + kEntryBytes * n_chunks + of_chunks;
  Form form = n_book_bytes == 0 ? Form::kBank : Form::kCounted;
  if (n_bytes >= n_stored) {
    n_bytes = n_stored;
    form = Form::kStored;
  }
  const T* const values = reinterpret_cast<const T*>(args.in.data);
  if (n_values <= kMaxPackedValues) {
    const auto n_few = static_cast<std::uint32_t>(n_values);
    const std::uint32_t n_packed = measurePacked<T, kMap>(values, n_few, blocks);
    if (n_packed < n_bytes) {
      n_bytes = n_packed;
      form = Form::kPacked;
      if (n_packed <= args.out.capacity_bytes) {
        writePackedBlocks<T, kMap>(values, n_few, blocks, args.out.data);
      }
    }
  }
  if (threadIdx.x == 0) {
    cuda::publishSize(args.record, 0, n_bytes, args.out.capacity_bytes);
    plan.form = n_bytes <= args.out.capacity_bytes ? static_cast<std::uint32_t>(form)
                                                   : EncodePlan::kNothing;
    plan.n_book_bytes = n_book_bytes;
  }
}

}  // namespace fz::block_ans
