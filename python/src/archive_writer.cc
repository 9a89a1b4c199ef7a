// Archives of chunks: the writer, and the range that it may need.
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "archive.h"
#include "convert.h"
#include "fz/archive.h"
#include "fz/error.h"
#include "fz/target.h"
#include "host_buffer.h"
#include "native_pipeline.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

using Bound = std::pair<std::string, double>;  // the name of a mode, and the number
using Range = std::pair<double, double>;

/// Several threads may hold on to the writer while another gives it up.
class NativeWriter {
 public:
  NativeWriter(const CompressOptions& compress,
               DataType type,
               std::optional<AxisValues> chunks,
               const std::optional<Range>& range,
               const std::string& path,
               bool replace,
               bool verify) {
    ArchiveOptions options;
    options.verify = verify;
    options.compress = compress;
    options.extents = compress.extents.value_or(AxisValues{});
    options.compress.extents.reset();
    if (chunks) {
      options.chunk = extentsFrom(std::move(*chunks));
    }
    if (range) {
      options.range = ValueRange{range->first, range->second};
    }
    writer_ = std::make_shared<ArchiveWriter>(type, options, path, replace);
  }

  std::shared_ptr<ArchiveWriter> open() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (writer_ == nullptr) {
      throw Error(ErrorCode::kInvalidState, "the archive is closed");
    }
    return writer_;
  }
  /// What is not finished is gone with the last call that is under way.
  void discard() {
    const std::lock_guard<std::mutex> lock(mutex_);
    writer_.reset();
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<ArchiveWriter> writer_;
};

void makeWriter(NativeWriter* self,
                const std::string& toml,
                const std::string& source_name,
                const PipelineSettings& settings,
                const std::optional<Bound>& bound,
                std::optional<AxisValues> chunks,
                const std::optional<Range>& range,
                const std::string& path,
                bool replace,
                bool verify) {
  const nb::gil_scoped_release release;
  CompressOptions compress = optionsOf(toml, source_name, settings);
  if (bound) {
    compress.mode = errorBoundModeFromName(bound->first);
    compress.error_bound = bound->second;
  }
  new (self)
      NativeWriter(compress, settings.input_type, std::move(chunks), range, path, replace, verify);
}

/// The bound with which an archive of an array reaches a target.
double findArchiveBound(const std::string& toml,
                        const std::string& source_name,
                        const PipelineSettings& settings,
                        std::optional<AxisValues> chunks,
                        const std::string& kind,
                        double value,
                        nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  const nb::gil_scoped_release release;
  ArchiveOptions options;
  options.compress = optionsOf(toml, source_name, settings);
  options.extents = options.compress.extents.value_or(AxisValues{});
  options.compress.extents.reset();
  if (chunks) {
    options.chunk = extentsFrom(std::move(*chunks));
  }
  const ResultTarget target{targetKindFromName(kind).value(), value};
  return findBound(settings.input_type, input.bytes(), target, options).absolute;
}

void append(const NativeWriter& self, nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  const nb::gil_scoped_release release;
  self.open()->append(input.bytes());
}

void put(const NativeWriter& self, std::uint64_t chunk, nb::handle values) {
  const HostBuffer input(values, HostBuffer::Access::kRead);
  const nb::gil_scoped_release release;
  self.open()->put(chunk, input.bytes());
}

std::uint64_t finish(NativeWriter& self) {
  const nb::gil_scoped_release release;
  const std::uint64_t n_bytes = self.open()->finish();
  self.discard();
  return n_bytes;
}

std::optional<Range> rangeOf(const RangeScan& scan) {
  const std::optional<ValueRange> found = scan.range();
  return found ? std::optional<Range>({found->low, found->high}) : std::nullopt;
}

}  // namespace

void bindArchiveWriter(nb::module_& module) {
  module.def("find_archive_bound", &findArchiveBound);
  nb::class_<NativeWriter>(module, "NativeWriter")
      .def("__init__", &makeWriter)
      .def("chunks",
           [](const NativeWriter& self) { return shapeToPython(self.open()->chunkExtents()); })
      .def("chunk_count", [](const NativeWriter& self) { return self.open()->chunkCount(); })
      .def("chunk_box",
           [](const NativeWriter& self, std::uint64_t chunk) {
             const Box box = self.open()->chunkBox(chunk);
             return nb::make_tuple(shapeToPython(box.origin), shapeToPython(box.extents));
           })
      .def("append", &append)
      .def("put", &put)
      .def("finish", &finish)
      .def("discard", &NativeWriter::discard);
  nb::class_<RangeScan>(module, "RangeScan")
      .def("__init__",
           [](RangeScan* self, const std::string& type, const std::vector<double>& fill,
              std::size_t threads) { new (self) RangeScan(typeFromText(type), fill, threads); })
      .def("add",
           [](RangeScan& self, nb::handle values) {
             const HostBuffer input(values, HostBuffer::Access::kRead);
             const nb::gil_scoped_release release;
             self.add(input.bytes());
           })
      .def("require_without_fill", &RangeScan::requireWithoutFill)
      .def("range", &rangeOf);
}

}  // namespace fz::python
