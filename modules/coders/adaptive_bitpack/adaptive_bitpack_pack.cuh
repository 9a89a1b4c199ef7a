#pragma once

// From a lane's values to the planes of its blocks. Device code only; must compile with NVRTC.

#include "backends/cuda/bit_transpose.cuh"
#include "coders/adaptive_bitpack/adaptive_bitpack_groups.cuh"

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

/// Stores a word at any byte address of shared memory; its neighbours' bytes stay as they are.
__device__ __forceinline__ void storeAnywhere(std::uint8_t* at, std::uint32_t word) {
  const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) & 3u);
  if (skew == 0) {
    *reinterpret_cast<std::uint32_t*>(at) = word;
  } else if (skew == 2) {
    reinterpret_cast<std::uint16_t*>(at)[0] = static_cast<std::uint16_t>(word);
    reinterpret_cast<std::uint16_t*>(at)[1] = static_cast<std::uint16_t>(word >> 16);
  } else {
    at[0] = static_cast<std::uint8_t>(word);
    *reinterpret_cast<std::uint16_t*>(at + 1) = static_cast<std::uint16_t>(word >> 8);
    at[3] = static_cast<std::uint8_t>(word >> 24);
  }
}

/// Writes signs and planes of a group to shared memory; `at` is where the block's signs begin.
/// Rows of the block are 4 bytes per group, so a block of one group is one run of words.
template <unsigned kPlanes, bool kOutlier, unsigned kGroups, class T>
__device__ __forceinline__ void stageRows(const Group<T>& group,
                                          std::uint32_t rate,
                                          Lanes<kGroups> lanes,
                                          std::uint8_t* at) {
  if constexpr (!kOutlier) {
    auto* words = reinterpret_cast<std::uint32_t*>(at) + lanes.group();
    words[0] = group.signs;
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      if (p < rate) {
        words[(1 + p) * lanes.count()] = group.row[p];
      }
    }
  } else if constexpr (kGroups == 1) {
    // Whole words inside the block; the two words it shares with its neighbours byte by byte.
    const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at) & 3u);
    auto* words = reinterpret_cast<std::uint32_t*>(at - skew);
    std::uint32_t last = group.signs;
    if (skew == 0) {
      words[0] = last;
    } else {
      for (unsigned k = 0; k < 4 - skew; ++k) {
        at[k] = static_cast<std::uint8_t>(last >> (8 * k));
      }
    }
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      if (p < rate) {
        words[1 + p] = __funnelshift_l(last, group.row[p], 8 * skew);
        last = group.row[p];
      }
    }
    for (unsigned k = 4 - skew; k < 4; ++k) {
      at[4 * rate + k] = static_cast<std::uint8_t>(last >> (8 * k));
    }
  } else {
    storeAnywhere(at + 4 * lanes.group(), group.signs);
#pragma unroll
    for (unsigned p = 0; p < kPlanes; ++p) {
      if (p < rate) {
        storeAnywhere(at + 4 * ((1 + p) * lanes.count() + lanes.group()), group.row[p]);
      }
    }
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
    if (stored) {
      stageRows<kPlanes, kOutlier>(group, form.rate, lanes, block_at + form.outlier_bytes);
    }
  });
}

}  // namespace fz::adaptive_bitpack
