#pragma once

// A row of values as a warp holds it: 16 bytes per lane, in registers. Where rows are aligned a
// lane has 16 consecutive bytes and small integers stay packed, four or two to a word; elsewhere a
// word has one value, and the words of a lane are 32 values apart.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/device.cuh"
#include "shared/delta.h"

namespace fz::cuda {

/// U is an unsigned integer (sums modulo 2^W) or a float. kVector: 16-byte loads and stores.
template <class U, bool kVector>
struct Packed {
  using Word = std::conditional_t<std::is_floating_point_v<U>,
                                  U,
                                  std::conditional_t<sizeof(U) == 8, std::uint64_t, std::uint32_t>>;
  static constexpr unsigned kPack = kVector && sizeof(U) < 4 ? 4 / sizeof(U) : 1;
  static constexpr unsigned kWords = 16 / sizeof(Word);
  static constexpr unsigned kLaneValues = kWords * kPack;
  static constexpr unsigned kRowValues = kWarp * kLaneValues;
  static constexpr unsigned kValueBits = 8 * sizeof(U);

  static __device__ __forceinline__ Word add(Word a, Word b) {
    if constexpr (kPack == 4) {
      return __vadd4(a, b);
    } else if constexpr (kPack == 2) {
      return __vadd2(a, b);
    } else {
      return delta::plus(a, b);
    }
  }
  static __device__ __forceinline__ Word sub(Word a, Word b) {
    if constexpr (kPack == 4) {
      return __vsub4(a, b);
    } else if constexpr (kPack == 2) {
      return __vsub2(a, b);
    } else {
      return delta::minus(a, b);
    }
  }

  /// Running sums of the values inside one word.
  static __device__ __forceinline__ Word sumsInWord(Word w) {
    if constexpr (kPack == 4) {
      w = add(w, w << 8);
      return add(w, w << 16);
    } else if constexpr (kPack == 2) {
      return add(w, w << 16);
    } else {
      return w;
    }
  }
  /// The last value of a word; bits above kValueBits mean nothing.
  static __device__ __forceinline__ Word lastOf(Word w) {
    if constexpr (kPack > 1) {
      return w >> (32 - kValueBits);
    } else {
      return w;
    }
  }
  /// A word whose last value this is.
  static __device__ __forceinline__ Word asLast(Word value) {
    if constexpr (kPack > 1) {
      return value << (32 - kValueBits);
    } else {
      return value;
    }
  }
  /// A word with `value` everywhere; bits above kValueBits do not matter.
  static __device__ __forceinline__ Word splat(Word value) {
    if constexpr (kPack == 4) {
      return __byte_perm(value, 0, 0x0000);
    } else if constexpr (kPack == 2) {
      return __byte_perm(value, 0, 0x1010);
    } else {
      return value;
    }
  }
  /// The left neighbours of the values of w, which follows on `before`.
  static __device__ __forceinline__ Word leftOf(Word w, Word before) {
    if constexpr (kPack > 1) {
      return __funnelshift_l(before, w, kValueBits);
    } else {
      return before;
    }
  }

  /// Place of a lane's word in its row, in words; in values it is kPack times that.
  static __device__ __forceinline__ unsigned wordPlace(unsigned w) {
    return kVector ? laneId() * kWords + w : w * kWarp + laneId();
  }

  /// Reads values [begin, begin + kRowValues) of `values`, those from `end` on as 0. With kVector
  /// values + begin is 16-byte aligned, and `end` too where kWhole says so. kShared: the values
  /// were written by another block of this kernel.
  template <bool kWhole, bool kShared = false>
  static __device__ __forceinline__ void load(const U* values,
                                              std::uint64_t begin,
                                              std::uint64_t end,
                                              Word (&row)[kWords]) {
    if constexpr (kVector) {
      const std::uint64_t at = begin + laneId() * kLaneValues;
      Lane lane;
      lane.raw = {};
      if (kWhole ? at < end : at + kLaneValues <= end) {
        lane.raw = __ldg(reinterpret_cast<const uint4*>(values + at));
      } else if (!kWhole && at < end) {
#pragma unroll
        for (unsigned i = 0; i < kLaneValues; ++i) {
          lane.values[i] = at + i < end ? values[at + i] : U{0};
        }
      }
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        row[w] = lane.words[w];
      }
    } else {
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        const std::uint64_t at = begin + wordPlace(w);
        row[w] = at < end ? static_cast<Word>(__ldg(values + at)) : Word{0};
      }
    }
  }

  /// The counterpart of load. kLast: the values are not read again soon.
  template <bool kWhole, bool kLast = false>
  static __device__ __forceinline__ void store(U* values,
                                               std::uint64_t begin,
                                               std::uint64_t end,
                                               const Word (&row)[kWords]) {
    if constexpr (kVector) {
      const std::uint64_t at = begin + laneId() * kLaneValues;
      Lane lane;
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        lane.words[w] = row[w];
      }
      if (kWhole ? at < end : at + kLaneValues <= end) {
        if constexpr (kLast) {
          storeStream(values + at, lane.raw);
        } else {
          *reinterpret_cast<uint4*>(values + at) = lane.raw;
        }
      } else if (!kWhole && at < end) {
#pragma unroll
        for (unsigned i = 0; i < kLaneValues; ++i) {
          if (at + i < end) {
            values[at + i] = lane.values[i];
          }
        }
      }
    } else {
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        const std::uint64_t at = begin + wordPlace(w);
        if (at < end) {
          values[at] = static_cast<U>(row[w]);
        }
      }
    }
  }

  /// Rows one after the other from `begin` on. A lane's 16 bytes may end beyond `end` only where
  /// the values do, so all rows but those at the very end go without the checks.
  template <unsigned kRows>
  static __device__ __forceinline__ void loadRows(const U* values,
                                                  std::uint64_t begin,
                                                  std::uint64_t end,
                                                  Word (&rows)[kRows][kWords]) {
    if (begin + kRows * kRowValues <= end) {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        load<true>(values, begin + r * kRowValues, end, rows[r]);
      }
    } else {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        load<false>(values, begin + r * kRowValues, end, rows[r]);
      }
    }
  }
  template <unsigned kRows>
  static __device__ __forceinline__ void storeRows(U* values,
                                                   std::uint64_t begin,
                                                   std::uint64_t end,
                                                   const Word (&rows)[kRows][kWords]) {
    if (begin + kRows * kRowValues <= end) {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        store<true>(values, begin + r * kRowValues, end, rows[r]);
      }
    } else {
#pragma unroll
      for (unsigned r = 0; r < kRows; ++r) {
        store<false>(values, begin + r * kRowValues, end, rows[r]);
      }
    }
  }

  /// Turns the values of a row into running sums, with `left` standing before the row.
  static __device__ __forceinline__ void sumRow(Word (&row)[kWords], Word left) {
    if constexpr (kVector) {
      const Word total = sumLane(row);
      const Word before = splat(warpInclusiveSum(total) - total + left);
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        row[w] = add(row[w], before);
      }
    } else {
#pragma unroll
      for (unsigned w = 0; w < kWords; ++w) {
        row[w] = warpInclusiveSum(row[w]) + left;
        left = __shfl_sync(kAllLanes, row[w], kWarp - 1);
      }
    }
  }

  /// The sum of a lane's values; bits above kValueBits mean nothing.
  static __device__ __forceinline__ Word sumOf(const Word (&words)[kWords]) {
    Word sum = words[0];
#pragma unroll
    for (unsigned w = 1; w < kWords; ++w) {
      sum = add(sum, words[w]);
    }
    if constexpr (kPack == 4) {
      sum = add(sum, sum >> 16);  // packed: no carry into the value that counts
      return add(sum, sum >> 8);
    } else if constexpr (kPack == 2) {
      return sum + (sum >> 16);
    } else {
      return sum;
    }
  }

  /// Running sums of the consecutive values of a lane; returns their sum.
  template <unsigned kCount>
  static __device__ __forceinline__ Word sumLane(Word (&words)[kCount]) {
    words[0] = sumsInWord(words[0]);
#pragma unroll
    for (unsigned w = 1; w < kCount; ++w) {
      words[w] = add(sumsInWord(words[w]), splat(lastOf(words[w - 1])));
    }
    return lastOf(words[kCount - 1]);
  }

 private:
  union Lane {
    uint4 raw;
    Word words[kWords];
    U values[kLaneValues];
  };
};

}  // namespace fz::cuda
