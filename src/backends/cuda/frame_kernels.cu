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

/// One block: sizes and places of the segments into the state; ends with a barrier.
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
  __syncthreads();
}

/// One block: template and fields into the frame, the header's checksum into the state, all as if
/// the payload's checksum were 0.
__device__ __forceinline__ void writeHeader(const FrameJob& job, const CrcDesk& desk) {
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
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.header_bytes / sizeof(uint4); i += kThreads) {
    reinterpret_cast<uint4*>(job.frame)[i] = header_pieces[i];
  }
  const std::uint32_t header_crc = headerCrc(header, job.header_bytes, desk);
  if (threadIdx.x == 0) {
    job.state->header_crc = header_crc;
  }
}

/// One warp: both checksums into the header that stands in the frame.
__device__ __forceinline__ void writeChecksums(const FrameJob& job, std::uint32_t payload_crc) {
  const CrcDistance distance(job.header_bytes - HeaderOffsets::kPayloadCrc);
  const std::uint32_t header_crc =
      *const_cast<const volatile std::uint32_t*>(&job.state->header_crc) ^
      distance.moved(payload_crc);
  if (threadIdx.x == 0) {
    static_assert(HeaderOffsets::kHeaderCrc == HeaderOffsets::kPayloadCrc + 4);
    *reinterpret_cast<uint2*>(job.frame + HeaderOffsets::kPayloadCrc) =
        make_uint2(payload_crc, header_crc);
    job.state->payload_crc = payload_crc;
  }
}

/// One block: the records to the host.
__device__ __forceinline__ void sendRecords(const HandOver& hand_over) {
  for (unsigned i = threadIdx.x; i < hand_over.n_words; i += kThreads) {
    hand_over.host[i] = hand_over.device[i];
  }
}
/// The threads of one block but those of the first warp: the records as they were before the run.
/// Before the flag is raised: the host may do anything with their memory afterwards.
__device__ __forceinline__ void resetRecords(const HandOver& hand_over) {
  for (unsigned i = threadIdx.x - kWarp; i < hand_over.n_record_words; i += kThreads - kWarp) {
    hand_over.device[i] = hand_over.start[i];
  }
}

/// The checksum over the payload, and beside it the header and the records for the host; the last
/// block brings them together and ends the run.
__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor)
    finishFrameKernel(const __grid_constant__ FrameJob job) {
  __shared__ std::uint32_t parts[kCrcWarps];
  const CrcDesk desk(parts);
  const PayloadPlace payload{job.frame + job.header_bytes,
                             segmentOffset(job.segments, job.segments.n_segments)};
  if (blockIdx.x == 0) {
    noteLayout(job);
    sendRecords(job.hand_over);
    writeHeader(job, desk);
    __threadfence_system();  // what went to the host is there before the flag
  } else {
    addPartOfCrc(payload, desk, &job.state->crc_remainder);
  }
  std::uint32_t crc = 0;
  if (!endPayload(payload, job.state, &crc)) {
    return;
  }
  if (threadIdx.x < kWarp) {
    writeChecksums(job, crc);
  } else {
    resetRecords(job.hand_over);
  }
  raiseFlag(job.hand_over.is_done);
}

__global__ void __launch_bounds__(kThreads)
    handOverKernel(const __grid_constant__ HandOver hand_over) {
  sendRecords(hand_over);
  __syncthreads();
  if (threadIdx.x >= kWarp) {
    resetRecords(hand_over);
  }
  raiseFlag(hand_over.is_done);
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
  finishFrameKernel<<<crcBlocks(max_payload), kThreads, job.header_bytes, stream>>>(job);
  checkLaunch("finishFrameKernel");
}

void RunBlock::enqueueHandOver(cudaStream_t stream) {
  noteHandOver();
  handOverKernel<<<1, kThreads, 0, stream>>>(handOver());
  checkLaunch("handOverKernel");
}

}  // namespace fz::cuda
