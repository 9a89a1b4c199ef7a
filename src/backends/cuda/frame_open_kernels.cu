// Opening a frame on the device: its header against what is expected, its segments out of it.
#include "backends/cuda/each_field.cuh"
#include "backends/cuda/frame_kernels.h"
#include "backends/cuda/graph_launcher.h"
#include "backends/cuda/host_flag.cuh"
#include "backends/cuda/padding.h"
#include "backends/cuda/payload_crc.cuh"

namespace fz::cuda {

namespace {

constexpr unsigned kThreads = kCrcThreads;

__device__ std::uint64_t readField(const std::uint8_t* header, unsigned offset, unsigned n_bytes) {
  std::uint64_t value = 0;
  for (unsigned b = 0; b < n_bytes; ++b) {
    value |= std::uint64_t{header[offset + b]} << (8 * b);
  }
  return value;
}

/// What a header is compared with, and where its fields go.
struct OpenJob {
  const std::uint8_t* frame;
  std::uint64_t capacity_bytes;
  const std::uint8_t* header_template;
  std::uint32_t header_bytes;
  const FieldTarget* fields;
  std::uint32_t n_fields;
  SegmentLimits limits;
  FrameState* state;
};

__device__ __forceinline__ void openFrame(const OpenJob& job) {
  const std::uint8_t* const frame = job.frame;
  const std::uint64_t capacity_bytes = job.capacity_bytes;
  const std::uint8_t* const header_template = job.header_template;
  const std::uint32_t header_bytes = job.header_bytes;
  const FieldTarget* const fields = job.fields;
  const std::uint32_t n_fields = job.n_fields;
  const SegmentLimits& limits = job.limits;
  FrameState* const state = job.state;
  extern __shared__ uint4 header_pieces[];
  __shared__ std::uint32_t parts[kCrcWarps];
  const CrcAgent agent(parts);
  auto* header = reinterpret_cast<std::uint8_t*>(header_pieces);
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
  const std::uint32_t header_crc = headerCrc(header, header_bytes, agent);
  bad = bad || (threadIdx.x < kWarp && header_crc != stored_crc);
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
      if (limits.stores_offsets == 0) {
        state->segment_offset[i] = at;
      }
      bad = bad || n > limits.max_bytes[i] || state->segment_offset[i] != at;
      at += bad ? 0 : n;
    }
    bad = bad || at != state->payload_bytes || at > capacity_bytes - header_bytes;
    state->expected_crc = payload_crc;
    state->mismatch = bad ? 2 : 0;
    if (bad) {
      state->payload_bytes = 0;
      for (std::uint32_t i = 0; i < limits.n_segments; ++i) {
        state->segment_bytes[i] = 0;
        state->segment_offset[i] = 0;
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) openKernel(const OpenJob job) {
  openFrame(job);
}

__global__ void __launch_bounds__(kThreads) openEachKernel(const EachField fields) {
  openFrame(argumentsOf<OpenJob>(fields));
}

/// Nothing in the header is trusted: what does not fit leaves an empty payload.
__device__ PayloadPlace locatePayload(const std::uint8_t* frame, std::uint64_t n_bytes) {
  const std::uint64_t header_bytes = readField(frame, HeaderOffsets::kHeaderSize, 8);
  const bool fits = header_bytes <= n_bytes && header_bytes % 16 == 0;
  return {fits ? frame + header_bytes : frame, fits ? n_bytes - header_bytes : 0};
}

/// One block: a header to the host, in pieces of which the first are on their way before it is
/// known how many there are: the host waits for them.
__device__ __forceinline__ void sendHeader(const std::uint8_t* frame, const FrameFront& front) {
  const auto* from = reinterpret_cast<const uint4*>(frame);
  auto* to = reinterpret_cast<uint4*>(front.header);
  const unsigned most_pieces = front.max_header_bytes / sizeof(uint4);
  uint4 piece = {};
  if (threadIdx.x < most_pieces) {
    piece = from[threadIdx.x];
  }
  const std::uint64_t stated_bytes = readField(frame, HeaderOffsets::kHeaderSize, 8);
  const std::uint64_t n_bytes =
      stated_bytes < HeaderOffsets::kCoreEnd
          ? std::uint64_t{HeaderOffsets::kCoreEnd}
          : (stated_bytes < front.max_header_bytes ? stated_bytes : front.max_header_bytes);
  const auto n_pieces = static_cast<unsigned>(n_bytes / sizeof(uint4));
  if (threadIdx.x < n_pieces) {
    to[threadIdx.x] = piece;
  }
  for (unsigned i = threadIdx.x + kThreads; i < n_pieces; i += kThreads) {
    to[i] = from[i];
  }
  if (threadIdx.x < n_bytes % sizeof(uint4)) {
    const std::uint64_t at = n_pieces * sizeof(uint4) + threadIdx.x;
    front.header[at] = frame[at];
  }
}

__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor) frontKernel(
    const std::uint8_t* frame, std::uint64_t n_bytes, FrameState* state, FrameFront front) {
  __shared__ std::uint32_t parts[kCrcWarps];
  const CrcAgent agent(parts);
  const PayloadPlace payload = locatePayload(frame, n_bytes);
  if (blockIdx.x == 0) {
    sendHeader(frame, front);
    raiseFlag(front.has_header);
  } else {
    addPartOfCrc(payload, agent, &state->crc_remainder);
  }
  std::uint32_t crc;
  if (endPayload(payload, state, &crc)) {
    if (threadIdx.x == 0) {
      state->may_write = crc == readField(frame, HeaderOffsets::kPayloadCrc, sizeof(crc)) ? 1u : 0u;
      *front.payload_crc = crc;
    }
    raiseFlag(front.has_crc);
  }
}

/// The payload of a frame whose header has been opened.
struct PayloadJob {
  const std::uint8_t* payload;
  FrameState* state;
};

__device__ __forceinline__ void checkPayload(const PayloadJob& job) {
  const std::uint8_t* const payload = job.payload;
  FrameState* const state = job.state;
  __shared__ std::uint32_t parts[kCrcWarps];
  const CrcAgent agent(parts);
  const PayloadPlace place{payload, state->payload_bytes};
  if (blockIdx.x > 0) {
    addPartOfCrc(place, agent, &state->crc_remainder);
  }
  std::uint32_t crc;
  if (endPayload(place, state, &crc) && threadIdx.x == 0) {
    state->payload_crc = crc;
    if (crc != state->expected_crc && state->mismatch == 0) {
      state->mismatch = 1;
      // Decoders that follow find no damaged bytes to decode.
      for (std::uint64_t& n_bytes : state->segment_bytes) {
        n_bytes = 0;
      }
    }
    state->may_write = state->mismatch == 0 ? 1 : 0;
  }
}

__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor)
    payloadCheckKernel(const PayloadJob job) {
  checkPayload(job);
}

__global__ void __launch_bounds__(kThreads, kCrcBlocksPerProcessor)
    checkEachPayloadKernel(const EachField fields) {
  checkPayload(argumentsOf<PayloadJob>(fields));
}

/// From any byte offset to an aligned place: whole words of the target; reads whole words too, the
/// last of which may reach a few bytes past the segment but never past the word that holds its end.
struct ExtractJob {
  const std::uint8_t* payload;
  std::uint8_t* to;
  const FrameState* state;
  std::uint32_t index;
};

__device__ __forceinline__ void extract(const ExtractJob& job) {
  const std::uint8_t* const payload = job.payload;
  std::uint8_t* const to = job.to;
  const FrameState* const state = job.state;
  const std::uint32_t index = job.index;
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

__global__ void extractKernel(const ExtractJob job) {
  extract(job);
}

__global__ void extractEachKernel(const EachField fields) {
  extract(argumentsOf<ExtractJob>(fields));
}

}  // namespace

void enqueueOpen(const std::uint8_t* frame,
                 std::uint64_t capacity_bytes,
                 const std::uint8_t* header_template,
                 std::uint32_t header_bytes,
                 const FieldTarget* fields,
                 std::uint32_t n_fields,
                 const SegmentLimits& limits,
                 FrameState* state,
                 const Launcher& launcher) {
  OpenJob job = {frame,  capacity_bytes, header_template, header_bytes,
                 fields, n_fields,       limits,          state};
  clearPadding(job);
  launcher.launch("openKernel", withEach(openKernel, openEachKernel), 1, kThreads, header_bytes,
                  job);
}

void enqueueFrontRead(const std::uint8_t* frame,
                      std::uint64_t n_bytes,
                      FrameState* state,
                      const FrameFront& front,
                      const Launcher& launcher) {
  launcher.launch("frontKernel", frontKernel, crcBlocks(n_bytes), kThreads, 0, frame, n_bytes,
                  state, front);
}

void enqueuePayloadCheck(const std::uint8_t* payload,
                         std::uint64_t max_bytes,
                         FrameState* state,
                         const Launcher& launcher) {
  launcher.launch("payloadCheckKernel", withEach(payloadCheckKernel, checkEachPayloadKernel, 2),
                  crcBlocks(max_bytes), kThreads, 0, PayloadJob{payload, state});
}

void enqueueExtract(const std::uint8_t* payload,
                    std::uint8_t* to,
                    std::uint64_t max_bytes,
                    const FrameState* state,
                    std::uint32_t index,
                    const Launcher& launcher) {
  const unsigned blocks =
      std::min(gridFor(max_bytes, 4 * kThreads * 4), 16 * multiprocessorCount());
  ExtractJob job = {payload, to, state, index};
  clearPadding(job);
  launcher.launch("extractKernel", withEach(extractKernel, extractEachKernel, 1), blocks, kThreads,
                  0, job);
}

}  // namespace fz::cuda
