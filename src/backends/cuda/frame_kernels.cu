// Assembling a frame: segments behind each other, checksums, header, and the results for the host.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/each_field.cuh"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/graph_launcher.h"
#include "backends/cuda/payload_crc.cuh"
#include "backends/cuda/readback.cuh"

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

/// 16 bytes from any address, of which all exist. Reads whole words, none without one of them.
__device__ __forceinline__ uint4 loadPiece(const std::uint8_t* from) {
  const auto shift = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) & 3);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from - shift);
  const std::uint32_t w[5] = {words[0], words[1], words[2], words[3], shift != 0 ? words[4] : 0u};
  return make_uint4(__funnelshift_r(w[0], w[1], 8 * shift), __funnelshift_r(w[1], w[2], 8 * shift),
                    __funnelshift_r(w[2], w[3], 8 * shift), __funnelshift_r(w[3], w[4], 8 * shift));
}

/// All threads of a block: n bytes from anywhere to anywhere, in pieces of 16 bytes of the target.
__device__ __forceinline__ void copyBytes(const std::uint8_t* from,
                                          std::uint8_t* to,
                                          std::uint64_t n) {
  const std::uint64_t to_piece = (16 - (reinterpret_cast<std::uintptr_t>(to) & 15)) & 15;
  const std::uint64_t head = to_piece < n ? to_piece : n;
  const std::uint64_t n_pieces = (n - head) / 16;
#pragma unroll 2
  for (std::uint64_t i = threadIdx.x; i < n_pieces; i += kThreads) {
    reinterpret_cast<uint4*>(to + head)[i] = loadPiece(from + head + 16 * i);
  }
  const std::uint64_t tail = head + 16 * n_pieces;
  if (threadIdx.x < head) {
    to[threadIdx.x] = from[threadIdx.x];
  } else if (threadIdx.x >= 16 && threadIdx.x - 16 < n - tail) {
    to[tail + threadIdx.x - 16] = from[tail + threadIdx.x - 16];
  }
}

/// One block: brings the bytes of its part of the payload there, and ends with a barrier. Segment 0
/// stands in place already.
__device__ __forceinline__ void placeSegments(const FrameJob& job, const PayloadPart& part) {
  std::uint64_t segment_begin = *job.segments.segment[0].n_bytes;
  for (std::uint32_t i = 1; i < job.segments.n_segments; ++i) {
    const Segment& segment = job.segments.segment[i];
    const std::uint64_t segment_end = segment_begin + *segment.n_bytes;
    const std::uint64_t begin = segment_begin > part.begin ? segment_begin : part.begin;
    const std::uint64_t end = segment_end < part.place_end ? segment_end : part.place_end;
    if (begin < end) {
      copyBytes(segment.data + (begin - segment_begin), job.frame + job.header_bytes + begin,
                end - begin);
    }
    segment_begin = segment_end;
  }
  __syncthreads();
}

/// One block: sizes and places of the segments into the state; ends with a barrier.
__device__ __forceinline__ void recordLayout(const FrameJob& job) {
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
__device__ __forceinline__ void writeHeader(const FrameJob& job, const CrcAgent& agent) {
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
  const std::uint32_t header_crc = headerCrc(header, job.header_bytes, agent);
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

/// The blocks but the first: what stages want cleared.
__device__ __forceinline__ void clearRanges(const FrameJob& job) {
  const std::uint64_t n_threads = std::uint64_t{gridDim.x - 1} * kThreads;
  for (std::uint32_t r = 0; r < job.n_clears; ++r) {
    const ClearRange& range = job.clears[r];
    for (std::uint64_t i = std::uint64_t{blockIdx.x - 1} * kThreads + threadIdx.x;
         i < range.n_words; i += n_threads) {
      range.words[i] = 0;
    }
  }
}

/// Whole pieces of the first segment.
__device__ __forceinline__ std::uint64_t frontBytes(const FrameJob& job) {
  return segmentOffset(job.segments, 1) / kCrcPieceBytes * kCrcPieceBytes;
}

/// The checksum over the first segment, all blocks but the first, as if that were the payload.
__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor)
    sumFrontKernel(const __grid_constant__ FrameJob job) {
  __shared__ std::uint32_t parts[kCrcWarps];
  if (blockIdx.x != 0) {
    addPartOfCrc({job.frame + job.header_bytes, frontBytes(job)}, CrcAgent(parts),
                 &job.state->front_remainder);
  }
}

/// Segments to their places and the checksum over the payload, and beside it the header and the
/// records for the host; the last block brings them together and ends the run.
__device__ __forceinline__ void finishFrame(const FrameJob& job) {
  __shared__ std::uint32_t parts[kCrcWarps];
  const CrcAgent agent(parts);
  const PayloadPlace payload{job.frame + job.header_bytes,
                             segmentOffset(job.segments, job.segments.n_segments),
                             job.is_front_summed != 0 ? frontBytes(job) : 0};
  if (blockIdx.x == 0) {
    recordLayout(job);
    sendRecords(job.readback);
    writeHeader(job, agent);
    __threadfence_system();  // what went to the host is there before the flag
  } else {
    clearRanges(job);
    const PayloadPart part = partOfPayload(payload);
    placeSegments(job, part);
    // Not through the read-only cache: this block has just written it.
    addPartOfCrc(payload, part, agent, &job.state->crc_remainder,
                 [](const uint4* p) { return __ldcg(p); });
  }
  std::uint32_t crc = 0;
  if (!endPayload(payload, job.state, &crc)) {
    return;
  }
  if (threadIdx.x < kWarp) {
    writeChecksums(job, crc);
  } else {
    resetRecords(job.readback, kWarp);
  }
  raiseFlag(job.readback.is_done);
}

__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor)
    finishFrameKernel(const __grid_constant__ FrameJob job) {
  finishFrame(job);
}

__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor)
    finishEachFrameKernel(const EachField fields) {
  finishFrame(argumentsOf<FrameJob>(fields));
}

__global__ void __launch_bounds__(kThreads)
    readbackKernel(const __grid_constant__ HostReadback readback) {
  bringToHost(readback);
}

__global__ void __launch_bounds__(kThreads) eachReadbackKernel(const EachField fields) {
  bringToHost(argumentsOf<HostReadback>(fields));
}

}  // namespace

void enqueueFrontSum(const FrameJob& job, const Launcher& launcher) {
  // Others run beside it, so there are more blocks, which end soon, than the device has at a time.
  constexpr unsigned kRounds = 4;
  const std::uint64_t max_bytes = job.segments.segment[0].max_bytes;
  launcher.launch("sumFrontKernel", sumFrontKernel,
                  std::min(gridFor(max_bytes, kCrcRoundBytes) + 1, kRounds * crcBlocks(max_bytes)),
                  kThreads, 0, job);
}

void enqueueFrame(const FrameJob& job, const Launcher& launcher) {
  std::uint64_t max_payload = 0;
  for (std::uint32_t i = 0; i < job.segments.n_segments; ++i) {
    max_payload += job.segments.segment[i].max_bytes;
  }
  launcher.launch("finishFrameKernel", withEach(finishFrameKernel, finishEachFrameKernel, 2),
                  crcBlocks(max_payload), kThreads, job.header_bytes, job);
}

void DeviceRunState::enqueueReadback(const Launcher& launcher) {
  recordReadback();
  launcher.launch("readbackKernel", withEach(readbackKernel, eachReadbackKernel), 1, kThreads, 0,
                  hostReadback());
}

}  // namespace fz::cuda
