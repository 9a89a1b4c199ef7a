#include "batch.h"

#include <cstring>
#include <deque>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "archive.h"
#include "errors.h"
#include "fz/batch.h"
#include "host_buffer.h"
#include "interruptible.h"
#include "native_pipeline.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

using BatchBytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

/// The buffers of all objects in a list.
class HostBuffers {
 public:
  explicit HostBuffers(const nb::list& objects) {
    for (const nb::handle object : objects) {
      buffers_.emplace_back(object, HostBuffer::Access::kRead);
      n_bytes_ += buffers_.back().size();
    }
  }
  std::size_t count() const { return buffers_.size(); }
  ByteView at(std::size_t i) const { return buffers_[i].bytes(); }
  std::size_t bytes() const { return n_bytes_; }

 private:
  std::deque<HostBuffer> buffers_;
  std::size_t n_bytes_ = 0;
};

nb::object bytesOf(const Frame& frame) {
  return nb::bytes(reinterpret_cast<const char*>(frame.bytes().data()), frame.size());
}

nb::object valuesOf(Array&& decoded) {
  auto values = std::make_unique<Array>(std::move(decoded));
  const ByteView bytes = values->bytes();
  const nb::capsule owner(values.release(),
                          [](void* array) noexcept { delete static_cast<Array*>(array); });
  // The array has no other owner, so that its values may be written to.
  return nb::cast(BatchBytes(const_cast<std::uint8_t*>(bytes.data()), {bytes.size()}, owner));
}

/// One object for each field: what was made, or the exception.
template <class T, class Convert>
nb::list listOf(std::vector<BatchResult<T>>& results, const Convert& convert) {
  nb::list made;
  for (BatchResult<T>& result : results) {
    made.append(result.isDone() ? convert(std::move(result.value)) : errorObject(result.error));
  }
  return made;
}

nb::list compressAll(const std::string& toml,
                     const std::string& source_name,
                     const PipelineSettings& settings,
                     const nb::list& values,
                     std::vector<AxisValues> shapes) {
  const HostBuffers buffers(values);
  std::vector<BatchField> fields;
  for (std::size_t i = 0; i < buffers.count(); ++i) {
    fields.push_back({settings.input_type, buffers.at(i), extentsFrom(std::move(shapes.at(i)))});
  }
  std::vector<BatchResult<Frame>> made;
  runInterruptibly(buffers.bytes(), [&](RunProgress& progress) {
    CompressOptions options = optionsOf(toml, source_name, settings);
    options.progress = &progress;
    made = compressBatch(fields, options);
  });
  return listOf(made, [](Frame&& frame) { return bytesOf(frame); });
}

nb::list decompressAll(const nb::list& frames, const DecodeSettings& settings) {
  const HostBuffers buffers(frames);
  std::vector<ByteView> views;
  for (std::size_t i = 0; i < buffers.count(); ++i) {
    views.push_back(buffers.at(i));
  }
  std::vector<BatchResult<Array>> decoded;
  runInterruptibly(8 * buffers.bytes(), [&](RunProgress& progress) {
    decoded = decompressBatch(views, {.limits = settings.limits,
                                      .backend = settings.backend,
                                      .threads = settings.threads,
                                      .progress = &progress});
  });
  return listOf(decoded, [](Array&& array) { return valuesOf(std::move(array)); });
}

}  // namespace

void bindBatch(nb::module_& module) {
  module.def("compress_batch", &compressAll);
  module.def("decompress_batch", &decompressAll);
}

}  // namespace fz::python
