#pragma once

// From a lane's values to the planes of its blocks. Device code only; must compile with NVRTC.

#include "backends/cuda/bit_transpose.cuh"
#include "coders/adaptive_bitpack/cuda/op/blocks.cuh"

namespace fz::adaptive_bitpack {

/// A group in the registers of its thread. 16-bit magnitudes i and i + 16 share row i, which
/// halves both the registers and the work.
template <class T>
struct Group {
  std::uint32_t row[kGroupValues];  ///< magnitudes, later planes
  std::uint32_t signs = 0;
  std::uint32_t rest = 0;  ///< OR of the magnitudes but value 0's

  __device__ __forceinline__ std::uint32_t first() const {
    return sizeof(T) == 4 ? row[0] : row[0] & 0xFFFFu;
  }
  __device__ __forceinline__ void dropFirst() {
    row[0] = sizeof(T) == 4 ? 0 : row[0] & 0xFFFF0000u;
  }
  template <unsigned kPlanes>
  __device__ __forceinline__ void toPlanes() {
    if constexpr (sizeof(T) == 4) {
      cuda::toPlanes<kPlanes>(row);
    } else {
      cuda::pairsToPlanes<kPlanes>(row);
    }
  }
};

__device__ __forceinline__ void makeGroup(const std::int32_t (&v)[kGroupValues],
                                          Group<std::int32_t>& group) {
#pragma unroll
  for (unsigned i = 0; i < kGroupValues; ++i) {
    group.row[i] = bits::magnitude(v[i]);
    group.rest |= i == 0 ? 0 : group.row[i];
    // The sign of the last value comes first and is pushed up by the others.
    group.signs =
        __funnelshift_l(static_cast<std::uint32_t>(v[kGroupValues - 1 - i]), group.signs, 1);
  }
}

/// Magnitudes of both halves, and their signs in bits 0 and 16.
__device__ __forceinline__ std::uint32_t halfMagnitudes(std::uint32_t pair, std::uint32_t* signs) {
  *signs = pair >> 15 & 0x00010001u;
  return (pair ^ *signs * 0xFFFFu) + *signs;  // no carry: a negative half does not become 2^16
}

__device__ __forceinline__ void makeGroup(const std::int16_t (&v)[kGroupValues],
                                          Group<std::int16_t>& group) {
#pragma unroll
  for (unsigned i = 0; i < kGroupValues / 2; ++i) {
    const std::uint32_t pair = __byte_perm(static_cast<std::uint32_t>(v[i]),
                                           static_cast<std::uint32_t>(v[i + 16]), 0x5410);
    std::uint32_t signs;
    group.row[i] = halfMagnitudes(pair, &signs);
    group.signs |= signs << i;
    group.rest |= i == 0 ? group.row[i] & 0xFFFF0000u : group.row[i];
  }
  group.rest = (group.rest | group.rest >> 16) & 0xFFFFu;
}

/// Form of the thread's block.
template <bool kOutlier, unsigned kGroups, class T>
__device__ __forceinline__ BlockForm chooseGroupForm(const Group<T>& group,
                                                     BlockLayout layout,
                                                     Lanes<kGroups> lanes) {
  const bool has_first = kOutlier && lanes.group() == 0;
  std::uint32_t any = has_first ? group.rest : group.rest | group.first();
  if constexpr (kGroups != 1) {
    for (unsigned step = 1; step < lanes.count(); step *= 2) {
      any |= __shfl_xor_sync(cuda::kAllLanes, any, step);
    }
  }
  if constexpr (!kOutlier) {
    return {bits::bitWidth(any), 0};
  }
  std::uint32_t first = group.first();
  if constexpr (kGroups != 1) {
    first = __shfl_sync(cuda::kAllLanes, first, cuda::laneId() & ~(lanes.count() - 1));
  }
  return chooseForm(first, bits::bitWidth(any), layout);
}

/// The bytes of `word` from byte `skew` on to an aligned word of shared memory, the first of which
/// are another's.
__device__ __forceinline__ void putFront(std::uint32_t* to, unsigned skew, std::uint32_t word) {
  if (skew == 0) {
    *to = word;
    return;
  }
  auto* bytes = reinterpret_cast<std::uint8_t*>(to);
  if ((skew & 1u) != 0) {
    bytes[skew] = static_cast<std::uint8_t>(word >> (8 * skew));
  }
  if (skew <= 2) {
    *reinterpret_cast<std::uint16_t*>(bytes + 2) = static_cast<std::uint16_t>(word >> 16);
  }
}
/// The first `skew` bytes of `word`; the others are another's.
__device__ __forceinline__ void putBack(std::uint32_t* to, unsigned skew, std::uint32_t word) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(to);
  if (skew >= 2) {
    *reinterpret_cast<std::uint16_t*>(bytes) = static_cast<std::uint16_t>(word);
  }
  if ((skew & 1u) != 0) {
    bytes[skew - 1] = static_cast<std::uint8_t>(word >> (8 * (skew - 1)));
  }
}

/// Signs and planes of a group to shared memory; `at`, a whole word, is where the block's signs
/// begin. Rows of the block are 4 bytes per group.
template <unsigned kPlanes, unsigned kGroups, class T>
__device__ __forceinline__ void stageRows(const Group<T>& group,
                                          std::uint32_t rate,
                                          Lanes<kGroups> lanes,
                                          std::uint8_t* at) {
  auto* words = reinterpret_cast<std::uint32_t*>(at) + lanes.group();
  words[0] = group.signs;
#pragma unroll
  for (unsigned p = 0; p < kPlanes; ++p) {
    if (p < rate) {
      words[(1 + p) * lanes.count()] = group.row[p];
    }
  }
}

/// The same where a block begins at any byte: a word of memory holds the end of one word of the
/// block and the beginning of the next. The words at its ends, which neighbours share, are written
/// in parts. All lanes of the warp come here together, with or without something to store.
template <unsigned kPlanes, unsigned kGroups, class T>
__device__ __forceinline__ void stageSkewedRows(const Group<T>& group,
                                                std::uint32_t rate,
                                                std::uint32_t most_planes,
                                                bool is_stored,
                                                Lanes<kGroups> lanes,
                                                std::uint8_t* at) {
  const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) & 3u);
  auto* words = reinterpret_cast<std::uint32_t*>(at - skew) + lanes.group();
  const bool is_first = lanes.group() == 0;
  const bool is_last = lanes.group() == lanes.count() - 1;
  // The word before one's own is in the lane before or, for the first lane, in the last lane one
  // row up.
  const unsigned source = is_first ? cuda::laneId() + lanes.count() - 1 : cuda::laneId() - 1;
  std::uint32_t row_above = 0;
  const auto wordBefore = [&](std::uint32_t row) {
    if constexpr (kGroups == 1) {
      return row_above;
    } else {
      return __shfl_sync(cuda::kAllLanes, is_last ? row_above : row, static_cast<int>(source));
    }
  };
  const std::uint32_t first = __funnelshift_l(wordBefore(group.signs), group.signs, 8 * skew);
  if (is_stored) {
    if (is_first) {
      putFront(words, skew, first);
    } else {
      words[0] = first;
    }
  }
  std::uint32_t end = group.signs;  // the last row that is stored
  row_above = group.signs;
#pragma unroll
  for (unsigned p = 0; p < kPlanes; ++p) {
    if (kGroups == 1 ? p < rate : p < most_planes) {  // the lanes of a block stay together
      const std::uint32_t row = group.row[p];
      const std::uint32_t word = __funnelshift_l(wordBefore(row), row, 8 * skew);
      if (kGroups == 1 || p < rate) {
        words[(1 + p) * lanes.count()] = word;
        end = row;
      }
      row_above = row;
    }
  }
  if (is_stored && is_last) {
    putBack(words + rate * lanes.count() + 1, skew, __funnelshift_l(end, 0u, 8 * skew));
  }
}

/// The payload of the warp's blocks in shared memory; the thread's block begins at `block_at`.
template <class T, bool kOutlier, unsigned kGroups>
__device__ __forceinline__ void stageBlock(Group<T>& group,
                                           BlockForm form,
                                           Lanes<kGroups> lanes,
                                           std::uint8_t* block_at) {
  const std::uint32_t most_planes = __reduce_max_sync(cuda::kAllLanes, form.rate);
  const bool stored = form.rate != 0 || (kOutlier && form.outlier_bytes != 0);
  if constexpr (kOutlier) {
    if (lanes.group() == 0 && form.outlier_bytes != 0) {
      for (unsigned k = 0; k < form.outlier_bytes; ++k) {
        block_at[k] = static_cast<std::uint8_t>(group.first() >> (8 * k));
      }
      group.dropFirst();
    }
  }
  if (!__any_sync(cuda::kAllLanes, stored)) {
    return;
  }
  withPlanes<T>(most_planes, [&]<unsigned kPlanes>() {
    group.template toPlanes<kPlanes>();
    if constexpr (kOutlier) {
      stageSkewedRows<kPlanes>(group, form.rate, most_planes, stored, lanes,
                               block_at + form.outlier_bytes);
    } else if (stored) {
      stageRows<kPlanes>(group, form.rate, lanes, block_at);
    }
  });
}

}  // namespace fz::adaptive_bitpack
