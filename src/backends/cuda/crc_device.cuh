#pragma once

// CRC-32 by warps and blocks: tables, powers, and the steps that kernels of frames share.

#include <cstdint>

#include "backends/cuda/crc32.cuh"
#include "backends/cuda/device.cuh"
#include "backends/cuda/run_block.h"

namespace fz::cuda {

inline constexpr unsigned kCrcThreads = 256;
inline constexpr unsigned kCrcRoundBytes = kCrcThreads * 16;  // what a block sums up per step

namespace {

__device__ const CrcTables kRoundTables = makeCrcTables(kCrcRoundBytes);
__device__ const CrcTables kWordTables = makeCrcTables(4);
__device__ const CrcPowers kPowers = makeCrcPowers();

__device__ __forceinline__ std::uint32_t lookUp(const std::uint32_t (*table)[256],
                                                std::uint32_t w) {
  return table[0][w & 0xff] ^ table[1][(w >> 8) & 0xff] ^ table[2][(w >> 16) & 0xff] ^
         table[3][w >> 24];
}

/// One byte into a register.
__device__ __forceinline__ std::uint32_t crcByte(std::uint32_t crc, std::uint32_t byte) {
  crc ^= byte;
  for (int i = 0; i < 8; ++i) {
    crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kCrcPolynomial : 0u);
  }
  return crc;
}

/// Checksum of `n_bytes` in shared memory, for every thread of a block of kCrcThreads.
__device__ std::uint32_t blockCrc(const std::uint8_t* bytes,
                                  std::uint32_t n_bytes,
                                  std::uint32_t* parts) {
  // Thread t sums up its share, aligned at the end.
  const std::int64_t share = (n_bytes + kCrcThreads - 1) / kCrcThreads;
  const std::int64_t end =
      static_cast<std::int64_t>(n_bytes) - share * (kCrcThreads - 1 - threadIdx.x);
  std::uint32_t crc = 0;
  for (std::int64_t i = end - share; i < end; ++i) {
    if (i >= 0) {
      crc ^= (i < 4 ? 0xffu : 0u);  // the start value, as four bytes of the message
      crc = crcByte(crc, bytes[i]);
    }
  }
  parts[threadIdx.x] = crc;
  __syncthreads();
  for (std::uint64_t n = kCrcThreads / 2, distance = static_cast<std::uint64_t>(share); n > 0;
       n /= 2, distance *= 2) {
    std::uint32_t sum = 0;
    if (threadIdx.x < n) {
      std::uint32_t power = kCrcOne;
      for (unsigned k = 0; (distance >> k) != 0; ++k) {
        if (((distance >> k) & 1) != 0) {
          power = crcMultiply(power, kPowers.power[k]);
        }
      }
      sum = crcMultiply(parts[2 * threadIdx.x], power) ^ parts[2 * threadIdx.x + 1];
    }
    __syncthreads();
    if (threadIdx.x < n) {
      parts[threadIdx.x] = sum;
    }
    __syncthreads();
  }
  return ~parts[0];
}

/// x^(8 * n_bytes), by a full warp, for every lane.
__device__ std::uint32_t warpPower(std::uint64_t n_bytes) {
  const unsigned lane = laneId();
  std::uint32_t factor = ((n_bytes >> lane) & 1) != 0 ? kPowers.power[lane] : kCrcOne;
  if (lane + kWarp < 48 && ((n_bytes >> (lane + kWarp)) & 1) != 0) {
    factor = crcMultiply(factor, kPowers.power[lane + kWarp]);
  }
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    factor = crcMultiply(factor, __shfl_xor_sync(kAllLanes, factor, step));
  }
  return factor;
}

}  // namespace
}  // namespace fz::cuda
