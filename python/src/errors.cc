#include "errors.h"

#include <nanobind/nanobind.h>

#include "fz/error.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

void raise(ErrorCode code, const char* message) {
  try {
    const nb::object classes = nb::module_::import_("fz.errors").attr("BY_CODE");
    const nb::object type = classes[errorCodeName(code)];
    PyErr_SetString(type.ptr(), message);
  } catch (nb::python_error& e) {
    e.restore();
  }
}

}  // namespace

void registerErrors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void* /*payload*/) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& e) {
      raise(e.code(), e.what());
    } catch (const InvalidArgument& e) {
      raise(e.code(), e.what());
    }
  });
}

}  // namespace fz::python
