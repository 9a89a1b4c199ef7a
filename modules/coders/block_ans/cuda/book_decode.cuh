#pragma once

// An untrusted table, read by a warp as readTable() of book.cc does on the host. Device code only.

#include "coders/block_ans/book_codec.h"
#include "coders/block_ans/cuda/values.cuh"

namespace fz::block_ans {

inline constexpr unsigned kLaneSymbols = kSymbols / kWarp;  // lane l has symbols 4l to 4l + 3

/// A full warp, in all lanes: bytes of the tables before one, and its own.
struct TablePlace {
  std::uint32_t before;
  std::uint32_t n_bytes;
};
inline __device__ TablePlace placeOf(const std::uint8_t* sizes, std::uint32_t table) {
  const std::uint32_t second = kWarp + laneId();
  const std::uint32_t n_first = sizes[laneId()];
  const std::uint32_t n_second = second < kTables ? sizes[second] : 0;
  const std::uint32_t before = (laneId() < table ? n_first : 0) + (second < table ? n_second : 0);
  const std::uint32_t n_bytes =
      (laneId() == table ? n_first : 0) + (second == table ? n_second : 0);
  return {__reduce_add_sync(kAllLanes, before), __reduce_add_sync(kAllLanes, n_bytes)};
}

inline constexpr unsigned kTableWords = 256 / 4;

struct TableShared {
  std::uint32_t words[kTableWords + 2];  // zeros behind the table
  std::uint32_t ends[kSymbols + 1];  // of the lengths of symbols, in bits; [0]: where they begin
  std::uint32_t start[kSymbols + 1];
  std::uint32_t is_good;
};

__device__ __forceinline__ std::uint32_t bitsAt(const std::uint32_t* words,
                                                std::uint32_t at,
                                                std::uint32_t n_bits) {
  const std::uint32_t i = min(at / 32, kTableWords);
  return lowBits(__funnelshift_r(words[i], words[i + 1], at % 32), n_bits);
}

/// A full warp: where the codes of lengths end. The i-th of them ends with the i-th one.
inline __device__ void findEnds(TableShared& shared, std::uint32_t n_bits_before) {
  std::uint32_t own[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    own[i] = shared.words[2 * laneId() + i];
  }
  if (laneId() == 0) {
    own[0] &= ~0u << n_bits_before;
    shared.ends[0] = n_bits_before;
  }
  const std::uint32_t n_own = static_cast<std::uint32_t>(__popc(own[0]) + __popc(own[1]));
  std::uint32_t index = cuda::warpInclusiveSum(n_own) - n_own;
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    for (std::uint32_t rest = own[i]; rest != 0 && index < kSymbols; rest &= rest - 1) {
      shared.ends[++index] =
          32 * (2 * laneId() + i) + static_cast<std::uint32_t>(__ffs(static_cast<int>(rest)));
    }
  }
}

/// A full warp: readTable() of book.cc for a table that stands in shared.words.
inline __device__ bool readTable(TableShared& shared,
                                 std::uint32_t table,
                                 std::uint32_t n_bytes,
                                 std::uint32_t limit,
                                 std::uint32_t (&freq)[kLaneSymbols]) {
  const std::uint32_t n_symbols = lowBits(shared.words[0], countBits(table)) + 1;
  for (unsigned i = laneId(); i <= kSymbols; i += kWarp) {
    shared.ends[i] = 0;
  }
  __syncwarp();
  findEnds(shared, countBits(table));
  __syncwarp();
  if (n_symbols > limit || shared.ends[n_symbols] == 0) {
    return false;
  }
  const std::uint32_t first = laneId() * kLaneSymbols;
  bool is_good = true;
  std::int32_t change[kLaneSymbols];
#pragma unroll
  for (unsigned k = 0; k < kLaneSymbols; ++k) {
    change[k] = 0;
    if (first + k < n_symbols) {
      const std::uint32_t n_zeros = shared.ends[first + k + 1] - shared.ends[first + k] - 1;
      is_good = is_good && n_zeros <= 2 * kMaxLength;
      change[k] = bits::unzigzag(min(n_zeros, 2 * kMaxLength));
    }
  }
  const std::int32_t own = change[0] + change[1] + change[2] + change[3];
  std::int32_t running =
      static_cast<std::int32_t>(kFirstLength) + cuda::warpInclusiveSum(own) - own;
  std::uint32_t length[kLaneSymbols];
  std::uint32_t longest = 0;
#pragma unroll
  for (unsigned k = 0; k < kLaneSymbols; ++k) {
    running += change[k];
    length[k] = first + k < n_symbols ? static_cast<std::uint32_t>(running) : 0;
    is_good = is_good && length[k] <= kMaxLength;
    longest = max(longest, length[k]);
  }
  if (!__all_sync(kAllLanes, is_good)) {
    return false;
  }
  longest = uniform(longest);
  // The first of the greatest length is what is left.
  std::uint32_t implied = kSymbols;
#pragma unroll
  for (unsigned k = kLaneSymbols; k-- > 0;) {
    implied = length[k] == longest ? first + k : implied;
  }
  implied = __reduce_min_sync(kAllLanes, implied);
  std::uint32_t n_own = 0;
#pragma unroll
  for (unsigned k = 0; k < kLaneSymbols; ++k) {
    n_own += first + k != implied && length[k] != 0 ? length[k] - 1 : 0;
  }
  const std::uint32_t until = cuda::warpInclusiveSum(n_own);
  std::uint32_t at = shared.ends[n_symbols] + until - n_own;
  std::uint32_t sum = 0;
#pragma unroll
  for (unsigned k = 0; k < kLaneSymbols; ++k) {
    freq[k] = 0;
    if (first + k != implied && length[k] != 0) {
      freq[k] = 1u << (length[k] - 1) | bitsAt(shared.words, at, length[k] - 1);
      at += length[k] - 1;
      sum += freq[k];
    }
  }
  sum = __reduce_add_sync(kAllLanes, sum);
  if (sum >= kScale || bits::bitWidth(kScale - sum) != longest) {
    return false;
  }
  std::uint32_t of_last = 0;
#pragma unroll
  for (unsigned k = 0; k < kLaneSymbols; ++k) {
    freq[k] = first + k == implied ? kScale - sum : freq[k];
    of_last |= first + k == n_symbols - 1 ? freq[k] : 0;
  }
  const std::uint32_t end = shared.ends[n_symbols] + __shfl_sync(kAllLanes, until, kWarp - 1);
  return uniform(of_last) != 0 && (end + 7) / 8 == n_bytes &&
         bitsAt(shared.words, end, (8 - end % 8) % 8) == 0;
}

}  // namespace fz::block_ans
