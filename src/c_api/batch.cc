// Many arrays in one call.
#include <cstring>

#include "backends/cuda/device_guard.h"
#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/versioned.h"
#include "fz_batch.h"

using fz::ErrorCode;
using fz::c_api::guarded;

namespace fz::c_api {

namespace {

/// The caller's arrays, one entry for each field.
struct BatchArrays : fz_batch {
  /// Nothing is done yet. Throws Error(kInvalidArgument) for a missing array.
  BatchArrays(const fz_batch& given, const char* who)
      : fz_batch(readVersioned(given, sizeof(fz_batch), "fz_batch")) {
    FZ_REQUIRE(
        n_fields == 0 || (inputs != nullptr && input_bytes != nullptr && outputs != nullptr &&
                          capacities != nullptr && output_bytes != nullptr && statuses != nullptr),
        ErrorCode::kInvalidArgument, "{}: an array of the batch is NULL", who);
    for (std::size_t i = 0; i < n_fields; ++i) {
      output_bytes[i] = 0;
      statuses[i] = FZ_ERROR_INVALID_STATE;
    }
  }
  ByteView input(std::size_t i) const {
    return {static_cast<const std::uint8_t*>(inputs[i]), input_bytes[i]};
  }
  /// Of the first field that failed, else a null pointer.
  void end(const std::exception_ptr& first_error) const {
    if (first_error != nullptr) {
      std::rethrow_exception(first_error);
    }
  }
};

/// Records how a field went.
void take(const BatchArrays& batch,
          std::size_t i,
          const std::exception_ptr& error,
          std::exception_ptr& first_error) {
  batch.statuses[i] = error == nullptr ? FZ_OK : static_cast<fz_status>(errorCodeOf(error)) + 1;
  if (first_error == nullptr) {
    first_error = error;
  }
}

DataType typeOf(const fz_pipeline& handle) {
  return isKnown(handle.masked_type) ? handle.masked_type : handle.recipe.overrides.input_type;
}

/// What the handle's recipe means to compress().
CompressOptions wholeOptionsOf(const fz_pipeline& handle) {
  CompressOptions options = compressOptionsOf(handle);
  options.params = handle.recipe.overrides.params;
  return options;
}

void compressHostBatch(const fz_pipeline& handle, const BatchArrays& batch, const char* who) {
  std::vector<BatchField> fields;
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    fields.push_back({typeOf(handle), batch.input(i), std::nullopt});
  }
  CompressOptions options = wholeOptionsOf(handle);
  options.backend = handle.pipeline.getBackend();
  std::exception_ptr first_error;
  std::vector<BatchResult<Frame>> made = compressBatch(fields, options);
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    std::exception_ptr error = made[i].error;
    if (error == nullptr) {
      const ByteView frame = made[i].value.bytes();
      batch.output_bytes[i] = frame.size();
      if (frame.size() > batch.capacities[i]) {
        error = std::make_exception_ptr(
            Error(ErrorCode::kBufferTooSmall,
                  fmt::format("{}: the archive of field {} has {} bytes, the caller's buffer {}",
                              who, i, frame.size(), batch.capacities[i])));
      } else {
        std::memcpy(batch.outputs[i], frame.data(), frame.size());
      }
    }
    take(batch, i, error, first_error);
  }
  batch.end(first_error);
}

void decompressHostBatch(const fz_pipeline& handle, const BatchArrays& batch, const char* who) {
  std::vector<ByteView> frames;
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    frames.push_back(batch.input(i));
  }
  const auto memory = [&](std::size_t i, std::size_t n_bytes) -> void* {
    batch.output_bytes[i] = n_bytes;
    FZ_REQUIRE(n_bytes <= batch.capacities[i], ErrorCode::kBufferTooSmall,
               "{}: the data of archive {} have {} bytes, the caller's buffer {}", who, i, n_bytes,
               batch.capacities[i]);
    static std::uint8_t nothing = 0;  // an empty result may have no buffer
    return n_bytes == 0 ? &nothing : batch.outputs[i];
  };
  const auto decoded = decompressBatchInto(frames, memory,
                                           {.limits = handle.pipeline.getDecodeLimits(),
                                            .backend = handle.pipeline.getBackend(),
                                            .threads = handle.recipe.options.n_threads});
  std::exception_ptr first_error;
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    take(batch, i, decoded[i].error, first_error);
    const bool is_short = batch.statuses[i] == FZ_ERROR_BUFFER_TOO_SMALL;
    batch.output_bytes[i] = decoded[i].isDone() || is_short ? batch.output_bytes[i] : 0;
  }
  batch.end(first_error);
}

DeviceBatch& deviceBatchOf(fz_pipeline& handle) {
  if (handle.batch == nullptr) {
    CompressOptions options = wholeOptionsOf(handle);
    if (!handle.can_compress || handle.needs_bound) {  // it decodes whatever it was made of
      options = {};
      options.preset = "lossless";
    }
    handle.batch = std::make_unique<DeviceBatch>(
        isKnown(typeOf(handle)) ? typeOf(handle) : DataType::UINT8, options);
  }
  handle.batch->setDecodeLimits(handle.pipeline.getDecodeLimits());
  return *handle.batch;
}

void takeDeviceResults(const BatchArrays& batch,
                       const std::vector<FieldResult>& results,
                       const char* who) {
  std::exception_ptr first_error;
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    batch.output_bytes[i] = results[i].n_bytes;
    batch.statuses[i] = results[i].status;
    if (results[i].status != FZ_OK && first_error == nullptr) {
      const auto code = static_cast<ErrorCode>(results[i].status - 1);
      first_error = std::make_exception_ptr(
          Error(code, fmt::format("{}: field {}: {}", who, i, errorCodeName(code))));
    }
  }
  batch.end(first_error);
}

std::vector<DeviceRoom> roomsOf(const BatchArrays& batch) {
  std::vector<DeviceRoom> rooms;
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    rooms.push_back({batch.outputs[i], batch.capacities[i]});
  }
  return rooms;
}

void compressDeviceBatch(fz_pipeline& handle,
                         const BatchArrays& batch,
                         const char* who,
                         cudaStream_t stream) {
  for (std::size_t i = 1; i < batch.n_fields; ++i) {
    FZ_REQUIRE(batch.input_bytes[i] == batch.input_bytes[0], ErrorCode::kInvalidArgument,
               "{}: field {} has {} bytes, the first one {}; in device memory all have the same "
               "length",
               who, i, batch.input_bytes[i], batch.input_bytes[0]);
  }
  std::vector<FieldResult> results(batch.n_fields);
  const cuda::DeviceGuard guard(handle.pipeline.getDevice());
  deviceBatchOf(handle).compress({batch.inputs, batch.n_fields},
                                 batch.n_fields == 0 ? 0 : batch.input_bytes[0], roomsOf(batch),
                                 results.data(), stream);
  takeDeviceResults(batch, results, who);
}

void decompressDeviceBatch(fz_pipeline& handle,
                           const BatchArrays& batch,
                           const char* who,
                           cudaStream_t stream) {
  std::vector<DeviceBytes> frames;
  for (std::size_t i = 0; i < batch.n_fields; ++i) {
    frames.push_back({batch.inputs[i], batch.input_bytes[i]});
  }
  std::vector<FieldResult> results(batch.n_fields);
  const cuda::DeviceGuard guard(handle.pipeline.getDevice());
  deviceBatchOf(handle).decompress(frames, roomsOf(batch), results.data(), stream);
  takeDeviceResults(batch, results, who);
}

}  // namespace
}  // namespace fz::c_api

fz_status fz_compress_batch(fz_pipeline* pipeline, const fz_batch* batch, void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(batch);
    const fz::c_api::BatchArrays arrays(*batch, who);
    fz::c_api::requireEncoder(*pipeline, who);
    if (pipeline->device_memory) {
      fz::c_api::compressDeviceBatch(*pipeline, arrays, who, static_cast<cudaStream_t>(stream));
    } else {
      fz::c_api::compressHostBatch(*pipeline, arrays, who);
    }
  });
}

fz_status fz_decompress_batch(fz_pipeline* pipeline, const fz_batch* batch, void* stream) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(batch);
    const fz::c_api::BatchArrays arrays(*batch, who);
    if (pipeline->device_memory) {
      fz::c_api::decompressDeviceBatch(*pipeline, arrays, who, static_cast<cudaStream_t>(stream));
    } else {
      fz::c_api::decompressHostBatch(*pipeline, arrays, who);
    }
  });
}
