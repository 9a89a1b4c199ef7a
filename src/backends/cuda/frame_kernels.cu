// Assembling a frame: segments behind each other, checksums, header, and the results for the host.
#include "backends/cuda/device.cuh"
#include "backends/cuda/frame_kernels.h"
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
__device__ __forceinline__ void writeHeader(const FrameJob& job, std::uint32_t payload_crc) {
  extern __shared__ std::uint8_t header[];
  __shared__ std::uint32_t parts[kThreads];
  for (unsigned i = threadIdx.x; i < job.header_bytes; i += kThreads) {
    header[i] = job.header_template[i];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.n_fields; i += kThreads) {
    const HeaderField field = job.fields[i];
    const std::uint64_t value = *field.source;
    for (unsigned b = 0; b < field.n_bytes; ++b) {
      header[field.offset + b] = static_cast<std::uint8_t>(value >> (8 * b));
    }
  }
  if (threadIdx.x < 4) {
    header[HeaderOffsets::kPayloadCrc + threadIdx.x] =
        static_cast<std::uint8_t>(payload_crc >> (8 * threadIdx.x));
    header[HeaderOffsets::kHeaderCrc + threadIdx.x] = 0;
  }
  __syncthreads();
  const std::uint32_t header_crc = blockCrc(header, job.header_bytes, parts);
  if (threadIdx.x < 4) {
    header[HeaderOffsets::kHeaderCrc + threadIdx.x] =
        static_cast<std::uint8_t>(header_crc >> (8 * threadIdx.x));
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.header_bytes; i += kThreads) {
    job.frame[i] = header[i];
  }
}

/// The checksum over the payload; the last block also writes the header and hands the records to
/// the host, straight into its memory: a copy of its own would cost a small call more than the
/// checksum.
__global__ void __launch_bounds__(kThreads)
    finishFrameKernel(const __grid_constant__ FrameJob job, unsigned n_rounds) {
  const PayloadPlace payload{job.frame + job.header_bytes,
                             segmentOffset(job.segments, job.segments.n_segments)};
  std::uint32_t crc;
  if (!sumPayload(payload, n_rounds, job.state, &crc)) {
    return;
  }
  noteLayout(job);
  if (threadIdx.x == 0) {
    job.state->payload_crc = crc;
  }
  __syncthreads();
  writeHeader(job, crc);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.block_words; i += kThreads) {
    job.host_block[i] = job.device_block[i];
  }
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

}  // namespace fz::cuda
