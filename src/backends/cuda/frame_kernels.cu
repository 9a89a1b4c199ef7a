#include "backends/cuda/crc32.cuh"
#include "backends/cuda/device.cuh"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/launch.h"

namespace fz::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kRoundBytes = kThreads * 16;  // what a block sums up per step
constexpr unsigned kMaxRounds = 32;

__device__ const CrcTables kRoundTables = makeCrcTables(kRoundBytes);
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

/// Checksum of `n_bytes` in shared memory, for every thread of a block of kThreads.
__device__ std::uint32_t blockCrc(const std::uint8_t* bytes,
                                  std::uint32_t n_bytes,
                                  std::uint32_t* parts) {
  // Thread t sums up its share, aligned at the end.
  const std::int64_t share = (n_bytes + kThreads - 1) / kThreads;
  const std::int64_t end =
      static_cast<std::int64_t>(n_bytes) - share * (kThreads - 1 - threadIdx.x);
  std::uint32_t crc = 0;
  for (std::int64_t i = end - share; i < end; ++i) {
    if (i >= 0) {
      crc ^= (i < 4 ? 0xffu : 0u);  // the start value, as four bytes of the message
      crc = crcByte(crc, bytes[i]);
    }
  }
  parts[threadIdx.x] = crc;
  __syncthreads();
  for (std::uint64_t n = kThreads / 2, distance = static_cast<std::uint64_t>(share); n > 0;
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

__global__ void layoutKernel(SegmentList segments, std::uint64_t header_bytes, FrameState* state) {
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < segments.n_segments; ++i) {
    const std::uint64_t n = *segments.segment[i].n_bytes;
    state->segment_bytes[i] = n;
    state->segment_offset[i] = at;
    at += n;
  }
  state->payload_bytes = at;
  state->total_bytes = header_bytes + at;
  state->crc_remainder = 0;
}

/// To any byte offset: whole words of the target, each made of two words of the source.
__global__ void copySegmentKernel(const std::uint8_t* from,
                                  std::uint8_t* payload,
                                  const FrameState* state,
                                  std::uint32_t index) {
  const std::uint64_t n = state->segment_bytes[index];
  std::uint8_t* to = payload + state->segment_offset[index];
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t n_threads = std::uint64_t{gridDim.x} * blockDim.x;
  const unsigned head = static_cast<unsigned>((4 - (reinterpret_cast<std::uintptr_t>(to) & 3)) & 3);
  if (n < 16) {
    for (std::uint64_t i = thread; i < n; i += n_threads) {
      to[i] = from[i];
    }
    return;
  }
  const std::uint64_t n_words = (n - head) / 4;
  const auto* source = reinterpret_cast<const std::uint32_t*>(from);
  auto* target = reinterpret_cast<std::uint32_t*>(to + head);
  for (std::uint64_t w = thread; w < n_words; w += n_threads) {
    std::uint32_t value = source[w];
    if (head != 0) {
      // The second word holds at least one byte of this one, so it is inside the source.
      value = __funnelshift_r(value, source[w + 1], 8 * head);
    }
    target[w] = value;
  }
  const std::uint64_t tail = head + 4 * n_words;
  if (thread < head) {
    to[thread] = from[thread];
  } else if (thread >= 4 && thread - 4 < n - tail) {
    to[tail + thread - 4] = from[tail + thread - 4];
  }
}

__global__ void __launch_bounds__(kThreads)
    payloadCrcKernel(const std::uint8_t* payload, unsigned n_rounds, FrameState* state) {
  __shared__ std::uint32_t tables[4][256];
  __shared__ std::uint32_t parts[kThreads];
  const std::uint64_t n_main = state->payload_bytes / 16 * 16;  // the rest is left to one thread
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * n_rounds * kRoundBytes;
  if (begin >= n_main) {
    return;
  }
  const std::uint64_t block_bytes = std::uint64_t{n_rounds} * kRoundBytes;
  const std::uint64_t end = begin + block_bytes < n_main ? begin + block_bytes : n_main;
  for (unsigned i = threadIdx.x; i < 1024; i += kThreads) {
    (&tables[0][0])[i] = (&kRoundTables.table[0][0])[i];
  }
  __syncthreads();
  // Leading zeros do not change a remainder, so the part is aligned at its end: thread t of a round
  // always stands the same number of bytes before it.
  const std::uint64_t rounds = (end - begin + kRoundBytes - 1) / kRoundBytes;
  const std::int64_t first = static_cast<std::int64_t>(end - rounds * kRoundBytes) +
                             16 * static_cast<std::int64_t>(threadIdx.x);
  std::uint32_t r0 = 0;
  std::uint32_t r1 = 0;
  std::uint32_t r2 = 0;
  std::uint32_t r3 = 0;
#pragma unroll 4
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::int64_t at = first + static_cast<std::int64_t>(round * kRoundBytes);
    uint4 v = make_uint4(0, 0, 0, 0);
    if (at >= static_cast<std::int64_t>(begin)) {
      v = __ldg(reinterpret_cast<const uint4*>(payload + at));
    }
    if (round != 0) {
      r0 = lookUp(tables, r0);
      r1 = lookUp(tables, r1);
      r2 = lookUp(tables, r2);
      r3 = lookUp(tables, r3);
    }
    r0 ^= v.x;
    r1 ^= v.y;
    r2 ^= v.z;
    r3 ^= v.w;
  }
  // The four words of a thread, then the threads: every step doubles the distance. A register still
  // has its own last word in it, so moving on by four bytes ends the word.
  std::uint32_t r = lookUp(kWordTables.table, r0) ^ r1;
  r = lookUp(kWordTables.table, r) ^ r2;
  r = lookUp(kWordTables.table, r) ^ r3;
  r = lookUp(kWordTables.table, r);
  parts[threadIdx.x] = r;
  __syncthreads();
  unsigned level = 4;  // 16 bytes = 2^4
  for (unsigned n = kThreads / 2; n > 0; n /= 2, ++level) {
    std::uint32_t sum = 0;
    if (threadIdx.x < n) {
      sum = crcMultiply(parts[2 * threadIdx.x], kPowers.power[level]) ^ parts[2 * threadIdx.x + 1];
    }
    __syncthreads();
    if (threadIdx.x < n) {
      parts[threadIdx.x] = sum;
    }
    __syncthreads();
  }
  if (threadIdx.x < kWarp) {
    const std::uint32_t power = warpPower(n_main - end);
    if (threadIdx.x == 0) {
      atomicXor(&state->crc_remainder, crcMultiply(parts[0], power));
    }
  }
}

/// The checksum as stored: the remainder of the parts, the bytes behind the last whole 16, and what
/// the start value 0xffffffff has become. By a full warp.
__device__ std::uint32_t finishPayloadCrc(const std::uint8_t* payload, const FrameState* state) {
  const std::uint64_t n = state->payload_bytes;
  const std::uint64_t n_main = n / 16 * 16;
  const std::uint32_t start = crcMultiply(0xffffffffu, warpPower(n_main));
  std::uint32_t crc = state->crc_remainder ^ start;
  for (std::uint64_t i = n_main; i < n; ++i) {
    crc = crcByte(crc, payload[i]);
  }
  return ~crc;
}

__global__ void __launch_bounds__(kThreads) headerKernel(const std::uint8_t* header_template,
                                                         std::uint32_t header_bytes,
                                                         const HeaderField* fields,
                                                         std::uint32_t n_fields,
                                                         std::uint8_t* frame,
                                                         FrameState* state) {
  extern __shared__ std::uint8_t header[];
  __shared__ std::uint32_t parts[kThreads];
  for (unsigned i = threadIdx.x; i < header_bytes; i += kThreads) {
    header[i] = header_template[i];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n_fields; i += kThreads) {
    const HeaderField field = fields[i];
    const std::uint64_t value = *field.source;
    for (unsigned b = 0; b < field.n_bytes; ++b) {
      header[field.offset + b] = static_cast<std::uint8_t>(value >> (8 * b));
    }
  }
  if (threadIdx.x < kWarp) {
    const std::uint32_t crc = finishPayloadCrc(frame + header_bytes, state);
    if (threadIdx.x == 0) {
      state->payload_crc = crc;
      for (unsigned b = 0; b < 4; ++b) {
        header[HeaderOffsets::kPayloadCrc + b] = static_cast<std::uint8_t>(crc >> (8 * b));
        header[HeaderOffsets::kHeaderCrc + b] = 0;
      }
    }
  }
  __syncthreads();
  const std::uint32_t header_crc = blockCrc(header, header_bytes, parts);
  if (threadIdx.x < 4) {
    header[HeaderOffsets::kHeaderCrc + threadIdx.x] =
        static_cast<std::uint8_t>(header_crc >> (8 * threadIdx.x));
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < header_bytes; i += kThreads) {
    frame[i] = header[i];
  }
}

__device__ std::uint64_t readField(const std::uint8_t* header, unsigned offset, unsigned n_bytes) {
  std::uint64_t value = 0;
  for (unsigned b = 0; b < n_bytes; ++b) {
    value |= std::uint64_t{header[offset + b]} << (8 * b);
  }
  return value;
}

__global__ void __launch_bounds__(kThreads) openKernel(const std::uint8_t* frame,
                                                       std::uint64_t capacity_bytes,
                                                       const std::uint8_t* header_template,
                                                       std::uint32_t header_bytes,
                                                       const FieldTarget* fields,
                                                       std::uint32_t n_fields,
                                                       SegmentLimits limits,
                                                       FrameState* state) {
  extern __shared__ std::uint8_t header[];
  __shared__ std::uint32_t parts[kThreads];
  bool bad = capacity_bytes < header_bytes;
  for (unsigned i = threadIdx.x; i < header_bytes; i += kThreads) {
    header[i] = bad ? 0 : frame[i];
  }
  __syncthreads();
  const std::uint32_t payload_crc =
      static_cast<std::uint32_t>(readField(header, HeaderOffsets::kPayloadCrc, 4));
  const std::uint32_t stored_crc =
      static_cast<std::uint32_t>(readField(header, HeaderOffsets::kHeaderCrc, 4));
  __syncthreads();
  if (threadIdx.x < 4) {
    header[HeaderOffsets::kHeaderCrc + threadIdx.x] = 0;
  }
  __syncthreads();
  bad = bad || blockCrc(header, header_bytes, parts) != stored_crc;
  for (unsigned i = threadIdx.x; i < n_fields; i += kThreads) {
    const FieldTarget field = fields[i];
    if (field.target != nullptr) {
      *field.target = readField(header, field.offset, field.n_bytes);
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n_fields; i += kThreads) {
    for (unsigned b = 0; b < fields[i].n_bytes; ++b) {
      header[fields[i].offset + b] = 0;
    }
  }
  if (threadIdx.x < 4) {
    header[HeaderOffsets::kPayloadCrc + threadIdx.x] = 0;
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < header_bytes; i += kThreads) {
    bad = bad || header[i] != header_template[i];
  }
  bad = __syncthreads_or(bad ? 1 : 0) != 0;
  if (threadIdx.x == 0) {
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < limits.n_segments; ++i) {
      const std::uint64_t n = state->segment_bytes[i];
      bad = bad || n > limits.max_bytes[i] || state->segment_offset[i] != at;
      at += bad ? 0 : n;
    }
    bad = bad || at != state->payload_bytes || at > capacity_bytes - header_bytes;
    state->expected_crc = payload_crc;
    state->crc_remainder = 0;
    if (bad) {
      state->mismatch = 2;
      state->payload_bytes = 0;
      for (std::uint32_t i = 0; i < limits.n_segments; ++i) {
        state->segment_bytes[i] = 0;
        state->segment_offset[i] = 0;
      }
    }
  }
}

/// From any byte offset to an aligned place: whole words of the target; reads whole words too, the
/// last of which may reach a few bytes past the segment but never past the word that holds its end.
__global__ void extractKernel(const std::uint8_t* payload,
                              std::uint8_t* to,
                              const FrameState* state,
                              std::uint32_t index) {
  const std::uint64_t n = state->segment_bytes[index];
  const std::uint8_t* from = payload + state->segment_offset[index];
  const unsigned shift = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) & 3);
  const auto* source = reinterpret_cast<const std::uint32_t*>(from - shift);
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t n_threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t n_words = n / 4;
  for (std::uint64_t w = thread; w < n_words; w += n_threads) {
    std::uint32_t value = source[w];
    if (shift != 0) {
      value = __funnelshift_r(value, source[w + 1], 8 * shift);
    }
    reinterpret_cast<std::uint32_t*>(to)[w] = value;
  }
  if (thread < n - 4 * n_words) {
    to[4 * n_words + thread] = from[4 * n_words + thread];
  }
}

__global__ void crcCheckKernel(const std::uint8_t* payload, FrameState* state) {
  const std::uint32_t crc = finishPayloadCrc(payload, state);
  if (threadIdx.x == 0) {
    state->payload_crc = crc;
    if (crc != state->expected_crc && state->mismatch == 0) {
      state->mismatch = 1;
    }
  }
}

}  // namespace

void enqueueLayout(const SegmentList& segments,
                   std::uint64_t header_bytes,
                   FrameState* state,
                   cudaStream_t stream) {
  layoutKernel<<<1, 1, 0, stream>>>(segments, header_bytes, state);
  checkLaunch("layoutKernel");
}

void enqueueSegmentCopies(const SegmentList& segments,
                          std::uint8_t* payload,
                          const FrameState* state,
                          cudaStream_t stream) {
  for (std::uint32_t i = 1; i < segments.n_segments; ++i) {
    const Segment& segment = segments.segment[i];
    if (segment.max_bytes == 0) {
      continue;
    }
    const unsigned blocks =
        std::min(gridFor(segment.max_bytes, 4 * kThreads * 4), 16 * multiprocessorCount());
    copySegmentKernel<<<blocks, kThreads, 0, stream>>>(segment.data, payload, state, i);
    checkLaunch("copySegmentKernel");
  }
}

void enqueuePayloadCrc(const std::uint8_t* payload,
                       std::uint64_t max_bytes,
                       FrameState* state,
                       cudaStream_t stream) {
  if (max_bytes < 16) {
    return;
  }
  // Few rounds while that still fills the device, more when there is plenty to do.
  const std::uint64_t all_rounds = (max_bytes + kRoundBytes - 1) / kRoundBytes;
  const std::uint64_t wanted = all_rounds / (8ull * multiprocessorCount());
  const auto n_rounds = static_cast<unsigned>(
      std::max<std::uint64_t>(4, std::min<std::uint64_t>(wanted, kMaxRounds)));
  payloadCrcKernel<<<gridFor(all_rounds, n_rounds), kThreads, 0, stream>>>(payload, n_rounds,
                                                                           state);
  checkLaunch("payloadCrcKernel");
}

void enqueueHeader(const std::uint8_t* header_template,
                   std::uint32_t header_bytes,
                   const HeaderField* fields,
                   std::uint32_t n_fields,
                   std::uint8_t* frame,
                   FrameState* state,
                   cudaStream_t stream) {
  headerKernel<<<1, kThreads, header_bytes, stream>>>(header_template, header_bytes, fields,
                                                      n_fields, frame, state);
  checkLaunch("headerKernel");
}

void enqueueOpen(const std::uint8_t* frame,
                 std::uint64_t capacity_bytes,
                 const std::uint8_t* header_template,
                 std::uint32_t header_bytes,
                 const FieldTarget* fields,
                 std::uint32_t n_fields,
                 const SegmentLimits& limits,
                 FrameState* state,
                 cudaStream_t stream) {
  openKernel<<<1, kThreads, header_bytes, stream>>>(frame, capacity_bytes, header_template,
                                                    header_bytes, fields, n_fields, limits, state);
  checkLaunch("openKernel");
}

void enqueueExtract(const std::uint8_t* payload,
                    std::uint8_t* to,
                    std::uint64_t max_bytes,
                    const FrameState* state,
                    std::uint32_t index,
                    cudaStream_t stream) {
  const unsigned blocks =
      std::min(gridFor(max_bytes, 4 * kThreads * 4), 16 * multiprocessorCount());
  extractKernel<<<blocks, kThreads, 0, stream>>>(payload, to, state, index);
  checkLaunch("extractKernel");
}

void enqueueCrcCheck(const std::uint8_t* payload, FrameState* state, cudaStream_t stream) {
  crcCheckKernel<<<1, kWarp, 0, stream>>>(payload, state);
  checkLaunch("crcCheckKernel");
}

}  // namespace fz::cuda
