#include <algorithm>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cuda_runtime_api.h>

#include "convert.h"
#include "decoder_cache.h"
#include "fz/backend_memory.h"
#include "fz/error.h"
#include "host_buffer.h"
#include "native_pipeline.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::kCuda, std::string(what) + ": " + cudaGetErrorString(status));
  }
}

// Python hands addresses and streams over as integers.
// NOLINTBEGIN(performance-no-int-to-ptr)
cudaStream_t streamOf(std::uintptr_t handle) {
  return reinterpret_cast<cudaStream_t>(handle);
}

void* deviceMemory(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}
// NOLINTEND(performance-no-int-to-ptr)

/// Makes the device of an address current for one call, and the caller's again afterwards.
class DeviceOf {
 public:
  explicit DeviceOf(const void* memory) {
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes");
    if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) {
      throw InvalidArgument("the array says it is on a GPU, but its memory is not");
    }
    device_ = attributes.device;
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(device_), "cudaSetDevice");
  }
  DeviceOf(const DeviceOf&) = delete;
  DeviceOf& operator=(const DeviceOf&) = delete;
  ~DeviceOf() { cudaSetDevice(before_); }
  int id() const { return device_; }

 private:
  int device_ = 0;
  int before_ = 0;
};

/// Bytes on a device, in memory of the session that made them.
class DeviceMemory {
 public:
  DeviceMemory(std::shared_ptr<Session> session, void* data, std::size_t n_bytes, int device)
      : session_(std::move(session)), data_(data), n_bytes_(n_bytes), device_(device) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() {
    const nb::gil_scoped_release release;
    settle();
    session_.reset();
  }

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(data_); }
  std::size_t size() const { return n_bytes_; }
  int device() const { return device_; }
  void* data() const { return data_; }

  nb::bytes toHost() const {
    PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(n_bytes_));
    if (made == nullptr) {
      throw nb::python_error();
    }
    nb::bytes bytes = nb::steal<nb::bytes>(made);
    char* const to = PyBytes_AsString(made);
    const nb::gil_scoped_release release;
    copyTo(to);
    return bytes;
  }
  void intoHost(nb::handle out) const {
    const HostBuffer buffer(out, HostBuffer::Access::kWrite);
    if (buffer.size() < n_bytes_) {
      throw Error(ErrorCode::kBufferTooSmall, "the buffer is smaller than the data");
    }
    const nb::gil_scoped_release release;
    copyTo(buffer.writable().data());
  }

 protected:
  /// Others may have work under way on the memory, on streams that are not known here.
  void settle() const noexcept {
    try {
      waitForDevice(device_);
    } catch (const Error&) {  // whoever calls the device next meets the same
    }
  }
  Session& session() const { return *session_; }

 private:
  void copyTo(void* host) const {
    if (n_bytes_ > 0) {
      check(cudaMemcpy(host, data_, n_bytes_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    }
  }

  std::shared_ptr<Session> session_;
  void* data_;
  std::size_t n_bytes_;
  int device_;
};

/// A block that goes back to the pool of a session which others use as well.
class PooledMemory : public DeviceMemory {
 public:
  using DeviceMemory::DeviceMemory;
  ~PooledMemory() override {
    // Who holds the lock may be waiting for the GIL.
    const nb::gil_scoped_release release;
    settle();
    const std::lock_guard<std::mutex> lock(session().mutex);
    session().pipeline.getMemoryPool().free(data(), nullptr);
  }
};

/// The pipeline keeps its own frame only until its next call, so the result is a copy of it.
std::unique_ptr<DeviceMemory> compressDevice(const NativePipeline& self,
                                             std::uintptr_t address,
                                             std::size_t n_bytes,
                                             std::uintptr_t stream) {
  const nb::gil_scoped_release release;
  const DeviceOf device(deviceMemory(address));
  const std::lock_guard<std::mutex> lock(self.session()->mutex);
  Pipeline& pipeline = self.pipeline();
  const CompressedView frame =
      self.deviceCompressor().compress(deviceMemory(address), n_bytes, streamOf(stream));
  void* const copy =
      pipeline.getMemoryPool().allocate(frame.n_bytes, streamOf(stream), "frame", true);
  if (copy == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, "compress: no device memory for the frame");
  }
  try {
    check(cudaMemcpyAsync(copy, frame.data, frame.n_bytes, cudaMemcpyDeviceToDevice,
                          streamOf(stream)),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(streamOf(stream)), "cudaStreamSynchronize");
  } catch (...) {
    pipeline.getMemoryPool().free(copy, streamOf(stream));
    throw;
  }
  return std::make_unique<PooledMemory>(self.session(), copy, frame.n_bytes, device.id());
}

/// The result is memory of the decoder's pool, which lives as long as either of them.
std::unique_ptr<DeviceMemory> decompressDevice(std::uintptr_t address,
                                               std::size_t n_bytes,
                                               std::size_t out_bytes,
                                               const DecodeSettings& settings,
                                               std::uintptr_t stream) {
  const nb::gil_scoped_release release;
  const DeviceOf device(deviceMemory(address));
  CachedDecoder decoder(device.id(), settings);
  MemoryPool& pool = decoder.pipeline().getMemoryPool();
  void* const data =
      pool.allocate(std::max<std::size_t>(1, out_bytes), streamOf(stream), "values", true);
  if (data == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, "decompress: no device memory for the values");
  }
  std::size_t actual = 0;
  try {
    decoder.pipeline().decompress(deviceMemory(address), n_bytes, data, out_bytes, &actual,
                                  streamOf(stream));
    check(cudaStreamSynchronize(streamOf(stream)), "cudaStreamSynchronize");
  } catch (...) {
    pool.free(data, streamOf(stream));
    throw;
  }
  decoder.keep();
  return std::make_unique<PooledMemory>(decoder.session(), data, actual, device.id());
}

std::size_t decompressDeviceInto(std::uintptr_t address,
                                 std::size_t n_bytes,
                                 std::uintptr_t out,
                                 std::size_t out_bytes,
                                 const DecodeSettings& settings,
                                 std::uintptr_t stream) {
  const nb::gil_scoped_release release;
  const DeviceOf device(deviceMemory(out));
  CachedDecoder decoder(device.id(), settings);
  std::size_t actual = 0;
  decoder.pipeline().decompress(deviceMemory(address), n_bytes, deviceMemory(out), out_bytes,
                                &actual, streamOf(stream));
  check(cudaStreamSynchronize(streamOf(stream)), "cudaStreamSynchronize");
  decoder.keep();
  return actual;
}

/// The same for a frame in host memory.
std::size_t uploadAndDecompress(nb::handle frame,
                                std::uintptr_t out,
                                std::size_t out_bytes,
                                const DecodeSettings& settings,
                                std::uintptr_t stream) {
  const HostBuffer bytes(frame, HostBuffer::Access::kRead);
  return decompressDeviceInto(reinterpret_cast<std::uintptr_t>(bytes.bytes().data()), bytes.size(),
                              out, out_bytes, settings, stream);
}

nb::bytes toHost(std::uintptr_t address, std::size_t n_bytes, std::uintptr_t stream) {
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(n_bytes));
  if (made == nullptr) {
    throw nb::python_error();
  }
  nb::bytes bytes = nb::steal<nb::bytes>(made);
  char* const to = PyBytes_AsString(made);
  const nb::gil_scoped_release release;
  check(
      cudaMemcpyAsync(to, deviceMemory(address), n_bytes, cudaMemcpyDeviceToHost, streamOf(stream)),
      "cudaMemcpyAsync");
  check(cudaStreamSynchronize(streamOf(stream)), "cudaStreamSynchronize");
  return bytes;
}

nb::dlpack::dtype dlpackType(DataType type) {
  const auto bits = static_cast<std::uint8_t>(8 * getDataTypeSize(type));
  nb::dlpack::dtype_code code = nb::dlpack::dtype_code::UInt;
  if (isFloat(type)) {
    code = nb::dlpack::dtype_code::Float;
  } else if (static_cast<std::uint8_t>(type) >= static_cast<std::uint8_t>(DataType::INT8)) {
    code = nb::dlpack::dtype_code::Int;
  }
  return {static_cast<std::uint8_t>(code), bits, 1};
}

/// An object with __dlpack__ over the same memory, which `owner` keeps.
nb::object exportArray(const DeviceMemory& memory,
                       const std::string& type,
                       const std::vector<std::size_t>& shape,
                       nb::handle owner) {
  const nb::ndarray<nb::array_api, nb::device::cuda> array(
      memory.data(), shape.size(), shape.data(), owner, nullptr, dlpackType(typeFromText(type)),
      nb::device::cuda::value, memory.device());
  return nb::cast(array);
}

/// Address, type, shape, strides in elements (or None) and device of a DLPack capsule on a GPU.
nb::tuple describeCapsule(const nb::ndarray<nb::ro>& array) {
  const auto code = static_cast<nb::dlpack::dtype_code>(array.dtype().code);
  std::string type = code == nb::dlpack::dtype_code::Float  ? "float"
                     : code == nb::dlpack::dtype_code::Int  ? "int"
                     : code == nb::dlpack::dtype_code::UInt ? "uint"
                                                            : "other";
  type += std::to_string(array.dtype().bits);
  nb::list shape;
  nb::list strides;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    shape.append(array.shape(i));
    strides.append(array.stride(i));
  }
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), type, nb::tuple(shape),
                        nb::tuple(strides),
                        array.device_type() == nb::device::cuda::value ||
                            array.device_type() == nb::device::cuda_managed::value);
}

}  // namespace

void bindDevice(nb::module_& module) {
  nb::class_<DeviceMemory>(module, "DeviceMemory")
      .def_prop_ro("address", &DeviceMemory::address)
      .def_prop_ro("nbytes", &DeviceMemory::size)
      .def_prop_ro("device", &DeviceMemory::device)
      .def("to_host", &DeviceMemory::toHost)
      .def("into_host", &DeviceMemory::intoHost);
  module.def("compress_device", &compressDevice);
  module.def("decompress_device", &decompressDevice);
  module.def("decompress_device_into", &decompressDeviceInto);
  module.def("upload_and_decompress", &uploadAndDecompress);
  module.def("clear_decoders", &clearDecoders, nb::call_guard<nb::gil_scoped_release>());
  module.def("synchronize_stream", [](std::uintptr_t stream) {
    const nb::gil_scoped_release release;
    check(cudaStreamSynchronize(streamOf(stream)), "cudaStreamSynchronize");
  });
  module.def("to_host", &toHost);
  module.def("export_array", &exportArray);
  module.def("describe_capsule", &describeCapsule);
}

}  // namespace fz::python
