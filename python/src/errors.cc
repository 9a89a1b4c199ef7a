#include "errors.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <string>

#include "fz/error.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

nb::object classOf(ErrorCode code) {
  return nb::module_::import_("fz.errors").attr("BY_CODE")[errorCodeName(code)];
}

void raise(ErrorCode code, const char* message) {
  try {
    const nb::object type = classOf(code);
    PyErr_SetString(type.ptr(), message);
  } catch (nb::python_error& e) {
    e.restore();
  }
}

/// With the ways out as Python has them.
std::string textOf(const FillValueError& error) {
  const FillValueFinding& found = error.finding();
  return fmt::format(
      "{}; fill={} (for Zarr exact=[{}]) if it means missing, fill='none' if it is data; or an "
      "absolute bound, such as 'abs:{:.2g}'",
      error.cause(), found.text, found.text, found.bound_without);
}

}  // namespace

void registerErrors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void* /*payload*/) {
    try {
      std::rethrow_exception(thrown);
    } catch (const FillValueError& e) {
      raise(e.code(), textOf(e).c_str());
    } catch (const Error& e) {
      raise(e.code(), e.what());
    } catch (const InvalidArgument& e) {
      raise(e.code(), e.what());
    }
  });
}

nb::object errorObject(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const FillValueError& e) {
    return classOf(e.code())(textOf(e));
  } catch (const Error& e) {
    return classOf(e.code())(e.what());
  } catch (const InvalidArgument& e) {
    return classOf(e.code())(e.what());
  } catch (const std::exception& e) {
    return classOf(ErrorCode::kInternal)(e.what());
  }
}

}  // namespace fz::python
