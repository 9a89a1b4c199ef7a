// Archives of chunks: sources, readers, recovery.
#include "archive.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "convert.h"
#include "fz/archive.h"
#include "fz/error.h"
#include "host_buffer.h"
#include "native_pipeline.h"

namespace fz::python {

namespace nb = nanobind;

nb::tuple shapeToPython(const AxisValues& extents) {
  nb::list shape;
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
    shape.append(*extent);
  }
  return nb::tuple(shape);
}

AxisValues extentsFrom(AxisValues shape) {
  std::reverse(shape.begin(), shape.end());
  return shape;
}

namespace {

/// An object with a buffer.
class BufferSource : public ByteSource {
 public:
  explicit BufferSource(nb::handle object)
      : buffer_(object, HostBuffer::Access::kRead), memory_(sourceOf(buffer_.bytes())) {}
  std::uint64_t size() const override { return memory_->size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    memory_->read(offset, out);
  }

 private:
  HostBuffer buffer_;
  std::shared_ptr<const ByteSource> memory_;
};

/// Looks for signals between reads, so that Ctrl-C need not wait for the last chunk. Only the main
/// thread is told of them.
class WatchedSource : public ByteSource {
 public:
  explicit WatchedSource(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}
  std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    source_->read(offset, out);
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kPause{50};  // seldom enough to cost nothing
    thread_local Clock::time_point last = Clock::now();
    if (Clock::now() - last < kPause) {
      return;
    }
    const nb::gil_scoped_acquire acquire;
    last = Clock::now();
    if (PyErr_CheckSignals() != 0) {
      throw nb::python_error();
    }
  }

 private:
  std::shared_ptr<const ByteSource> source_;
};

/// A file of Python, read by a function that takes a place and the memory to fill. What that raises
/// passes through the library.
class CalledSource : public ByteSource {
 public:
  CalledSource(nb::object fill, std::uint64_t n_bytes)
      : fill_(std::move(fill)), n_bytes_(n_bytes) {}
  std::uint64_t size() const override { return n_bytes_; }
  void read(std::uint64_t offset, MutableByteView out) const override {
    if (out.empty()) {
      return;
    }
    const nb::gil_scoped_acquire acquire;
    const nb::object memory = nb::steal(PyMemoryView_FromMemory(
        reinterpret_cast<char*>(out.data()), static_cast<Py_ssize_t>(out.size()), PyBUF_WRITE));
    if (!memory.is_valid()) {
      throw nb::python_error();
    }
    fill_(offset, memory);
    memory.attr("release")();  // nobody may keep what is not Python's
  }

 private:
  nb::object fill_;
  std::uint64_t n_bytes_;
};

/// Made and destroyed with the GIL held.
struct NativeSource {
  std::shared_ptr<const ByteSource> bytes;
};

/// Memory of an array with any strides, kept in place while this lives.
class StridedBuffer {
 public:
  explicit StridedBuffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_WRITABLE | PyBUF_STRIDES) != 0) {
      throw nb::python_error();
    }
  }
  StridedBuffer(const StridedBuffer&) = delete;
  StridedBuffer& operator=(const StridedBuffer&) = delete;
  ~StridedBuffer() { PyBuffer_Release(&view_); }

  void* data() const { return view_.buf; }
  std::size_t valueBytes() const { return static_cast<std::size_t>(view_.itemsize); }
  /// The fastest axis first, as the library has them.
  AxisValues extents() const {
    AxisValues extents;
    for (int axis = view_.ndim; axis-- > 0;) {
      extents.push_back(static_cast<std::uint64_t>(view_.shape[axis]));
    }
    return extents;
  }
  std::vector<std::ptrdiff_t> steps() const {
    std::vector<std::ptrdiff_t> steps;
    for (int axis = view_.ndim; axis-- > 0;) {
      steps.push_back(view_.strides[axis]);
    }
    return steps;
  }

 private:
  Py_buffer view_{};
};

struct NativeReader {
  NativeReader(const NativeSource& source, const DecodeSettings& settings)
      : reader(source.bytes, settings.limits) {}

  ArchiveReader reader;
};

std::unique_ptr<NativeReader> openReader(const NativeSource& source,
                                         const DecodeSettings& settings) {
  const nb::gil_scoped_release release;
  return std::make_unique<NativeReader>(source, settings);
}

nb::dict describe(const NativeReader& self) {
  const ArchiveInfo& info = self.reader.info();
  nb::dict row;
  row["type"] = toPython(dataTypeToString(info.type));
  row["shape"] = shapeToPython(info.extents);
  row["chunks"] = shapeToPython(info.chunk);
  row["bound"] = boundToPython(info.bound);
  row["chunk_count"] = info.n_chunks;
  row["absent_count"] = info.n_absent;
  row["original_bytes"] = info.original_bytes;
  row["archive_bytes"] = info.archive_bytes;
  return row;
}

void readInto(const NativeReader& self,
              AxisValues origin,
              nb::handle out,
              const DecodeSettings& settings) {
  const StridedBuffer buffer(out);
  const ArchiveInfo& info = self.reader.info();
  const std::size_t value_bytes = isKnown(info.type) ? getDataTypeSize(info.type) : 1;
  if (buffer.valueBytes() != value_bytes) {
    throw Error(ErrorCode::kTypeMismatch,
                fmt::format("archive: values of {} bytes into an array whose values have {}",
                            value_bytes, buffer.valueBytes()));
  }
  const Box box{extentsFrom(std::move(origin)), buffer.extents()};
  const nb::gil_scoped_release release;
  self.reader.read(
      box, buffer.data(), buffer.steps(),
      {.limits = settings.limits, .backend = settings.backend, .threads = settings.threads});
}

nb::dict recover(const NativeSource& source, const std::string& path, bool replace) {
  Recovery found;
  {
    const nb::gil_scoped_release release;
    found = recoverArchive(*source.bytes, path, replace);
  }
  nb::dict row;
  row["shape"] = shapeToPython(found.extents);
  row["whole"] = shapeToPython(found.whole);
  row["chunk_count"] = found.n_chunks;
  row["dropped"] = found.n_dropped;
  row["damaged_bytes"] = found.n_damaged_bytes;
  return row;
}

}  // namespace

void bindArchive(nb::module_& module) {
  nb::class_<NativeSource>(module, "NativeSource")
      .def_static("of_path",
                  [](const std::string& path) {
                    return NativeSource{std::make_shared<const WatchedSource>(openSource(path))};
                  })
      .def_static("of_buffer",
                  [](nb::handle object) {
                    return NativeSource{std::make_shared<const WatchedSource>(
                        std::make_shared<const BufferSource>(object))};
                  })
      .def_static("of_function", [](nb::object fill, std::uint64_t n_bytes) {
        return NativeSource{std::make_shared<const CalledSource>(std::move(fill), n_bytes)};
      });
  nb::class_<NativeReader>(module, "NativeReader")
      .def_static("open", &openReader)
      .def("info", &describe)
      .def("chunk_box",
           [](const NativeReader& self, std::uint64_t chunk) {
             const Box box = self.reader.chunkBox(chunk);
             return nb::make_tuple(shapeToPython(box.origin), shapeToPython(box.extents));
           })
      .def("has_chunk", [](const NativeReader& self,
                           std::uint64_t chunk) { return self.reader.hasChunk(chunk); })
      .def("read_into", &readInto);
  module.def("recover", &recover);
  module.def("is_archive",
             [](const NativeSource& source) { return isChunkedArchive(*source.bytes); });
  module.def("choose_chunk", [](const std::string& type, AxisValues shape, std::uint64_t n_bytes) {
    return shapeToPython(chooseChunk(typeFromText(type), extentsFrom(std::move(shape)), n_bytes));
  });
  bindArchiveWriter(module);
}

}  // namespace fz::python
