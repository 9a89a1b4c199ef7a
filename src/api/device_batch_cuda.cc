// Batches of arrays in device memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>

#include <cuda_runtime_api.h>

#include "api/batch_split.h"
#include "api/fused_batch.h"
#include "backends/cuda/captures.h"
#include "backends/cuda/device_guard.h"
#include "backends/cuda/frame_kernels.h"
#include "core/require.h"
#include "cuda_check.h"
#include "fz/batch.h"
#include "fz/device_api.h"
#include "fzm_format.h"
#include "log.h"
#include "pipeline/compressor.h"
#include "pipeline/device/batch_program.h"
#include "pipeline/pipeline_access.h"

namespace fz {

namespace {

// More threads than that only wait for each other at the driver.
constexpr std::size_t kMaxLanes = 8;

/// A thread's pipeline, with a stream of its own.
struct Lane {
  Lane(DataType type, const CompressOptions& options, int device) {
    pipeline.setDevice(device);
    configure(pipeline, type, options);
    compressor.emplace(pipeline, type, options);
    stream = PipelineAccess::ownStream(pipeline);
  }

  Pipeline pipeline;
  std::optional<DeviceCompressor> compressor;
  cudaStream_t stream = nullptr;
};

/// What a stream has when it is made, for other streams to wait for.
class StreamMark {
 public:
  explicit StreamMark(cudaStream_t stream) {
    FZ_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    FZ_CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  StreamMark(const StreamMark&) = delete;
  StreamMark& operator=(const StreamMark&) = delete;
  ~StreamMark() { FZ_CUDA_CHECK_WARN(cudaEventDestroy(event_)); }
  void letWait(cudaStream_t stream) const { FZ_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0)); }

 private:
  cudaEvent_t event_ = nullptr;
};

std::int32_t statusOf(const std::exception_ptr& error) {
  return static_cast<std::int32_t>(errorCodeOf(error)) + 1;
}

void requireOneEach(std::size_t n_given, std::size_t n_rooms, const FieldResult* results) {
  FZ_REQUIRE_ARG(n_given == n_rooms, "DeviceBatch: {} fields, and room for {}", n_given, n_rooms);
  FZ_REQUIRE_ARG(results != nullptr || n_given == 0, "DeviceBatch: results is null");
}

/// What kernels may read or write, or nothing at all. Other memory would break the context.
void requireReachable(const void* data, std::size_t n_bytes, int device, const char* what) {
  if (n_bytes == 0) {
    return;
  }
  cudaPointerAttributes attributes = {};
  FZ_CUDA_CHECK(cudaPointerGetAttributes(&attributes, data));
  FZ_REQUIRE(attributes.type != cudaMemoryTypeUnregistered &&
                 (attributes.type != cudaMemoryTypeDevice || attributes.device == device),
             ErrorCode::kInvalidArgument, "DeviceBatch: the {} at {} is not memory of device {}",
             what, data, device);
}

// Fewer fields, or larger ones, take as long one by one on several streams.
constexpr std::size_t kLeastFused = 4;
constexpr std::size_t kMostFusedBytes = std::size_t{16} << 20;
// Of a device's memory, for the fields of one round.
constexpr std::size_t kFusedShare = 16;
constexpr std::size_t kMostFusedFields = 8192;
constexpr std::uintptr_t kFieldAlignment = 16;

bool isAlignedField(const void* data) {
  return data != nullptr && reinterpret_cast<std::uintptr_t>(data) % kFieldAlignment == 0;
}

/// From addressOf().
// NOLINTBEGIN(performance-no-int-to-ptr)
const void* placeOf(std::uint64_t address) {
  return reinterpret_cast<const void*>(address);
}
// NOLINTEND(performance-no-int-to-ptr)

std::uint64_t addressOf(const void* data) {
  return reinterpret_cast<std::uint64_t>(data);
}

}  // namespace

struct DeviceBatch::Impl {
  Impl(DataType field_type, const CompressOptions& how)
      : type(field_type), options(how), device(cuda::currentDevice()) {
    options.backend = Backend::CUDA;
    options.threads = 1;
    n_lanes = std::min(usableThreads(how.threads), kMaxLanes);
    lanes.push_back(std::make_unique<Lane>(type, options, device));
  }

  DataType type;
  CompressOptions options;
  int device;
  std::size_t n_lanes;
  std::vector<std::unique_ptr<Lane>> lanes;
  DecodeLimits limits;
  std::size_t n_fused = 0;
  FusedBatch fused;
  std::vector<cuda::FieldEnds> known_ends[2];  ///< of the last calls of either kind, all reachable
  std::vector<FieldResult> outcome;
  std::vector<std::size_t> waiting;  ///< fields that are not done yet

  void begin(std::size_t n_fields);
  /// each(lane, field, result) of all fields that wait, from several threads.
  template <class Each>
  void runAll(cudaStream_t stream, const Each& each);
  bool canFuse(std::size_t n_fields, std::size_t n_bytes) const;
  void prepareFused(std::size_t n_bytes) {
    if (fused.n_bytes != n_bytes) {
      const cuda::DeviceGuard guard(device);
      fused.make(type, options, device, n_bytes);
    }
  }
  /// The fields that wait, as far as ends_of(field, ends) says that they may, by one of the
  /// programs; is_done(program, row, field) says whether that was all.
  template <class EndsOf, class IsDone>
  void runFused(BatchProgram& program,
                std::vector<cuda::FieldEnds>& known,
                const std::optional<BatchProgram::Sampling>& sampling,
                cudaStream_t stream,
                const EndsOf& ends_of,
                const IsDone& is_done);
  void dropUnreachable(std::vector<cuda::FieldEnds>& known,
                       std::vector<cuda::FieldEnds>& ends,
                       std::vector<std::size_t>& chosen,
                       std::vector<std::size_t>& left) const;
  bool isSettled(const BatchProgram& program,
                 std::size_t row,
                 std::size_t n_bytes,
                 const std::optional<BoundInfo>& bound) const;
  void compressFused(std::span<const void* const> fields,
                     std::size_t n_bytes,
                     std::span<const DeviceRoom> slots,
                     cudaStream_t stream);
  void decompressFused(std::span<const DeviceBytes> frames,
                       std::span<const DeviceRoom> outputs,
                       cudaStream_t stream);
  void deliver(FieldResult* results) const;
  void compressOne(Lane& lane,
                   const void* field,
                   std::size_t n_bytes,
                   const DeviceRoom& slot,
                   FieldResult& result) const;
  void decompressOne(Lane& lane,
                     const DeviceBytes& frame,
                     const DeviceRoom& output,
                     FieldResult& result) const;
};

void DeviceBatch::Impl::begin(std::size_t n_fields) {
  n_fused = 0;
  outcome.assign(n_fields, {});
  waiting.resize(n_fields);
  std::iota(waiting.begin(), waiting.end(), std::size_t{0});
}

template <class Each>
void DeviceBatch::Impl::runAll(cudaStream_t stream, const Each& each) {
  if (waiting.empty()) {
    return;
  }
  const cuda::DeviceGuard guard(device);
  const BatchSplit split = splitBatch(waiting.size(), n_lanes);
  while (lanes.size() < split.n_workers) {
    lanes.push_back(std::make_unique<Lane>(type, options, device));
  }
  const StreamMark before(stream);
  for (std::size_t i = 0; i < split.n_workers; ++i) {
    before.letWait(lanes[i]->stream);
  }
  forEachField(split, waiting.size(), [&](std::size_t worker, std::size_t row) {
    const std::size_t field = waiting[row];
    try {
      each(*lanes[worker], field, outcome[field]);
    } catch (const std::exception& error) {
      FZ_LOG(INFO, "DeviceBatch: field %zu: %s", field, error.what());
      outcome[field].status = statusOf(std::current_exception());
    }
  });
  for (std::size_t i = 0; i < split.n_workers; ++i) {
    FZ_CUDA_CHECK(cudaStreamSynchronize(lanes[i]->stream));
  }
}

bool DeviceBatch::Impl::canFuse(std::size_t n_fields, std::size_t n_bytes) const {
  return n_fields >= kLeastFused && n_bytes > 0 && n_bytes <= kMostFusedBytes && isKnown(type) &&
         n_bytes % getDataTypeSize(type) == 0;
}

/// What kernels cannot read or write is left; asked only of what the last call did not have.
void DeviceBatch::Impl::dropUnreachable(std::vector<cuda::FieldEnds>& known,
                                        std::vector<cuda::FieldEnds>& ends,
                                        std::vector<std::size_t>& chosen,
                                        std::vector<std::size_t>& left) const {
  const auto isSame = [](const cuda::FieldEnds& a, const cuda::FieldEnds& b) {
    return std::equal(std::begin(a.value), std::end(a.value), std::begin(b.value));
  };
  if (std::equal(ends.begin(), ends.end(), known.begin(), known.end(), isSame)) {
    return;
  }
  std::size_t n_kept = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    try {
      requireReachable(placeOf(ends[row].value[0]), 1, device, "field");
      requireReachable(placeOf(ends[row].value[1]), 1, device, "output");
      ends[n_kept] = ends[row];
      chosen[n_kept++] = chosen[row];
    } catch (const Error&) {
      left.push_back(chosen[row]);
    }
  }
  ends.resize(n_kept);
  chosen.resize(n_kept);
  known = ends;
}

template <class EndsOf, class IsDone>
void DeviceBatch::Impl::runFused(BatchProgram& program,
                                 std::vector<cuda::FieldEnds>& known,
                                 const std::optional<BatchProgram::Sampling>& sampling,
                                 cudaStream_t stream,
                                 const EndsOf& ends_of,
                                 const IsDone& is_done) {
  const cuda::DeviceGuard guard(device);
  std::vector<cuda::FieldEnds> ends;
  std::vector<std::size_t> chosen;
  std::vector<std::size_t> left;
  ends.reserve(waiting.size());
  chosen.reserve(waiting.size());
  for (const std::size_t field : waiting) {
    cuda::FieldEnds here = {};
    if (ends_of(field, here)) {
      ends.push_back(here);
      chosen.push_back(field);
    } else {
      left.push_back(field);
    }
  }
  dropUnreachable(known, ends, chosen, left);
  const std::size_t n_most = std::clamp<std::size_t>(
      cuda::totalMemory(device) / kFusedShare / program.fieldBytes(), 1, kMostFusedFields);
  for (std::size_t first = 0; first < chosen.size(); first += n_most) {
    const std::size_t n = std::min(n_most, chosen.size() - first);
    program.run({ends.data() + first, n}, sampling, stream);
    for (std::size_t row = 0; row < n; ++row) {
      const std::size_t field = chosen[first + row];
      if (is_done(row, field)) {
        ++n_fused;
      } else {
        left.push_back(field);
      }
    }
  }
  waiting = std::move(left);
}

/// Whether a field's frame is the one that compress() gives, by what the device has found.
bool DeviceBatch::Impl::isSettled(const BatchProgram& program,
                                  std::size_t row,
                                  std::size_t n_bytes,
                                  const std::optional<BoundInfo>& bound) const {
  const cuda::FieldVerdict& verdict = program.verdict(row);
  if (verdict.needs_host != 0) {
    return false;
  }
  if (options.lossless_fallback &&
      (verdict.n_bytes > n_bytes + kStoredFrameBytes || savesLittle(verdict.n_bytes, n_bytes))) {
    return false;
  }
  if (!bound) {
    return true;
  }
  const cuda::FieldLook::Part& sample = program.sample(row);
  if (sample.count != 0) {
    return false;
  }
  if (bound->mode != ErrorBoundMode::NOA || !options.suspect_fill || !(bound->requested > 0.0)) {
    return true;
  }
  // A little more cautious than checkRangeBound(), which decides where this is in doubt.
  constexpr double kSureWidening = 9.9;
  const double rest = std::min(sample.high - sample.next_low, sample.next_high - sample.low);
  return program.knowsBound() && std::isfinite(rest) &&
         verdict.absolute / bound->requested <= kSureWidening * rest;
}

namespace {

std::optional<BoundInfo> boundOf(const Pipeline& pipeline) {
  for (const Stage* stage : pipeline.getStages()) {
    if (const auto bound = stage->boundInfo()) {
      return bound;
    }
  }
  return std::nullopt;
}

}  // namespace

void DeviceBatch::Impl::compressFused(std::span<const void* const> fields,
                                      std::size_t n_bytes,
                                      std::span<const DeviceRoom> slots,
                                      cudaStream_t stream) {
  const bool is_float = type == DataType::FLOAT32 || type == DataType::FLOAT64;
  if (!canFuse(fields.size(), n_bytes) || !options.fill.empty()) {
    return;  // declared values are looked for in every field
  }
  prepareFused(n_bytes);
  if (fused.encode == nullptr) {
    return;
  }
  const std::optional<BoundInfo> bound = is_float ? boundOf(lanes.front()->pipeline) : std::nullopt;
  const auto sampling = bound ? std::optional(BatchProgram::Sampling{type, n_bytes}) : std::nullopt;
  const std::size_t n_room = fused.encode->outputBytes();
  runFused(
      *fused.encode, known_ends[0], sampling, stream,
      [&](std::size_t i, cuda::FieldEnds& ends) {
        ends = {{addressOf(fields[i]), addressOf(slots[i].data), 0}};
        return isAlignedField(fields[i]) && isAlignedField(slots[i].data) &&
               slots[i].capacity_bytes >= n_room;
      },
      [&](std::size_t row, std::size_t i) {
        outcome[i].n_bytes = fused.encode->verdict(row).n_bytes;
        return isSettled(*fused.encode, row, n_bytes, bound);
      });
}

void DeviceBatch::Impl::decompressFused(std::span<const DeviceBytes> frames,
                                        std::span<const DeviceRoom> outputs,
                                        cudaStream_t stream) {
  const bool has_limits = limits.max_output_bytes != 0 || limits.max_memory_bytes != 0;
  if (frames.empty() || has_limits) {
    return;
  }
  const std::size_t n_bytes = fused.n_bytes != 0 && fused.n_bytes <= outputs[0].capacity_bytes
                                  ? fused.n_bytes
                                  : outputs[0].capacity_bytes;
  if (!canFuse(frames.size(), n_bytes)) {
    return;
  }
  prepareFused(n_bytes);
  if (fused.decode == nullptr) {
    return;
  }
  runFused(
      *fused.decode, known_ends[1], std::nullopt, stream,
      [&](std::size_t i, cuda::FieldEnds& ends) {
        ends = {{addressOf(frames[i].data), addressOf(outputs[i].data), frames[i].n_bytes}};
        return isAlignedField(frames[i].data) && isAlignedField(outputs[i].data) &&
               frames[i].n_bytes >= cuda::HeaderOffsets::kCoreEnd &&
               outputs[i].capacity_bytes >= n_bytes;
      },
      [&](std::size_t row, std::size_t i) {
        outcome[i].n_bytes = n_bytes;
        return fused.decode->verdict(row).needs_host == 0;
      });
}

void DeviceBatch::Impl::deliver(FieldResult* results) const {
  if (outcome.empty()) {
    return;
  }
  const std::size_t n_bytes = outcome.size() * sizeof(FieldResult);
  if (cuda::isDeviceOnly(results)) {
    const cuda::DeviceGuard guard(device);
    FZ_CUDA_CHECK(cudaMemcpy(results, outcome.data(), n_bytes, cudaMemcpyHostToDevice));
  } else {
    std::memcpy(results, outcome.data(), n_bytes);
  }
}

void DeviceBatch::Impl::compressOne(Lane& lane,
                                    const void* field,
                                    std::size_t n_bytes,
                                    const DeviceRoom& slot,
                                    FieldResult& result) const {
  requireReachable(field, n_bytes, device, "field");
  const CompressedView frame = lane.compressor->compress(field, n_bytes, lane.stream);
  result.n_bytes = frame.n_bytes;
  FZ_REQUIRE(frame.n_bytes <= slot.capacity_bytes, ErrorCode::kBufferTooSmall,
             "DeviceBatch: the frame has {} bytes, the slot {}", frame.n_bytes,
             slot.capacity_bytes);
  requireReachable(slot.data, frame.n_bytes, device, "slot");
  const cuda::DeviceGuard guard(device);
  cuda::copyOnDevice(slot.data, frame.data, frame.n_bytes, lane.stream);
}

void DeviceBatch::Impl::decompressOne(Lane& lane,
                                      const DeviceBytes& frame,
                                      const DeviceRoom& output,
                                      FieldResult& result) const {
  FZ_REQUIRE(frame.data != nullptr, ErrorCode::kInvalidArgument, "DeviceBatch: a frame is null");
  requireReachable(frame.data, frame.n_bytes, device, "frame");
  requireReachable(output.data, output.capacity_bytes, device, "output");
  std::size_t n_bytes = 0;
  lane.pipeline.setDecodeLimits(limits);
  lane.pipeline.decompress(frame.data, frame.n_bytes, output.data, output.capacity_bytes, &n_bytes,
                           lane.stream);
  result.n_bytes = n_bytes;
}

DeviceBatch::DeviceBatch(DataType type, const CompressOptions& options) try
    : impl_(std::make_unique<Impl>(type, options)) {
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

DeviceBatch::~DeviceBatch() = default;

std::size_t DeviceBatch::slotBytes(std::size_t n_bytes) const {
  Impl& impl = *impl_;
  CompressOptions options = impl.options;
  options.backend = Backend::CPU;  // asks no device
  std::size_t n_most = compressBound(impl.type, n_bytes, options);
  if (impl.canFuse(kLeastFused, n_bytes)) {
    impl.prepareFused(n_bytes);
    n_most =
        impl.fused.encode == nullptr ? n_most : std::max(n_most, impl.fused.encode->outputBytes());
  }
  return n_most;
}

void DeviceBatch::compress(std::span<const void* const> fields,
                           std::size_t n_bytes,
                           std::span<const DeviceRoom> slots,
                           FieldResult* results,
                           cudaStream_t stream) try {
  requireOneEach(fields.size(), slots.size(), results);
  Impl& impl = *impl_;
  impl.begin(fields.size());
  impl.compressFused(fields, n_bytes, slots, stream);
  impl.runAll(stream, [&](Lane& lane, std::size_t i, FieldResult& result) {
    impl.compressOne(lane, fields[i], n_bytes, slots[i], result);
  });
  impl.deliver(results);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void DeviceBatch::decompress(std::span<const DeviceBytes> frames,
                             std::span<const DeviceRoom> outputs,
                             FieldResult* results,
                             cudaStream_t stream) try {
  requireOneEach(frames.size(), outputs.size(), results);
  Impl& impl = *impl_;
  impl.begin(frames.size());
  impl.decompressFused(frames, outputs, stream);
  impl.runAll(stream, [&](Lane& lane, std::size_t i, FieldResult& result) {
    impl.decompressOne(lane, frames[i], outputs[i], result);
  });
  impl.deliver(results);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void DeviceBatch::setDecodeLimits(const DecodeLimits& limits) {
  impl_->limits = limits;
}

std::size_t DeviceBatch::fusedFields() const {
  return impl_->n_fused;
}

}  // namespace fz
