#include "field_io.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "failure.h"
#include "format/file_io.h"
#include "npy.h"

namespace fz::cli {

namespace fs = std::filesystem;

namespace {

std::vector<std::uint8_t> readStream(std::FILE* stream, const std::string& name) {
  constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  std::vector<std::uint8_t> bytes;
  std::size_t n_read = 0;
  for (;;) {
    if (bytes.size() - n_read < kChunkBytes) {
      bytes.resize(std::max(bytes.size() * 2, n_read + kChunkBytes));
    }
    const std::size_t n = std::fread(bytes.data() + n_read, 1, bytes.size() - n_read, stream);
    n_read += n;
    if (n == 0) {
      break;
    }
  }
  if (std::ferror(stream) != 0) {
    throw Failure(ExitCode::kIo, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  }
  bytes.resize(n_read);
  return bytes;
}

/// What to try when the length does not fit: the other width, if that would do.
std::string sizeAdvice(const Field& field, std::size_t n_wanted) {
  const DataType other = field.type == DataType::FLOAT32 ? DataType::FLOAT64 : DataType::FLOAT32;
  if (n_wanted != 0 && field.bytes.size() / getDataTypeSize(other) == n_wanted &&
      field.bytes.size() % getDataTypeSize(other) == 0) {
    return fmt::format("the extents would fit with -t {}", shortName(other));
  }
  return "check -t and -d, and that the file is complete";
}

void readNpy(Field& field, const FieldRequest& request) {
  const NpyHeader header = parseNpyHeader(field.bytes);
  const std::array<std::size_t, 3> dims = dimsOfShape(header.shape);
  if (request.type && *request.type != header.type) {
    throw Failure(ExitCode::kUsage, fmt::format("-t {}, but the .npy file says {}; leave -t out",
                                                shortName(*request.type), shortName(header.type)));
  }
  if (request.dims && *request.dims != dims) {
    throw Failure(ExitCode::kUsage, fmt::format("-d {}, but the .npy file says {}; leave -d out",
                                                dimsText(*request.dims), dimsText(dims)));
  }
  field.type = header.type;
  field.dims = dims;
  field.has_shape = true;
  field.how = header.shape.size() > 3 ? ".npy, slow axes folded into z" : ".npy";
  field.bytes.erase(field.bytes.begin(),
                    field.bytes.begin() + static_cast<std::ptrdiff_t>(header.n_header_bytes));
  const std::size_t value_bytes = getDataTypeSize(field.type);
  const std::size_t n_values = *countOf(dims);
  if (field.bytes.size() / value_bytes != n_values || field.bytes.size() % value_bytes != 0) {
    throw Failure(ExitCode::kCorrupt,
                  fmt::format("broken .npy file: its shape means {} values of {} bytes, {} bytes "
                              "follow the header; write it again with numpy.save",
                              n_values, value_bytes, field.bytes.size()));
  }
}

void readRaw(Field& field, const FieldRequest& request) {
  const std::optional<DataType> named = typeFromName(field.name);
  field.type = request.type.value_or(named.value_or(DataType::FLOAT32));
  field.how = request.type ? "-t" : named ? "by its name" : "f32 assumed, -t f64 for double";
  const std::size_t value_bytes = getDataTypeSize(field.type);
  if (request.dims) {
    const std::size_t n_wanted = *countOf(*request.dims);
    if (field.bytes.size() % value_bytes != 0 || field.bytes.size() / value_bytes != n_wanted) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("-d {} with {} means {} values of {} bytes, but there are {} "
                                "bytes; {}",
                                dimsText(*request.dims), shortName(field.type), n_wanted,
                                value_bytes, field.bytes.size(), sizeAdvice(field, n_wanted)));
    }
    field.dims = *request.dims;
    field.has_shape = true;
    return;
  }
  if (field.bytes.size() % value_bytes != 0) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("{} bytes are no whole number of {}-byte values ({}); {}", field.bytes.size(),
                    value_bytes, shortName(field.type), sizeAdvice(field, 0)));
  }
  field.dims = {field.bytes.size() / value_bytes, 1, 1};
}

bool isStandard(std::string_view path) {
  return path == kStandardStream;
}

void writeAll(std::FILE* stream, const std::string& name, std::string_view header, ByteView bytes) {
  const bool done = std::fwrite(header.data(), 1, header.size(), stream) == header.size() &&
                    std::fwrite(bytes.data(), 1, bytes.size(), stream) == bytes.size() &&
                    std::fflush(stream) == 0;
  if (!done) {
    throw Failure(ExitCode::kIo, fmt::format("cannot write {}: {}; check the free space", name,
                                             std::strerror(errno)));
  }
}

}  // namespace

std::optional<DataType> typeFromName(std::string_view path) {
  if (path.ends_with(".f32")) {
    return DataType::FLOAT32;
  }
  if (path.ends_with(".f64") || path.ends_with(".d64")) {
    return DataType::FLOAT64;
  }
  return std::nullopt;
}

std::string_view shortName(DataType type) {
  return type == DataType::FLOAT64 ? "f64" : "f32";
}

std::vector<std::uint8_t> readBytes(const std::string& path) {
  if (isStandard(path)) {
    if (::isatty(STDIN_FILENO) != 0) {
      throw Failure(ExitCode::kUsage,
                    "standard input is a terminal; name a file or redirect one with '<'");
    }
    return readStream(stdin, inputName(path));
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' is a folder; name a file in it", path));
  }
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    return reading([&] { return readFile(path); });
  }
  std::FILE* stream = std::fopen(path.c_str(), "rb");
  if (stream == nullptr) {
    throw Failure(ExitCode::kIo, fmt::format("cannot open: {}; check the path and the permissions",
                                             std::strerror(errno)));
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(stream, &std::fclose);
  return readStream(stream, path);
}

Field readField(const std::string& path, const FieldRequest& request) {
  Field field;
  field.name = inputName(path);
  field.bytes = readBytes(path);
  // A name can be trusted; on a pipe only the content tells.
  const bool is_npy = isNpyName(path) || (isStandard(path) && hasNpyMagic(field.bytes));
  if (is_npy) {
    readNpy(field, request);
  } else {
    readRaw(field, request);
  }
  return field;
}

std::string dimsText(const std::array<std::size_t, 3>& dims) {
  std::string text = fmt::format("{}", dims[0]);
  for (std::size_t axis = 1; axis < 3 && dims[1] * dims[2] > 1; ++axis) {
    if (axis == 1 || dims[2] > 1) {
      text += fmt::format(" x {}", dims[axis]);
    }
  }
  return text;
}

std::string describeField(const Field& field, const std::string& config) {
  if (!field.has_shape && !config.empty()) {
    return fmt::format("{} ({}), {} values, {} bytes, shape as {} says", shortName(field.type),
                       field.how, field.valueCount(), field.bytes.size(), config);
  }
  const bool one_axis = field.dims[1] == 1 && field.dims[2] == 1;
  const std::string axes = one_axis ? "one axis" : field.dims[2] == 1 ? "x y" : "x y z";
  return fmt::format("{} ({}), {} ({}{}{}) = {} values, {} bytes{}", shortName(field.type),
                     field.how, dimsText(field.dims), axes, one_axis ? "" : ", x fastest",
                     field.has_shape ? "" : ", no -d given", field.valueCount(), field.bytes.size(),
                     field.has_shape ? ": size matches" : "");
}

std::string inputName(const std::string& path) {
  return isStandard(path) ? "standard input" : path;
}

std::string outputPath(const CommonOptions& options,
                       const std::string& input,
                       const std::string& own_name) {
  if (options.output.empty()) {
    return isStandard(input) ? std::string(kStandardStream) : own_name;
  }
  std::error_code ignored;
  if (isStandard(options.output) || !fs::is_directory(options.output, ignored)) {
    return options.output;
  }
  if (isStandard(input)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-o {} is a folder, and standard input has no name to use in it; "
                              "name a file",
                              options.output));
  }
  return (fs::path(options.output) / fs::path(own_name).filename()).string();
}

void checkOutputCount(const CommonOptions& options) {
  std::error_code ignored;
  if (options.files.size() <= 1 || (!options.output.empty() && !isStandard(options.output) &&
                                    fs::is_directory(options.output, ignored))) {
    return;
  }
  if (!options.output.empty()) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-o {} is one place for {} inputs; leave -o out or name a folder",
                              options.output, options.files.size()));
  }
  for (const std::string& file : options.files) {
    if (isStandard(file)) {
      throw Failure(ExitCode::kUsage, "'-' must be the only input; run fz once for each");
    }
  }
}

void checkOutput(const std::string& output, const std::string& input, bool force) {
  if (isStandard(output)) {
    if (::isatty(STDOUT_FILENO) != 0) {
      throw Failure(ExitCode::kUsage,
                    "not writing binary data to a terminal; redirect with '>' or use -o FILE");
    }
    return;
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(output, ignored);
  if (fs::is_directory(status)) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' is a folder; choose another -o", output));
  }
  if (!isStandard(input) && fs::equivalent(output, input, ignored)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' is the input itself; choose another -o", output));
  }
  if (fs::is_regular_file(status) && !force) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' exists; use -f to overwrite it", output));
  }
}

void writeOutput(const std::string& output, std::string_view header, ByteView bytes) {
  if (isStandard(output)) {
    writeAll(stdout, "standard output", header, bytes);
    return;
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(output, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A device or a pipe must not be replaced by a file.
    std::FILE* stream = std::fopen(output.c_str(), "wb");
    if (stream == nullptr) {
      throw Failure(ExitCode::kIo, fmt::format("cannot open '{}': {}; check the permissions",
                                               output, std::strerror(errno)));
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(stream, &std::fclose);
    writeAll(stream, fmt::format("'{}'", output), header, bytes);
    return;
  }
  // Through a link to the file behind it, so that the link stays one.
  const fs::path real = fs::is_symlink(fs::symlink_status(output, ignored))
                            ? fs::weakly_canonical(output, ignored)
                            : fs::path(output);
  const std::string path = real.empty() ? output : real.string();
  if (header.empty()) {
    writeFileAtomically(path, bytes);
    return;
  }
  std::vector<std::uint8_t> whole(header.begin(), header.end());
  whole.insert(whole.end(), bytes.begin(), bytes.end());
  writeFileAtomically(path, whole);
}

}  // namespace fz::cli
