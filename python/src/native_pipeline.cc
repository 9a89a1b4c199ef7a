#include "native_pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "archive.h"
#include "convert.h"
#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/stage_descriptor.h"
#include "fz/target.h"
#include "fz/tune.h"
#include "host_buffer.h"
#include "interruptible.h"
#include "stage_chain.h"

namespace fz::python {

namespace nb = nanobind;

CompressOptions optionsOf(const std::string& toml,
                          const std::string& source_name,
                          const PipelineSettings& settings) {
  CompressOptions options;
  options.preset = source_name;
  options.config_toml = toml;
  options.extents = settings.extents;
  options.params = settings.params;
  options.backend = settings.backend;
  options.threads = settings.threads;
  options.lossless_fallback = settings.lossless_fallback;
  options.fill = settings.fill;
  options.suspect_fill = settings.suspect_fill;
  return options;
}

namespace {

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

/// A bytes object of that length whose contents are still to be written.
nb::bytes emptyBytes(std::size_t n_bytes) {
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(n_bytes));
  if (made == nullptr) {
    throw nb::python_error();
  }
  return nb::steal<nb::bytes>(made);
}

std::uint8_t* contentsOf(const nb::bytes& bytes) {
  return reinterpret_cast<std::uint8_t*>(PyBytes_AsString(bytes.ptr()));
}

nb::bytes toBytes(ByteView view) {
  nb::bytes bytes = emptyBytes(view.size());
  const nb::gil_scoped_release release;
  if (!view.empty()) {
    std::memcpy(contentsOf(bytes), view.data(), view.size());
  }
  return bytes;
}

/// A pipeline knows three axes; what is beyond is written into its frames.
Frame shaped(const Frame& frame, const CompressOptions& options) {
  return options.extents ? withShape(frame, *options.extents) : frame;
}

/// Lets somebody look at a kept pipeline's next calls, and ask them to stop.
class ProgressScope {
 public:
  ProgressScope(Pipeline& pipeline, RunProgress& progress) : pipeline_(pipeline) {
    pipeline_.setProgress(&progress);
  }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
  ~ProgressScope() { pipeline_.setProgress(nullptr); }

 private:
  Pipeline& pipeline_;
};

/// By the kept pipeline, whose lock is held while the frame is used, or where values are missing by
/// one of its own.
Frame makeFrame(const NativePipeline& self, ByteView values, RunProgress& progress) {
  CompressOptions options = self.options();
  options.progress = &progress;
  if (!hasMissing(self.type(), values, options.fill)) {
    try {
      const ProgressScope scope(self.pipeline(), progress);
      const CompressedView view = self.pipeline().compress(values.data(), values.size());
      if (options.suspect_fill) {
        self.pipeline().requireRangeWithoutFill(values, options.fill);
      }
      const ByteView bytes{static_cast<const std::uint8_t*>(view.data), view.n_bytes};
      return shaped(Frame(nullptr, bytes), options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBoundViolation) {
        throw;
      }
    }
  }
  return fz::compress(self.type(), values, options);
}

void lockWithoutGil(std::unique_lock<std::mutex>& lock) {
  const nb::gil_scoped_release release;
  lock.lock();
}

/// The frame may stay in the pipeline while it is copied, so the lock stays too.
nb::bytes compress(const NativePipeline& self, nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  std::unique_lock<std::mutex> lock(self.session()->mutex, std::defer_lock);
  lockWithoutGil(lock);
  Frame frame;
  runInterruptibly(input.size(), [&](RunProgress& progress) {
    frame = makeFrame(self, input.bytes(), progress);
  });
  return toBytes(frame.bytes());
}

std::size_t compressInto(const NativePipeline& self, nb::handle values, nb::handle out) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  const HostBuffer output(out, HostBuffer::Access::kWrite);
  std::unique_lock<std::mutex> lock(self.session()->mutex, std::defer_lock);
  lockWithoutGil(lock);
  Frame frame;
  runInterruptibly(input.size(), [&](RunProgress& progress) {
    frame = makeFrame(self, input.bytes(), progress);
  });
  const nb::gil_scoped_release release;
  if (frame.size() > output.size()) {
    throw Error(ErrorCode::kBufferTooSmall, fmt::format("compress: the frame has {} bytes, out {}",
                                                        frame.size(), output.size()));
  }
  std::memcpy(output.writable().data(), frame.bytes().data(), frame.size());
  return frame.size();
}

/// Host arrays on another backend: the library makes the copies.
nb::bytes compressHost(const std::string& toml,
                       const std::string& source_name,
                       const PipelineSettings& settings,
                       nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  Frame frame;
  runInterruptibly(input.size(), [&](RunProgress& progress) {
    CompressOptions options = optionsOf(toml, source_name, settings);
    options.progress = &progress;
    frame = fz::compress(settings.input_type, input.bytes(), options);
  });
  return toBytes(frame.bytes());
}

/// The same frame with another shape of its array.
nb::bytes reshaped(nb::handle frame, AxisValues shape) {
  const HostBuffer bytes(frame, HostBuffer::Access::kRead);
  const AxisValues extents = extentsFrom(std::move(shape));
  return toBytes(withShape(Frame(nullptr, bytes.bytes()), extents).bytes());
}

/// The bound that reaches a target, and what it reaches.
std::pair<double, double> findBoundFor(const std::string& toml,
                                       const std::string& source_name,
                                       const PipelineSettings& settings,
                                       const std::string& kind,
                                       double value,
                                       nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  TargetBound found;
  runInterruptibly(input.size(), [&](RunProgress& progress) {
    CompressOptions options = optionsOf(toml, source_name, settings);
    options.progress = &progress;
    found = findBound(settings.input_type, input.bytes(), {targetKindFromName(kind).value(), value},
                      options);
  });
  return {found.absolute, found.reached};
}

/// What fz.find_settings() gives.
std::map<std::string, std::string> findSettingsFor(const std::string& toml,
                                                   const std::string& source_name,
                                                   const PipelineSettings& settings,
                                                   nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  FoundSettings found;
  runInterruptibly(input.size(), [&](RunProgress& progress) {
    CompressOptions options = optionsOf(toml, source_name, settings);
    options.progress = &progress;
    found = findSettings(settings.input_type, input.bytes(), options);
  });
  return {found.params.begin(), found.params.end()};
}

/// A guess at how much there is to decode, before the header is read.
constexpr std::size_t kUsualRatio = 8;

Bytes decompress(nb::handle source, const DecodeSettings& settings) {
  const HostBuffer frame(source, HostBuffer::Access::kRead);
  auto values = std::make_unique<Array>();
  runInterruptibly(frame.size() * kUsualRatio, [&](RunProgress& progress) {
    *values = fz::decompress(frame.bytes(), {.limits = settings.limits,
                                             .backend = settings.backend,
                                             .threads = settings.threads,
                                             .progress = &progress});
  });
  const ByteView bytes = values->bytes();
  const nb::capsule owner(values.release(),
                          [](void* array) noexcept { delete static_cast<Array*>(array); });
  // The array has no other owner, so that its values may be written to.
  return Bytes(const_cast<std::uint8_t*>(bytes.data()), {bytes.size()}, owner);
}

std::size_t decompressOnCpuInto(ByteView frame,
                                MutableByteView out,
                                const DecodeSettings& settings,
                                RunProgress& progress) {
  const std::shared_ptr<Session> session = decodingSession(settings);
  std::size_t n_bytes = 0;
  session->pipeline.setProgress(&progress);
  session->pipeline.decompress(frame.data(), frame.size(), out.data(), out.size(), &n_bytes);
  return n_bytes;
}

std::size_t decompressElsewhereInto(ByteView frame,
                                    MutableByteView out,
                                    const DecodeSettings& settings,
                                    RunProgress& progress) {
  const auto provide = [&](std::size_t n_bytes) -> void* {
    if (n_bytes > out.size()) {
      throw Error(ErrorCode::kBufferTooSmall, "decompress: the data have " +
                                                  std::to_string(n_bytes) + " bytes, out " +
                                                  std::to_string(out.size()));
    }
    return out.data();
  };
  return fz::decompressInto(frame, provide,
                            {.limits = settings.limits,
                             .backend = settings.backend,
                             .threads = settings.threads,
                             .progress = &progress});
}

std::size_t decompressInto(nb::handle frame, nb::handle out, const DecodeSettings& settings) {
  const HostBuffer bytes(frame, HostBuffer::Access::kRead);
  const HostBuffer output(out, HostBuffer::Access::kWrite);
  const auto decode =
      settings.backend == Backend::CPU ? decompressOnCpuInto : decompressElsewhereInto;
  std::size_t n_bytes = 0;
  runInterruptibly(output.size(), [&](RunProgress& progress) {
    n_bytes = decode(bytes.bytes(), output.writable(), settings, progress);
  });
  return n_bytes;
}

PipelineSettings settingsOf(const std::string& input_type,
                            std::optional<AxisValues> shape,
                            std::vector<std::pair<std::string, std::string>> params,
                            const std::string& backend,
                            std::size_t threads,
                            bool lossless_fallback,
                            const std::optional<std::vector<double>>& fill) {
  if (shape) {
    shape = extentsFrom(std::move(*shape));
  }
  return {typeFromText(input_type),
          std::move(shape),
          std::move(params),
          backendFromText(backend),
          threads,
          lossless_fallback,
          fill.value_or(std::vector<double>{}),
          fill.has_value()};
}

StageRequest requestOf(nb::handle row) {
  StageRequest request;
  request.type = nb::cast<std::string>(row[0]);
  request.name = nb::cast<std::string>(row[1]);
  request.inputs =
      nb::cast<std::optional<std::vector<std::pair<std::string, std::string>>>>(row[2]);
  for (const auto& [key, value] : nb::cast<nb::dict>(row[3])) {
    request.settings.emplace_back(nb::cast<std::string>(key), paramFromPython(value));
  }
  return request;
}

}  // namespace

NativePipeline::NativePipeline(const std::string& toml,
                               const std::string& source_name,
                               const PipelineSettings& settings)
    : options_(optionsOf(toml, source_name, settings)),
      type_(settings.input_type),
      session_(std::make_shared<Session>()) {
  configure(pipeline(), type_, options_);
}

DeviceCompressor& NativePipeline::deviceCompressor() const {
  if (device_compressor_ == nullptr) {
    device_compressor_ = std::make_unique<DeviceCompressor>(pipeline(), type_, options_);
  }
  return *device_compressor_;
}

std::shared_ptr<Session> decodingSession(const DecodeSettings& settings) {
  auto session = std::make_shared<Session>();
  Pipeline& pipeline = session->pipeline;
  pipeline.setBackend(settings.backend);
  pipeline.setThreads(settings.threads);
  pipeline.setDecodeLimits(settings.limits);
  // Any stage will do: a frame brings its own.
  const StageDescriptor& any = *allStages().front();
  pipeline.addStage(any.make(defaultTypes(any)));
  pipeline.finalize();
  return session;
}

void bindPipeline(nb::module_& module) {
  nb::class_<PipelineSettings>(module, "PipelineSettings")
      .def("__init__", [](PipelineSettings* self, const std::string& input_type,
                          std::optional<AxisValues> shape,
                          std::vector<std::pair<std::string, std::string>> params,
                          const std::string& backend, std::size_t threads, bool lossless_fallback,
                          const std::optional<std::vector<double>>& fill) {
        new (self) PipelineSettings(settingsOf(input_type, std::move(shape), std::move(params),
                                               backend, threads, lossless_fallback, fill));
      });
  nb::class_<DecodeSettings>(module, "DecodeSettings")
      .def("__init__", [](DecodeSettings* self, std::uint64_t max_output_bytes,
                          std::uint64_t max_memory_bytes, const std::string& backend,
                          std::size_t threads) {
        new (self)
            DecodeSettings{{max_output_bytes, max_memory_bytes}, backendFromText(backend), threads};
      });
  nb::class_<NativePipeline>(module, "NativePipeline")
      .def(nb::init<const std::string&, const std::string&, const PipelineSettings&>(),
           nb::call_guard<nb::gil_scoped_release>())
      .def("compress", &compress)
      .def("compress_into", &compressInto)
      .def("max_compressed_bytes",
           [](const NativePipeline& self, std::size_t n_bytes) {
             return std::max(self.pipeline().getMaxCompressedSize(n_bytes),
                             compressBound(self.type(), n_bytes, self.options()));
           })
      .def("explain", [](const NativePipeline& self) { return self.pipeline().explain(); })
      .def("toml", [](const NativePipeline& self) { return self.pipeline().saveConfigText(); });
  module.def("compress_host", &compressHost);
  module.def("with_shape", &reshaped);
  module.def("find_bound", &findBoundFor);
  module.def("find_settings", &findSettingsFor);
  module.def("decompress", &decompress);
  module.def("decompress_into", &decompressInto);
  module.def("release_host_memory", &releaseHostMemory, nb::call_guard<nb::gil_scoped_release>());
  module.def("stages_to_toml", [](const nb::list& rows, const std::string& input_type) {
    std::vector<StageRequest> requests;
    for (const nb::handle row : rows) {
      requests.push_back(requestOf(row));
    }
    return stagesToToml(requests, typeFromText(input_type));
  });
  module.def("backend_available", [](const std::string& backend) {
    return isBackendAvailable(backendFromText(backend));
  });
}

}  // namespace fz::python
