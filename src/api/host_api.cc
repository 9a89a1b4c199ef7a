#include "fz/host_api.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "api/host_run.h"
#include "api/kept_pipelines.h"
#include "api/result_memory.h"
#include "core/require.h"
#include "format/file_io.h"
#include "format/frame_header.h"
#include "fz/stage_descriptor.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_access.h"
#include "stage/stage_factory.h"

namespace fz {

namespace {

void setUp(Pipeline& pipeline, const FrameInfo& info, const DecompressOptions& options) {
  FZ_REQUIRE(options.limits.max_output_bytes == 0 ||
                 info.original_bytes <= options.limits.max_output_bytes,
             ErrorCode::kLimit, "frame: decodes to {} bytes, the limit is {}", info.original_bytes,
             options.limits.max_output_bytes);
  pipeline.setBackend(options.backend);
  pipeline.setThreads(options.threads);
  pipeline.setDecodeLimits(options.limits);
  pipeline.setProgress(options.progress);
}

}  // namespace

Frame::Frame(std::vector<std::uint8_t> bytes) try {
  const auto owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  bytes_ = *owned;
  owner_ = owned;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

Array::Array(DataType type, std::array<std::size_t, 3> dims, std::vector<std::uint8_t> bytes) try
    : type_(type), dims_(dims) {
  const auto owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  bytes_ = *owned;
  owner_ = owned;
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Frame::writeToFile(const std::string& path) const try {
  writeFileAtomically(path, bytes_);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
Frame Frame::readFromFile(const std::string& path) try {
  return Frame(readFile(path));
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Array::requireType(DataType type) const {
  FZ_REQUIRE(type == type_, ErrorCode::kTypeMismatch, "Array: holds {}, not {}",
             dataTypeToString(type_), dataTypeToString(type));
}

double FrameInfo::ratio() const {
  return static_cast<double>(original_bytes) / static_cast<double>(frameBytes());
}

Frame compress(std::span<const float> values, const CompressOptions& options) {
  return compress(DataType::FLOAT32,
                  {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()},
                  options);
}

Frame compress(std::span<const double> values, const CompressOptions& options) {
  return compress(DataType::FLOAT64,
                  {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()},
                  options);
}

Array decompress(ByteView frame, const DecompressOptions& options) {
  return HostDecompression(frame).array(options);
}

std::size_t decompressInto(ByteView frame,
                           const std::function<void*(std::size_t)>& provide,
                           const DecompressOptions& options) {
  return HostDecompression(frame).into(provide, options);
}

namespace {

/// Stage configs keep the bound as a float; the description has the number the user gave.
void restoreBound(const FrameDescription& description, FrameStageInfo& row) {
  for (auto& [key, value] : row.params) {
    if (description.bound && key == "error_bound" &&
        static_cast<float>(std::get<double>(value)) ==
            static_cast<float>(description.bound->requested)) {
      value = description.bound->requested;
    }
  }
}

void describeShape(const FrameDescription& description, FrameInfo& info) {
  info.type = description.type;
  info.ndim = description.ndim;
  std::copy_n(description.dims.begin(), 3, info.dims.begin());
  const auto axesOf = [&](const auto& values) {
    return AxisValues(values.begin(), values.begin() + description.shape.n_axes);
  };
  info.extents = axesOf(description.shape.extents);
  if (description.place) {
    info.place = PlaceInfo{description.place->array_id, axesOf(description.place->origin),
                           axesOf(description.place->whole)};
  }
}

}  // namespace

FrameInfo describeFrame(const FrameHeader& header) {
  FrameInfo info;
  info.version_major = header.major();
  info.version_minor = header.minor();
  info.original_bytes = header.description.original_bytes;
  info.header_bytes = header.core.header_size;
  info.payload_bytes = header.core.compressed_size;
  info.bound = header.description.bound;
  info.lossless = true;
  info.has_checksums = header.minor() > 0;
  info.payload_checksum = header.core.data_checksum;
  info.header_checksum = header.core.header_checksum;
  for (const FZMStageInfo& record : header.stages) {
    const auto stage = makeStage(record.stage_type, record.stage_config.data(), record.config_size,
                                 record.stage_version);
    FrameStageInfo row{
        record.stage_type, record.stage_version, stage->getName(), stage->elementTypes(), {}};
    for (const Param& param : stage->paramTable().rows()) {
      row.params.emplace_back(param.key, param.get(*stage));
    }
    restoreBound(header.description, row);
    info.lossless = info.lossless && !stage->boundInfo().has_value();
    info.missing = info.missing ? info.missing : stage->missingInfo();
    if (info.stages.empty()) {
      // Older frames name neither type nor shape; the first stage knows the type.
      info.type = static_cast<DataType>(stage->getInputDataType(0));
    }
    info.stages.push_back(std::move(row));
  }
  for (const FZMBufferEntry& record : header.buffers) {
    info.segments.push_back({stageTypeToString(static_cast<StageType>(record.stage_type)),
                             std::string(record.name.data()),
                             static_cast<DataType>(record.data_type), record.data_size});
  }
  if (header.minor() >= 2) {
    describeShape(header.description, info);
  } else {
    info.dims = {
        isKnown(info.type) ? info.original_bytes / getDataTypeSize(info.type) : info.original_bytes,
        1, 1};
    info.extents = {info.dims[0]};
  }
  return info;
}

HostDecompression::HostDecompression(ByteView frame) try
    : frame_(frame),
      header_(std::make_unique<FrameHeader>(readHeader(frame, frame.size()))),
      info_(describeFrame(*header_)) {
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}
HostDecompression::~HostDecompression() = default;

Array HostDecompression::on(Pipeline& pipeline, const DecompressOptions& options) {
  std::shared_ptr<std::uint8_t> values = makeResultMemory(0);
  const std::size_t n_bytes = into(
      pipeline,
      [&](std::size_t n) {
        values.reset();
        values = makeResultMemory(n);
        return values.get();
      },
      options);
  return Array(info_.type, info_.dims, values, {values.get(), n_bytes});
}

namespace {

/// Calls run with a pipeline that is kept for the next call, where that is worth it.
template <class F>
auto withKept(const DecompressOptions& options, F&& run) {
  const char* const wish = std::getenv("FZ_BACKEND");
  KeptPipeline kept(fmt::format("decompress {} {} {}", static_cast<int>(options.backend),
                                options.threads, wish == nullptr ? "" : wish),
                    options.backend);
  if (kept.get() == nullptr) {
    kept.put(std::make_shared<Pipeline>());
  }
  auto result = run(*kept.get());
  kept.keep();
  return result;
}

}  // namespace

std::string HostDecompression::stageNames() const {
  std::string names;
  for (const FrameStageInfo& stage : info_.stages) {
    names += stage.name + ' ';
  }
  return names;
}

BackendChoice HostDecompression::backendFor(const DecompressOptions& options) const {
  if (options.backend != Backend::Auto) {
    return {options.backend, "asked for"};
  }
  return chooseToDecompress({info_.original_bytes, options.threads, chainCostOf(stageNames())});
}

Array HostDecompression::array(const DecompressOptions& options) try {
  DecompressOptions how = options;
  how.backend = backendFor(options).backend;
  return withKept(how, [&](Pipeline& pipeline) { return on(pipeline, how); });
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t HostDecompression::into(const std::function<void*(std::size_t)>& provide,
                                    const DecompressOptions& options) try {
  DecompressOptions how = options;
  how.backend = backendFor(options).backend;
  return withKept(how, [&](Pipeline& pipeline) { return into(pipeline, provide, how); });
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t HostDecompression::into(Pipeline& pipeline,
                                    const std::function<void*(std::size_t)>& provide,
                                    const DecompressOptions& options) try {
  DecompressOptions how = options;
  if (pipeline.getBackend() == Backend::Auto) {  // else it has run, and stays where it is
    how.backend = backendFor(options).backend;
  }
  setUp(pipeline, info_, how);
  return PipelineAccess::decompressFrame(
      pipeline, {frame_, header_.get(), PipelineAccess::ownStream(pipeline)}, provide);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

FrameInfo inspect(ByteView frame) try {
  return describeFrame(readHeader(frame, frame.size()));
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

FrameInfo inspectFile(const std::string& path) try {
  std::uint64_t total_bytes = 0;
  const std::vector<std::uint8_t> front = readFileFront(path, kMaxHeaderBytes, &total_bytes);
  return describeFrame(readHeader(front, total_bytes));
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
