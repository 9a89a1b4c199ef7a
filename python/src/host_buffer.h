#pragma once

#include <nanobind/nanobind.h>

#include "fz/span.h"

namespace fz::python {

/// The bytes of an object with a buffer (numpy array, bytes, memoryview), kept in place while this
/// lives. Made and destroyed with the GIL held; the bytes may be used without it.
class HostBuffer {
 public:
  enum class Access { kRead, kWrite };

  /// Throws a Python exception for objects without a contiguous (and writable) buffer.
  HostBuffer(nanobind::handle object, Access access) {
    const int flags = access == Access::kWrite ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
      throw nanobind::python_error();
    }
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() { PyBuffer_Release(&view_); }

  ByteView bytes() const { return {static_cast<const std::uint8_t*>(view_.buf), size()}; }
  MutableByteView writable() const { return {static_cast<std::uint8_t*>(view_.buf), size()}; }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

}  // namespace fz::python
