// Batches of arrays in device memory.
#include <algorithm>
#include <cstring>
#include <new>

#include <cuda_runtime_api.h>

#include "api/batch_split.h"
#include "backends/cuda/device_guard.h"
#include "core/require.h"
#include "cuda_check.h"
#include "fz/batch.h"
#include "fz/device_api.h"
#include "pipeline/compressor.h"
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
  std::vector<FieldResult> outcome;

  /// each(lane, field) returns the bytes that it made, of all fields from several threads.
  template <class Each>
  void runAll(std::size_t n_fields, cudaStream_t stream, const Each& each);
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

template <class Each>
void DeviceBatch::Impl::runAll(std::size_t n_fields, cudaStream_t stream, const Each& each) {
  const cuda::DeviceGuard guard(device);
  const BatchSplit split = splitBatch(n_fields, n_lanes);
  while (lanes.size() < split.n_workers) {
    lanes.push_back(std::make_unique<Lane>(type, options, device));
  }
  const StreamMark before(stream);
  for (std::size_t i = 0; i < split.n_workers; ++i) {
    before.letWait(lanes[i]->stream);
  }
  outcome.assign(n_fields, {});
  forEachField(split, n_fields, [&](std::size_t worker, std::size_t field) {
    try {
      each(*lanes[worker], field, outcome[field]);
    } catch (...) {
      outcome[field].status = statusOf(std::current_exception());
    }
  });
  for (std::size_t i = 0; i < split.n_workers; ++i) {
    FZ_CUDA_CHECK(cudaStreamSynchronize(lanes[i]->stream));
  }
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
  CompressOptions options = impl_->options;
  options.backend = Backend::CPU;  // asks no device
  return compressBound(impl_->type, n_bytes, options);
}

void DeviceBatch::compress(std::span<const void* const> fields,
                           std::size_t n_bytes,
                           std::span<const DeviceRoom> slots,
                           FieldResult* results,
                           cudaStream_t stream) try {
  requireOneEach(fields.size(), slots.size(), results);
  Impl& impl = *impl_;
  impl.n_fused = 0;
  impl.runAll(fields.size(), stream, [&](Lane& lane, std::size_t i, FieldResult& result) {
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
  impl.n_fused = 0;
  impl.runAll(frames.size(), stream, [&](Lane& lane, std::size_t i, FieldResult& result) {
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
