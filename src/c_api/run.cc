// Compressing, decoding and verifying with a pipeline.
#include <algorithm>
#include <cstdlib>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "format/frame_header.h"
#include "mem/host_memory.h"
#include "pipeline/pipeline_access.h"

using fz::ErrorCode;
using fz::c_api::guarded;

namespace fz::c_api {

namespace {

constexpr std::size_t kResultAlignment = 64;

cudaStream_t streamOf(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

void requireResultMemory(const fz_pipeline& handle, const char* who) {
  FZ_REQUIRE(!handle.device_memory || handle.allocator.allocate != nullptr,
             ErrorCode::kInvalidState, "{}: device memory needs an allocator that gives it", who);
}

/// By one of the handle's pipelines, from host memory. Throws FillValueError where a value that
/// nobody declared sets the range, unless the handle trusts its caller.
CompressedView compressBy(const fz_pipeline& handle,
                          Pipeline& pipeline,
                          ByteView bytes,
                          cudaStream_t stream) {
  const void* const input = PipelineAccess::upload(pipeline, bytes, stream);
  const CompressedView frame = pipeline.compress(input, bytes.size(), stream);
  if (handle.recipe.options.fill_check == FZ_FILL_CHECK) {
    pipeline.requireRangeWithoutFill(bytes, handle.fill, stream);
  }
  return frame;
}

/// By the pipeline that fits the values, as HostCompression::run() chooses it.
CompressedView compressHost(fz_pipeline& handle, ByteView bytes, cudaStream_t stream) {
  const DataType type = handle.masked_type;
  const bool can_be_masked = type != DataType::UNKNOWN;
  const bool is_watched =
      can_be_masked && !handle.fill.empty() && handle.pipeline.getBackend() == Backend::CPU;
  const auto has_missing = is_watched ? hasMissingInSample : hasMissing;
  if (!can_be_masked || !has_missing(type, bytes, handle.fill)) {
    try {
      MissingWatch watch(type, handle.fill);
      const WatchScope scope(handle.pipeline, is_watched ? &watch : nullptr);
      return compressBy(handle, handle.pipeline, bytes, stream);
    } catch (const Error& error) {
      // Few missing values hide from the sample, but not from a watch, nor from stages that cannot
      // store them.
      if (error.code() != ErrorCode::kBoundViolation || !can_be_masked ||
          !hasAnyMissing(type, bytes, handle.fill)) {
        throw;
      }
    }
  }
  return compressBy(handle, maskedFor(handle, bytes), bytes, stream);
}

/// By one of the handle's pipelines, from device memory.
CompressedView compressBy(const fz_pipeline& handle,
                          Pipeline& pipeline,
                          const DeviceField& field,
                          ByteView bytes,
                          cudaStream_t stream) {
  const CompressedView frame = pipeline.compress(bytes.data(), bytes.size(), stream);
  if (handle.recipe.options.fill_check == FZ_FILL_CHECK) {
    field.requireRangeWithoutFill(pipeline);
  }
  return frame;
}

/// As compressHost(), for values that the host does not read.
CompressedView compressDevice(fz_pipeline& handle, ByteView bytes, cudaStream_t stream) {
  Pipeline& plain = handle.pipeline;
  const DataType type = handle.masked_type;
  if (type == DataType::UNKNOWN) {
    return plain.compress(bytes.data(), bytes.size(), stream);
  }
  const DeviceField field(handle.room, plain.getDevice(), type, bytes.data(), bytes.size(),
                          handle.fill, stream);
  if (!field.hasMissing()) {
    try {
      return compressBy(handle, plain, field, bytes, stream);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBoundViolation || !field.hasAnyMissing()) {
        throw;
      }
    }
  }
  Pipeline& masked =
      maskedFor(handle, maskSettingsFor(plain, [&] { return field.rangeOfValid(); }));
  return compressBy(handle, masked, field, bytes, stream);
}

/// The frame of these values, which lies in the memory of one of the handle's pipelines.
CompressedView compressValues(fz_pipeline& handle,
                              const void* values,
                              std::size_t n_bytes,
                              cudaStream_t stream) {
  const ByteView bytes(static_cast<const std::uint8_t*>(values), n_bytes);
  return handle.device_memory ? compressDevice(handle, bytes, stream)
                              : compressHost(handle, bytes, stream);
}

/// Length that the header announces.
std::uint64_t announcedBytes(fz_pipeline& handle, ByteView frame, cudaStream_t stream) {
  const ByteView front = frame.first(std::min(frame.size(), kMaxHeaderBytes));
  if (!handle.device_memory) {
    return readHeader(front, frame.size()).description.original_bytes;
  }
  std::vector<std::uint8_t> copy(front.size());
  PipelineAccess::copyAndWait(handle.pipeline, copy.data(), front.data(), copy.size(), stream);
  return readHeader(copy, frame.size()).description.original_bytes;
}

/// The same within the limits: a caller may take memory for what is asked of him.
std::size_t decodedBytes(fz_pipeline& handle, ByteView frame, cudaStream_t stream) {
  const std::uint64_t n_bytes = announcedBytes(handle, frame, stream);
  const std::uint64_t limit = handle.pipeline.getDecodeLimits().max_output_bytes;
  FZ_REQUIRE(limit == 0 || n_bytes <= limit, ErrorCode::kLimit,
             "frame: decodes to {} bytes, the limit is {}", n_bytes, limit);
  return n_bytes;
}

/// Into a buffer that is known to be large enough.
void decode(
    fz_pipeline& handle, ByteView frame, void* values, std::size_t capacity, cudaStream_t stream) {
  std::size_t n_bytes = 0;
  Pipeline& pipeline = handle.pipeline;
  if (pipeline.getBackend() == Backend::CUDA && !handle.device_memory) {
    void* decoded = nullptr;
    pipeline.decompress(frame.data(), frame.size(), &decoded, &n_bytes, stream);
    PipelineAccess::copyAndWait(pipeline, values, decoded, n_bytes, stream);
    return;
  }
  std::uint8_t nothing = 0;  // an empty result may have no buffer, and decompress() wants one
  pipeline.decompress(frame.data(), frame.size(), values != nullptr ? values : &nothing, capacity,
                      &n_bytes, stream);
}

}  // namespace

void* allocateResult(const fz_pipeline& handle, std::size_t n_bytes) {
  // Never of 0 bytes, so that an empty result is not NULL.
  const std::size_t n_taken = std::max<std::size_t>(n_bytes, 1);
  void* memory = nullptr;
  if (handle.allocator.allocate != nullptr) {
    memory = handle.allocator.allocate(n_taken, kResultAlignment, handle.allocator.context);
  } else {
    memory = fz::allocateOnHost(n_taken);
  }
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "cannot allocate {} bytes for the result",
             n_taken);
  return memory;
}

void releaseResult(const fz_pipeline& handle, void* memory, std::size_t n_bytes) noexcept {
  if (memory == nullptr) {
    return;
  }
  if (handle.allocator.release != nullptr) {
    handle.allocator.release(memory, std::max<std::size_t>(n_bytes, 1), handle.allocator.context);
  } else {
    std::free(memory);
  }
}

}  // namespace fz::c_api

namespace c_api = fz::c_api;

fz_status fz_compress_bound(const fz_pipeline* pipeline, size_t n_bytes, size_t* archive_bytes) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(archive_bytes);
    *archive_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    c_api::requireEncoder(*pipeline, who);
    const std::size_t plain = pipeline->pipeline.getMaxCompressedSize(n_bytes);
    *archive_bytes = pipeline->masked_type == fz::DataType::UNKNOWN
                         ? plain
                         : std::max(plain, c_api::maskedBound(*pipeline, n_bytes));
  });
}

fz_status fz_compress(fz_pipeline* pipeline,
                      const void* values,
                      size_t n_bytes,
                      void* archive,
                      size_t capacity,
                      size_t* archive_bytes,
                      void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(archive_bytes);
    *archive_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE(values != nullptr || n_bytes == 0, ErrorCode::kInvalidArgument, "{}: values is NULL",
               who);
    FZ_REQUIRE(archive != nullptr || capacity == 0, ErrorCode::kInvalidArgument,
               "{}: archive is NULL", who);
    c_api::requireEncoder(*pipeline, who);
    const cudaStream_t work = c_api::streamOf(stream);
    const fz::CompressedView frame = c_api::compressValues(*pipeline, values, n_bytes, work);
    if (frame.n_bytes > capacity) {
      *archive_bytes = frame.n_bytes;
      FZ_REQUIRE(false, ErrorCode::kBufferTooSmall,
                 "{}: the archive has {} bytes, the caller's buffer {}", who, frame.n_bytes,
                 capacity);
    }
    fz::PipelineAccess::copyAndWait(pipeline->pipeline, archive, frame.data, frame.n_bytes, work);
    *archive_bytes = frame.n_bytes;
  });
}

fz_status fz_compress_alloc(fz_pipeline* pipeline,
                            const void* values,
                            size_t n_bytes,
                            void** archive,
                            size_t* archive_bytes,
                            void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(archive);
    *archive = nullptr;
    FZ_REQUIRE_POINTER(archive_bytes);
    *archive_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE(values != nullptr || n_bytes == 0, ErrorCode::kInvalidArgument, "{}: values is NULL",
               who);
    c_api::requireEncoder(*pipeline, who);
    c_api::requireResultMemory(*pipeline, who);
    const cudaStream_t work = c_api::streamOf(stream);
    const fz::CompressedView frame = c_api::compressValues(*pipeline, values, n_bytes, work);
    void* memory = c_api::allocateResult(*pipeline, frame.n_bytes);
    try {
      fz::PipelineAccess::copyAndWait(pipeline->pipeline, memory, frame.data, frame.n_bytes, work);
    } catch (...) {
      c_api::releaseResult(*pipeline, memory, frame.n_bytes);
      throw;
    }
    *archive = memory;
    *archive_bytes = frame.n_bytes;
  });
}

fz_status fz_decompress(fz_pipeline* pipeline,
                        const void* archive,
                        size_t archive_bytes,
                        void* values,
                        size_t capacity,
                        size_t* n_bytes,
                        void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(n_bytes);
    *n_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(archive);
    FZ_REQUIRE(values != nullptr || capacity == 0, ErrorCode::kInvalidArgument,
               "{}: values is NULL", who);
    const fz::ByteView frame(static_cast<const std::uint8_t*>(archive), archive_bytes);
    const cudaStream_t work = c_api::streamOf(stream);
    const std::size_t needed = c_api::decodedBytes(*pipeline, frame, work);
    if (needed > capacity) {
      *n_bytes = needed;
      FZ_REQUIRE(false, ErrorCode::kBufferTooSmall,
                 "{}: the data have {} bytes, the caller's buffer {}", who, needed, capacity);
    }
    c_api::decode(*pipeline, frame, values, capacity, work);
    *n_bytes = needed;
  });
}

fz_status fz_decompress_alloc(fz_pipeline* pipeline,
                              const void* archive,
                              size_t archive_bytes,
                              void** values,
                              size_t* n_bytes,
                              void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(values);
    *values = nullptr;
    FZ_REQUIRE_POINTER(n_bytes);
    *n_bytes = 0;
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(archive);
    c_api::requireResultMemory(*pipeline, who);
    const fz::ByteView frame(static_cast<const std::uint8_t*>(archive), archive_bytes);
    const cudaStream_t work = c_api::streamOf(stream);
    // The length is only a claim until the frame is decoded, so the pipeline decodes into memory of
    // its own, which it takes after its checks and within its limits.
    void* decoded = nullptr;
    std::size_t n_decoded = 0;
    pipeline->pipeline.decompress(frame.data(), frame.size(), &decoded, &n_decoded, work);
    void* memory = c_api::allocateResult(*pipeline, n_decoded);
    try {
      fz::PipelineAccess::copyAndWait(pipeline->pipeline, memory, decoded, n_decoded, work);
    } catch (...) {
      c_api::releaseResult(*pipeline, memory, n_decoded);
      throw;
    }
    *values = memory;
    *n_bytes = n_decoded;
  });
}

void fz_release(const fz_pipeline* pipeline, void* memory, size_t n_bytes) {
  if (pipeline != nullptr) {
    fz::c_api::releaseResult(*pipeline, memory, n_bytes);
  }
}

fz_status fz_verify(fz_pipeline* pipeline,
                    const void* archive,
                    size_t archive_bytes,
                    void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(archive);
    void* decoded = nullptr;
    std::size_t n_bytes = 0;
    pipeline->pipeline.decompress(archive, archive_bytes, &decoded, &n_bytes,
                                  c_api::streamOf(stream));
  });
}
