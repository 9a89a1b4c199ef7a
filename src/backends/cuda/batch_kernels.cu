// What a batch needs besides the kernels of its fields.
#include "backends/cuda/batch_kernels.h"
#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/run_state.h"

namespace fz::cuda {

namespace {

constexpr unsigned kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    imageKernel(BatchImage image, EachPlace to, EachPlace memory, const FieldEnds* ends) {
  const unsigned field = blockIdx.x;
  auto* words = reinterpret_cast<std::uint64_t*>(to.data + field * to.stride);
  for (unsigned i = threadIdx.x; i < image.n_words; i += kThreads) {
    words[i] = image.words[i];
  }
  __syncthreads();
  const auto own = reinterpret_cast<std::uint64_t>(memory.data) + field * memory.stride;
  for (unsigned i = threadIdx.x; i < image.n_moves; i += kThreads) {
    const BatchMove move = image.moves[i];
    words[move.word] = (move.kind == 0 ? own : ends[field].value[move.kind - 1]) + move.offset;
  }
}

// Words of a StageRecord, one for each lane.
constexpr unsigned kNeededAt = 8;
constexpr unsigned kValuesAt = 16;
constexpr unsigned kErrorAt = 28;
static_assert(sizeof(StageRecord) == kWarp * sizeof(std::uint64_t));
static_assert(offsetof(StageRecord, needed_bytes) == kNeededAt * sizeof(std::uint64_t));
static_assert(offsetof(StageRecord, value) == kValuesAt * sizeof(std::uint64_t));
static_assert(offsetof(StageRecord, error) == kErrorAt * sizeof(std::uint64_t));

/// One warp: whether the record of a run asks for the host.
__device__ __forceinline__ bool asksForHost(const std::uint64_t* record, std::uint32_t quiet) {
  const unsigned lane = laneId();
  const std::uint64_t word = record[lane];
  const std::uint64_t n_bytes = __shfl_sync(kAllLanes, word, lane & 7u);
  const bool is_short = lane >= kNeededAt && lane < kValuesAt && word > n_bytes;
  const bool is_loud =
      lane >= kValuesAt && lane < kErrorAt && (quiet >> (lane - kValuesAt) & 1u) != 0 && word != 0;
  return __any_sync(kAllLanes, is_short || is_loud || (lane == kErrorAt && word != 0)) != 0;
}

/// A warp for each field.
__global__ void __launch_bounds__(kThreads)
    verdictKernel(const __grid_constant__ VerdictJob job, unsigned n_fields) {
  const unsigned field = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (field >= n_fields) {
    return;
  }
  const auto* words =
      reinterpret_cast<const std::uint64_t*>(job.results.data + field * job.results.stride);
  bool needs_host = false;
  for (unsigned r = 0; r < job.n_records; ++r) {
    needs_host = asksForHost(words + r * kWarp, job.quiet[r]) || needs_host;
  }
  if (laneId() == 0) {
    const auto& state = *reinterpret_cast<const FrameState*>(words + job.n_records * kWarp);
    needs_host = needs_host || (job.is_decoding && state.mismatch != 0);
    const double absolute =
        job.bound_word == 0 ? 0.0
                            : __longlong_as_double(static_cast<long long>(words[job.bound_word]));
    job.verdicts[field] = {state.total_bytes, absolute, needs_host ? 1u : 0u};
  }
}

}  // namespace

void enqueueImages(const BatchImage& image,
                   const EachPlace& to,
                   const EachPlace& memory,
                   const FieldEnds* ends,
                   unsigned n_fields,
                   cudaStream_t stream) {
  if (image.n_words > 0) {
    imageKernel<<<n_fields, kThreads, 0, stream>>>(image, to, memory, ends);
    checkLaunch("images of a batch");
  }
}

void enqueueVerdicts(const VerdictJob& job, unsigned n_fields, cudaStream_t stream) {
  verdictKernel<<<gridFor(n_fields, kThreads / kWarp), kThreads, 0, stream>>>(job, n_fields);
  checkLaunch("verdicts of a batch");
}

}  // namespace fz::cuda
