// Assembling a frame: segments behind each other, checksums, header, and the results for the host.
#include "backends/cuda/device.cuh"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/host_flag.cuh"
#include "backends/cuda/payload_crc.cuh"

namespace fz::cuda {

namespace {

constexpr unsigned kThreads = kCrcThreads;

/// Where segment `index` begins; for index = n_segments, the length of the payload.
__device__ __forceinline__ std::uint64_t segmentOffset(const SegmentList& segments,
                                                       std::uint32_t index) {
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < index; ++i) {
    at += *segments.segment[i].n_bytes;
  }
  return at;
}

/// To any byte offset: whole words of the target, each made of two words of the source. Segment 0
/// stands in place already; blockIdx.y counts the others.
__global__ void placeSegmentsKernel(const __grid_constant__ SegmentList segments,
                                    std::uint8_t* payload) {
  const std::uint32_t index = blockIdx.y + 1;
  const std::uint8_t* from = segments.segment[index].data;
  const std::uint64_t n = *segments.segment[index].n_bytes;
  std::uint8_t* to = payload + segmentOffset(segments, index);
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

/// One block: sizes and places of the segments into the state.
__device__ __forceinline__ void noteLayout(const FrameJob& job) {
  FrameState& state = *job.state;
  if (threadIdx.x == 0) {
    std::uint64_t at = 0;
    for (std::uint32_t i = 0; i < job.segments.n_segments; ++i) {
      const std::uint64_t n = *job.segments.segment[i].n_bytes;
      state.segment_bytes[i] = n;
      state.segment_offset[i] = at;
      at += n;
    }
    state.payload_bytes = at;
    state.total_bytes = job.header_bytes + at;
  }
}

/// One block: template and fields, both checksums, all into the frame.
__device__ __forceinline__ void writeHeader(const FrameJob& job,
                                            std::uint32_t payload_crc,
                                            CrcDesk& desk) {
  extern __shared__ uint4 header_pieces[];
  auto* header = reinterpret_cast<std::uint8_t*>(header_pieces);
  for (unsigned i = threadIdx.x; i < job.header_bytes / sizeof(uint4); i += kThreads) {
    header_pieces[i] = reinterpret_cast<const uint4*>(job.header_template)[i];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.n_fields; i += kThreads) {
    const HeaderField field = job.fields[i];
    const std::uint64_t value = *field.source;
    for (unsigned b = 0; b < field.n_bytes; ++b) {
      header[field.offset + b] = static_cast<std::uint8_t>(value >> (8 * b));
    }
  }
  if (threadIdx.x == 0) {
    *reinterpret_cast<std::uint32_t*>(header + HeaderOffsets::kPayloadCrc) = payload_crc;
    *reinterpret_cast<std::uint32_t*>(header + HeaderOffsets::kHeaderCrc) = 0;
  }
  __syncthreads();
  const std::uint32_t header_crc = headerCrc(header, job.header_bytes, desk);
  if (threadIdx.x == 0) {
    *reinterpret_cast<std::uint32_t*>(header + HeaderOffsets::kHeaderCrc) = header_crc;
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.header_bytes / sizeof(uint4); i += kThreads) {
    reinterpret_cast<uint4*>(job.frame)[i] = header_pieces[i];
  }
}

/// One block, which has seen a barrier after the last change of the records.
__device__ __forceinline__ void finishRun(const HandOver& hand_over) {
  for (unsigned i = threadIdx.x; i < hand_over.n_words; i += kThreads) {
    const std::uint32_t word = hand_over.device[i];
    hand_over.host[i] = word;
    if (i < hand_over.n_record_words) {
      hand_over.device[i] = hand_over.start[i];
    }
  }
  raiseFlag(hand_over.is_done);
}

/// The checksum over the payload; the last block also writes the header and ends the run.
__global__ void __launch_bounds__(kThreads)
    finishFrameKernel(const __grid_constant__ FrameJob job, unsigned n_rounds) {
  const PayloadPlace payload{job.frame + job.header_bytes,
                             segmentOffset(job.segments, job.segments.n_segments)};
  __shared__ CrcDesk desk;
  std::uint32_t crc;
  if (!sumPayload(payload, n_rounds, desk, job.state, &crc)) {
    return;
  }
  noteLayout(job);
  if (threadIdx.x == 0) {
    job.state->payload_crc = crc;
  }
  __syncthreads();
  writeHeader(job, crc, desk);
  __syncthreads();
  finishRun(job.hand_over);
}

__global__ void __launch_bounds__(kThreads)
    handOverKernel(const __grid_constant__ HandOver hand_over) {
  finishRun(hand_over);
}

}  // namespace

void enqueueFrame(const FrameJob& job, cudaStream_t stream) {
  std::uint64_t max_payload = 0;
  std::uint64_t max_moved = 0;
  for (std::uint32_t i = 0; i < job.segments.n_segments; ++i) {
    max_payload += job.segments.segment[i].max_bytes;
    max_moved = std::max(max_moved, i == 0 ? 0 : job.segments.segment[i].max_bytes);
  }
  if (max_moved > 0) {
    const unsigned blocks =
        std::min(gridFor(max_moved, 4 * kThreads * 4), 16 * multiprocessorCount());
    const dim3 grid(blocks, job.segments.n_segments - 1);
    placeSegmentsKernel<<<grid, kThreads, 0, stream>>>(job.segments, job.frame + job.header_bytes);
    checkLaunch("placeSegmentsKernel");
  }
  const CrcGrid grid(max_payload);
  finishFrameKernel<<<grid.n_blocks, kThreads, job.header_bytes, stream>>>(job, grid.n_rounds);
  checkLaunch("finishFrameKernel");
}

void RunBlock::enqueueHandOver(cudaStream_t stream) {
  noteHandOver();
  handOverKernel<<<1, kThreads, 0, stream>>>(handOver());
  checkLaunch("handOverKernel");
}

}  // namespace fz::cuda
