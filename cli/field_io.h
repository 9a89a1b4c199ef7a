#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/host_api.h"
#include "fz/span.h"
#include "input_bytes.h"
#include "options.h"

namespace fz::cli {

class Progress;

/// The name that means standard input or output.
inline constexpr std::string_view kStandardStream = "-";
inline bool isStandard(std::string_view path) {
  return path == kStandardStream;
}

/// What the command line says about a raw field; .npy and HDF5 files say it themselves.
struct FieldRequest {
  std::optional<DataType> type;
  std::optional<AxisValues> extents;  ///< x first
};

/// An array as it was read, and how it was understood.
struct Field {
  std::string name;
  DataType type = DataType::UNKNOWN;
  std::array<std::size_t, 3> dims = {0, 1, 1};  ///< x first, as predictors see it
  AxisValues extents;                           ///< all axes, x first
  bool has_shape = false;                       ///< extents were given, not assumed
  std::string how;                              ///< where type and shape come from
  std::string note;                             ///< what else its file says; may be empty
  std::vector<double> fill;                     ///< values that its file says mean "missing"
  InputBytes bytes;

  std::size_t valueCount() const { return bytes.size() / getDataTypeSize(type); }
};

/// The type that the end of a name stands for, such as .f32.
std::optional<DataType> typeFromName(std::string_view path);
/// "f32" or "f64".
std::string_view shortName(DataType type);

/// All bytes of a file (as memory, without reading it yet), a pipe or, for "-", standard input.
/// Throws Failure or Error(kIo).
InputBytes readBytes(const std::string& path, Progress* progress = nullptr);

/// Reads and checks the size against type and extents. Throws Failure, Error(kIo). `already` has
/// the bytes of a pipe that somebody has read to its end.
Field readField(const std::string& path,
                const FieldRequest& request,
                Progress* progress = nullptr,
                const std::optional<InputBytes>& already = {});
/// What a pipe begins with, before it is known how it ends: type, and extents where a .npy header
/// or the request has them. `bytes` loses its header. Throws Failure.
Field fieldOfStream(std::vector<std::uint8_t>& bytes, const FieldRequest& request);
/// One line that reads the interpretation back: type, axes, counts. `config` is the file that has
/// the shape when the field has none; it may be empty.
std::string describeField(const Field& field, const std::string& config);
/// "3600 x 1800", the axes that the array has.
std::string dimsText(const std::array<std::size_t, 3>& dims);
std::string dimsText(const AxisValues& extents);
/// NumPy's order: the last axis is the fastest.
std::vector<std::size_t> shapeOf(const AxisValues& extents);
/// Type and shape as a file states them; -t and -d may repeat them. Throws Failure(kUsage).
void takeShape(Field& field,
               const FieldRequest& request,
               DataType type,
               const std::vector<std::size_t>& shape,
               const std::string& source);

/// The fill values that a frame knows of.
std::vector<double> fillOf(const FrameInfo& info);
/// "120 of 1000 values (12.0 %), 100 of them by declaration (-9999)". The frame must have such.
std::string missingText(const FrameInfo& info);

/// Name for messages: "standard input" for "-".
std::string inputName(const std::string& path);

}  // namespace fz::cli
