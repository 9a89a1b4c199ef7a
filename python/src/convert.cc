#include "convert.h"

#include <string>

#include "fz/error.h"

namespace fz::python {

namespace nb = nanobind;

DataType typeFromText(std::string_view text) {
  const std::optional<DataType> type = dataTypeFromString(text);
  if (!type) {
    throw InvalidArgument("'" + std::string(text) + "' is not an element type");
  }
  return *type;
}

Backend backendFromText(std::string_view text) {
  if (text == "auto") {
    return Backend::Auto;
  }
  if (text == "cpu") {
    return Backend::CPU;
  }
  if (text == "cuda") {
    return Backend::CUDA;
  }
  throw InvalidArgument("backend '" + std::string(text) + "' must be auto, cpu or cuda");
}

nb::str toPython(std::string_view text) {
  return nb::str(text.data(), text.size());
}

nb::object toPython(const ParamValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) {
    return nb::bool_(*truth);
  }
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value)) {
    return nb::int_(*number);
  }
  if (const double* real = std::get_if<double>(&value)) {
    return nb::float_(*real);
  }
  return toPython(std::string_view(std::get<std::string>(value)));
}

ParamValue paramFromPython(nb::handle value) {
  if (PyBool_Check(value.ptr())) {
    return nb::cast<bool>(value);
  }
  if (PyLong_Check(value.ptr())) {
    const long long number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) {
      throw nb::python_error();
    }
    return static_cast<std::int64_t>(number);
  }
  if (PyFloat_Check(value.ptr())) {
    return PyFloat_AsDouble(value.ptr());
  }
  if (PyUnicode_Check(value.ptr())) {
    return std::string(nb::str(value).c_str());
  }
  throw nb::type_error("a stage setting is a bool, an int, a float or a str");
}

nb::list typesToPython(const std::vector<DataType>& types) {
  nb::list list;
  for (const DataType type : types) {
    list.append(toPython(dataTypeToString(type)));
  }
  return list;
}

}  // namespace fz::python
