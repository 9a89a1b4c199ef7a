#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/span.h"
#include "options.h"

namespace fz::cli {

/// The name that means standard input or output.
inline constexpr std::string_view kStandardStream = "-";

/// What the command line says about a raw field; a .npy file says it itself.
struct FieldRequest {
  std::optional<DataType> type;
  std::optional<std::array<std::size_t, 3>> dims;
};

/// An array as it was read, and how it was understood.
struct Field {
  std::string name;
  DataType type = DataType::UNKNOWN;
  std::array<std::size_t, 3> dims = {0, 1, 1};  ///< x first
  bool has_shape = false;                       ///< dims were given, not assumed
  std::string how;                              ///< where type and shape come from
  std::vector<std::uint8_t> bytes;

  std::size_t valueCount() const { return bytes.size() / getDataTypeSize(type); }
};

/// The type that the end of a name stands for, such as .f32.
std::optional<DataType> typeFromName(std::string_view path);
/// "f32" or "f64".
std::string_view shortName(DataType type);

/// All bytes of a file, a pipe or, for "-", standard input. Throws Failure or Error(kIo).
std::vector<std::uint8_t> readBytes(const std::string& path);

/// Reads and checks the size against type and dims. Throws Failure, Error(kIo).
Field readField(const std::string& path, const FieldRequest& request);
/// One line that reads the interpretation back: type, axes, counts. `config` is the file that has
/// the shape when the field has none; it may be empty.
std::string describeField(const Field& field, const std::string& config);
/// "3600 x 1800", the axes that the array has.
std::string dimsText(const std::array<std::size_t, 3>& dims);

/// Name for messages: "standard input" for "-".
std::string inputName(const std::string& path);

/// Where -o, or the lack of it, sends the result for `input`. `own_name` is the name that the
/// result has when nothing is said.
std::string outputPath(const CommonOptions& options,
                       const std::string& input,
                       const std::string& own_name);
/// Refuses several inputs for one -o file or for standard output.
void checkOutputCount(const CommonOptions& options);
/// Refuses terminals, folders, existing files without -f, and the input itself.
void checkOutput(const std::string& output, const std::string& input, bool force);
/// To standard output for "-"; else the file is complete under its name, or unchanged. The parts
/// follow each other. Throws Failure(kIo), Error(kIo).
void writeOutput(const std::string& output, std::string_view header, ByteView bytes);

}  // namespace fz::cli
