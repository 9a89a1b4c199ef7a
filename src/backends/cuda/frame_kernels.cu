#include "backends/cuda/crc_device.cuh"
#include "backends/cuda/device.cuh"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/launch.h"

namespace fz::cuda {

namespace {

constexpr unsigned kThreads = kCrcThreads;
constexpr unsigned kRoundBytes = kCrcRoundBytes;
constexpr unsigned kMaxRounds = 32;

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
  payload += state->payload_offset;
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

__global__ void crcCheckKernel(const std::uint8_t* payload, FrameState* state) {
  const std::uint32_t crc = finishPayloadCrc(payload + state->payload_offset, state);
  if (threadIdx.x == 0) {
    state->payload_crc = crc;
    if (crc != state->expected_crc && state->mismatch == 0) {
      state->mismatch = 1;
      // Decoders that follow find no damaged bytes to decode.
      for (std::uint64_t& n_bytes : state->segment_bytes) {
        n_bytes = 0;
      }
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

void enqueueCrcCheck(const std::uint8_t* payload, FrameState* state, cudaStream_t stream) {
  crcCheckKernel<<<1, kWarp, 0, stream>>>(payload, state);
  checkLaunch("crcCheckKernel");
}

}  // namespace fz::cuda
