#pragma once

// Keeping some values of a tile and leaving out the others: marks of 16 bytes at a time, ranks of
// marked values over a tile that warps read in rows of 512 bytes, and strings of kept bytes in
// shared memory. Device code only.

#include <cstdint>

#include "backends/cuda/device.cuh"

namespace fz::cuda {

constexpr unsigned kRowBytes = 16 * kWarp;  // what a warp loads with one instruction
constexpr unsigned kRowsPerWarp = 4;        // loads in flight per thread

/// Byte of the tile where this thread's piece of 16 begins, in row `r` of its warp.
__device__ __forceinline__ std::uint32_t pieceAt(unsigned r) {
  return (warpId() * kRowsPerWarp + r) * kRowBytes + 16 * laneId();
}

/// 16 bytes of an array that has n_left bytes from p on; those that are missing read as zero.
__device__ __forceinline__ uint4 loadUpTo16(const std::uint8_t* p, std::uint64_t n_left) {
  if (n_left >= 16) {
    return loadStream(p);
  }
  std::uint32_t words[4] = {};
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) {
    if (i < n_left) {
      words[i / 4] |= static_cast<std::uint32_t>(p[i]) << (8 * (i % 4));
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

/// Stores the first n_left bytes of v, at most 16.
__device__ __forceinline__ void storeUpTo16(std::uint8_t* p, uint4 v, std::uint64_t n_left) {
  if (n_left >= 16) {
    storeStream(p, v);
    return;
  }
  const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) {
    if (i < n_left) {
      p[i] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
  }
}

/// The lowest bits of a mask: one for each of the at most kCount items in [first, n).
template <unsigned kCount>
__device__ __forceinline__ std::uint32_t marksBelow(std::uint64_t first, std::uint64_t n) {
  static_assert(kCount < 32);
  const std::uint64_t left = first < n ? n - first : 0;
  return left >= kCount ? (1u << kCount) - 1u : (1u << static_cast<unsigned>(left)) - 1u;
}

/// Bit 7 of every byte that is not zero.
__device__ __forceinline__ std::uint32_t nonzeroBytes(std::uint32_t x) {
  return (((x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | x) & 0x80808080u;
}

/// Bit i says whether byte i is not zero. The weighted sum of bytes that are 0 or 128 gathers them.
__device__ __forceinline__ std::uint32_t byteMarks8(std::uint32_t lo, std::uint32_t hi) {
  const std::uint32_t low = __dp4a(nonzeroBytes(lo), 0x08040201u, 0u);
  return __dp4a(nonzeroBytes(hi), 0x80402010u, low) >> 7;
}
__device__ __forceinline__ std::uint32_t byteMarks16(uint4 x) {
  return byteMarks8(x.x, x.y) | byteMarks8(x.z, x.w) << 8;
}

/// Selectors of __byte_perm by a mask of four bytes. A compressing one moves the marked bytes to
/// the front; an expanding one moves them back; other bytes become zero. A repeating one, of which
/// the first byte of the string stands before the four, gives each of the others the last marked
/// byte before it. Above the selector, which takes 16 bits: the bits that marked bytes have. In
/// shared memory, since lanes look up different masks.
struct ByteSelectors {
  std::uint32_t selector[16];

  __device__ __forceinline__ void setCompressing() {
    set([](unsigned mask) {
      std::uint32_t packed = 0x4444u;
      unsigned to = 0;
      for (unsigned k = 0; k < 4; ++k) {
        if ((mask >> k & 1u) != 0) {
          packed = (packed & ~(0xFu << (4 * to))) | k << (4 * to);
          ++to;
        }
      }
      return packed;
    });
  }
  __device__ __forceinline__ void setExpanding() {
    set([](unsigned mask) {
      std::uint32_t packed = 0;
      unsigned from = 0;
      for (unsigned k = 0; k < 4; ++k) {
        packed |= ((mask >> k & 1u) != 0 ? from++ : 4u) << (4 * k);
      }
      return packed;
    });
  }
  __device__ __forceinline__ void setRepeating() {
    set([](unsigned mask) {
      std::uint32_t packed = 0;
      unsigned from = 0;
      for (unsigned k = 0; k < 4; ++k) {
        from += mask >> k & 1u;
        packed |= from << (4 * k);
      }
      return packed;
    });
  }
  __device__ __forceinline__ std::uint32_t of(std::uint32_t mask) const {
    return selector[mask & 15u];
  }

 private:
  template <class Make>
  __device__ __forceinline__ void set(Make make) {
    if (threadIdx.x < 16) {
      const auto n_bits = static_cast<std::uint32_t>(8 * __popc(threadIdx.x));
      selector[threadIdx.x] = make(threadIdx.x) | n_bits << 16;
    }
  }
};

/// __byte_perm with a selector of which the upper half is something else.
__device__ __forceinline__ std::uint32_t pickBytes(std::uint32_t lo,
                                                   std::uint32_t hi,
                                                   std::uint32_t selector) {
  std::uint32_t out;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(lo), "r"(hi), "r"(selector));
  return out;
}

/// The marked bytes of eight, from the lowest byte on; zeros behind them. Takes eight marks.
__device__ __forceinline__ uint2 compress8(const ByteSelectors& compressing,
                                           std::uint32_t lo,
                                           std::uint32_t hi,
                                           std::uint32_t marks) {
  const std::uint32_t first = compressing.of(marks);
  const std::uint32_t second = pickBytes(hi, 0u, compressing.of(marks >> 4));
  const std::uint32_t n_bits = first >> 16;
  return make_uint2(pickBytes(lo, 0u, first) | __funnelshift_lc(0u, second, n_bits),
                    __funnelshift_lc(second, 0u, n_bits));
}

/// Bytes in shared memory that were zero before. Threads with neighbouring strings may write at
/// once: words are or-ed. Who has nothing to write does so to spare words, since a branch around
/// the instructions would cost more than they do.
class ByteString {
 public:
  static constexpr unsigned kSpareWords = kWarp + 2;

  __device__ __forceinline__ ByteString(std::uint32_t* words, std::uint32_t* spare)
      : begin_(addressOf(words)), spare_(addressOf(spare + laneId())) {}

  /// Puts at most eight bytes, zeros behind them, at byte `at`; nothing unless `is_there`.
  __device__ __forceinline__ void put(std::uint32_t at, uint2 bytes, bool is_there) const {
    const std::uint32_t to = is_there ? begin_ + (at & ~3u) : spare_;
    const std::uint32_t shift = 8 * at;  // the shifts take it modulo 32
    orWord<0>(to, __funnelshift_l(0u, bytes.x, shift));
    orWord<4>(to, __funnelshift_l(bytes.x, bytes.y, shift));
    orWord<8>(to, __funnelshift_l(bytes.y, 0u, shift));
  }

 private:
  static __device__ __forceinline__ std::uint32_t addressOf(std::uint32_t* words) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(words));
  }
  template <unsigned kOffset>
  static __device__ __forceinline__ void orWord(std::uint32_t to, std::uint32_t word) {
    asm volatile("red.shared.or.b32 [%0+%2], %1;" ::"r"(to), "r"(word), "n"(kOffset) : "memory");
  }

  std::uint32_t begin_;
  std::uint32_t spare_;
};

/// One number below 2^16 for each of a thread's pieces, two in a word: registers are scarce.
struct PieceNumbers {
  std::uint32_t pairs[kRowsPerWarp / 2];

  __device__ __forceinline__ std::uint32_t operator[](unsigned r) const {
    return r % 2 == 0 ? pairs[r / 2] & 0xFFFFu : pairs[r / 2] >> 16;
  }
  __device__ __forceinline__ void set(unsigned r, std::uint32_t value) {  // in order of r
    pairs[r / 2] = r % 2 == 0 ? value : pairs[r / 2] | value << 16;
  }
};

/// First step of ranking a tile by marks of 16 bits or fewer: `before` becomes the marks of the
/// lower lanes in each row, and the rows' sums go to shared memory. A barrier must follow.
__device__ __forceinline__ void rankInRows(const PieceNumbers& marks,
                                           PieceNumbers& before,
                                           std::uint32_t* row_sums) {
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; r += 2) {
    const std::uint32_t own = static_cast<std::uint32_t>(__popc(marks[r])) |
                              static_cast<std::uint32_t>(__popc(marks[r + 1])) << 16;
    const std::uint32_t sum = warpInclusiveSum(own);  // a row sums to 512 at most
    before.pairs[r / 2] = sum - own;
    if (laneId() == kWarp - 1) {
      row_sums[warpId() * kRowsPerWarp + r] = sum & 0xFFFFu;
      row_sums[warpId() * kRowsPerWarp + r + 1] = sum >> 16;
    }
  }
}

/// Second step, by whole warps: adds the sums of the rows before. Returns the sum of the tile,
/// which has at most 32 rows.
template <unsigned kRows>
__device__ __forceinline__ std::uint32_t addRowsBefore(PieceNumbers& before,
                                                       const std::uint32_t* row_sums) {
  static_assert(kRows <= kWarp);
  const std::uint32_t own = laneId() < kRows ? row_sums[laneId()] : 0u;
  const std::uint32_t sum = warpInclusiveSum(own);
#pragma unroll
  for (unsigned r = 0; r < kRowsPerWarp; ++r) {
    const std::uint32_t rows_before =
        __shfl_sync(kAllLanes, sum - own, warpId() * kRowsPerWarp + r);
    before.pairs[r / 2] += r % 2 == 0 ? rows_before : rows_before << 16;
  }
  return __shfl_sync(kAllLanes, sum, kWarp - 1);
}

}  // namespace fz::cuda
