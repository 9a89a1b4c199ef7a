// Arrays in device memory to frames.
#include "fz/device_api.h"

#include <algorithm>
#include <new>

#include "api/device_field.h"
#include "api/host_run.h"
#include "api/missing_values.h"
#include "fz/params.h"

namespace fz {

namespace {

/// Whether a value of this type can be lost, and what it is matters.
bool mustLook(const Pipeline& pipeline, DataType type) {
  const auto stages = pipeline.getStages();
  return (type == DataType::FLOAT32 || type == DataType::FLOAT64) &&
         std::any_of(stages.begin(), stages.end(),
                     [](const Stage* stage) { return stage->boundInfo().has_value(); });
}

}  // namespace

struct DeviceCompressor::Impl {
  Impl(Pipeline& pipeline, DataType field_type, const CompressOptions& how)
      : plain(pipeline),
        type(field_type),
        options(how),
        can_be_masked(canBeMasked(pipeline, field_type)),
        is_looked_at(mustLook(pipeline, field_type) || can_be_masked) {}

  Pipeline& plain;
  DataType type;
  CompressOptions options;
  bool can_be_masked;
  bool is_looked_at;
  DeviceField::Room room;
  MaskSettings settings;
  std::unique_ptr<Pipeline> masked;  ///< made for the first field with missing values

  Pipeline& maskedFor(const DeviceField& field);
  CompressedView runOn(Pipeline& pipeline,
                       const DeviceField& field,
                       const void* values,
                       std::size_t n_bytes,
                       cudaStream_t stream) const;
};

DeviceCompressor::DeviceCompressor(Pipeline& pipeline,
                                   DataType type,
                                   const CompressOptions& options)
    : impl_(std::make_unique<Impl>(pipeline, type, options)) {
}

DeviceCompressor::~DeviceCompressor() = default;

Pipeline& DeviceCompressor::Impl::maskedFor(const DeviceField& field) {
  const MaskSettings needed = maskSettingsFor(plain, [&] { return field.rangeOfValid(); });
  if (masked == nullptr || settings != needed) {
    masked.reset();
    auto made = std::make_unique<Pipeline>();
    loadUnfinalized(*made, type, options);
    made->setDevice(plain.getDevice());
    addMask(*made, type, options.fill, needed);
    made->finalize();
    settings = needed;
    masked = std::move(made);
  }
  return *masked;
}

CompressedView DeviceCompressor::Impl::runOn(Pipeline& pipeline,
                                             const DeviceField& field,
                                             const void* values,
                                             std::size_t n_bytes,
                                             cudaStream_t stream) const {
  const CompressedView frame = pipeline.compress(values, n_bytes, stream);
  if (options.suspect_fill) {
    field.requireRangeWithoutFill(pipeline);
  }
  return frame;
}

CompressedView DeviceCompressor::compress(const void* values,
                                          std::size_t n_bytes,
                                          cudaStream_t stream) try {
  Impl& impl = *impl_;
  if (!impl.is_looked_at) {
    return impl.plain.compress(values, n_bytes, stream);
  }
  const DeviceField field(impl.room, impl.plain.getDevice(), impl.type, values, n_bytes,
                          impl.options.fill, stream);
  if (!impl.can_be_masked || !field.hasMissing()) {
    try {
      return impl.runOn(impl.plain, field, values, n_bytes, stream);
    } catch (const Error& error) {
      // Few missing values hide from the sample, but not from stages that cannot store them.
      if (error.code() != ErrorCode::kBoundViolation || !impl.can_be_masked ||
          !field.hasAnyMissing()) {
        throw;
      }
    }
  }
  return impl.runOn(impl.maskedFor(field), field, values, n_bytes, stream);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
