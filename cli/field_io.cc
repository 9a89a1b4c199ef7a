#include "field_io.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <unistd.h>

#include "archive/chunk_grid.h"
#include "failure.h"
#include "file_kind.h"
#include "format/file_io.h"
#include "hdf5_io.h"
#include "npy.h"
#include "progress.h"

namespace fz::cli {

namespace fs = std::filesystem;

namespace {

/// To the end of a pipe or a device, as the bytes come.
std::vector<std::uint8_t> readStream(int descriptor, const std::string& name, Progress* progress) {
  constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  if (progress != nullptr) {
    progress->beginBytes("reading", 0);
  }
  std::vector<std::uint8_t> bytes;
  std::size_t n_read = 0;
  for (;;) {
    if (bytes.size() - n_read < kChunkBytes) {
      bytes.resize(std::max(bytes.size() * 2, n_read + kChunkBytes));
    }
    const ssize_t n = ::read(descriptor, bytes.data() + n_read, kChunkBytes);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      throw Failure(ExitCode::kIo, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
    }
    if (n == 0) {
      break;
    }
    n_read += static_cast<std::size_t>(n);
    if (progress != nullptr) {
      progress->add(static_cast<std::uint64_t>(n));
    }
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

void readHdf5Field(Field& field,
                   const FieldRequest& request,
                   const Hdf5Name& name,
                   Progress* progress) {
  Hdf5Dataset dataset = readHdf5(name, progress);
  takeShape(field, request, dataset.type, dataset.shape, "HDF5 dataset");
  field.how = fmt::format("HDF5{}", dataset.is_swapped ? ", stored big-endian" : "");
  field.bytes = InputBytes(std::move(dataset.bytes));
  field.fill = dataset.fill;
  if (!field.fill.empty()) {
    field.note =
        fmt::format("fill value {} ({})", fmt::join(field.fill, ", "), dataset.fill_source);
  }
}

void readNpy(Field& field, const FieldRequest& request) {
  const NpyHeader header = parseNpyHeader(field.bytes);
  takeShape(field, request, header.type, header.shape, ".npy file");
  field.how = ".npy";
  field.bytes.dropFront(header.n_header_bytes);
  const std::size_t value_bytes = getDataTypeSize(field.type);
  const std::size_t n_values = *countOf(field.dims);
  if (field.bytes.size() / value_bytes != n_values || field.bytes.size() % value_bytes != 0) {
    throw Failure(ExitCode::kCorrupt,
                  fmt::format("broken .npy file: its shape means {} values of {} bytes, {} bytes "
                              "follow the header; write it again with numpy.save",
                              n_values, value_bytes, field.bytes.size()));
  }
  if (!header.isPlain()) {
    field.bytes = InputBytes(plainValues(header, field.bytes));
    field.how = fmt::format(".npy{}{}", header.is_swapped ? ", stored big-endian" : "",
                            header.is_fortran ? ", stored in Fortran order" : "");
  }
}

[[noreturn]] void failKind(const FileKind& kind) {
  throw Failure(ExitCode::kUsage,
                fmt::format("it is {}, not a raw array; {} (-t f32 takes its bytes as they are)",
                            kind.name, kind.advice));
}

/// "-t f32 means 3000 values, -t f64 1500 values": the types that the bytes can hold.
std::string typesThatFit(std::uint64_t n_bytes, const std::optional<AxisValues>& extents) {
  std::string fits;
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const std::uint64_t value_bytes = getDataTypeSize(type);
    const std::uint64_t n_values = n_bytes / value_bytes;
    if (n_bytes % value_bytes == 0 && (!extents || valueCount(*extents) == n_values)) {
      fits += fmt::format("{}-t {} as {} values", fits.empty() ? "" : " and ", shortName(type),
                          n_values);
    }
  }
  if (!fits.empty()) {
    return fmt::format("its {} bytes fit {}", n_bytes, fits);
  }
  return extents ? fmt::format("its {} bytes fit -d {} with no type; check -d", n_bytes,
                               dimsText(*extents))
                 : fmt::format(
                       "its {} bytes are no whole number of values of 4 or 8 bytes; is it "
                       "complete?",
                       n_bytes);
}

/// A guess would be wrong for every second file, and its bound would mean nothing.
[[noreturn]] void failNoType(std::optional<std::uint64_t> n_bytes,
                             const std::optional<AxisValues>& extents) {
  throw Failure(ExitCode::kUsage,
                fmt::format("neither its name (.f32, .f64) nor -t says of what type its values "
                            "are; {}",
                            n_bytes ? typesThatFit(*n_bytes, extents) : "give -t f32 or -t f64"));
}

void readRaw(Field& field, const FieldRequest& request) {
  const std::optional<DataType> named = typeFromName(field.name);
  const std::optional<FileKind> kind = knownFileKind(field.bytes);
  if (kind && !request.type && !named) {
    failKind(*kind);
  }
  if (!request.type && !named) {
    failNoType(field.bytes.size(), request.extents);
  }
  field.type = request.type.value_or(named.value_or(DataType::UNKNOWN));
  field.how = request.type ? "-t" : "by its name";
  const std::size_t value_bytes = getDataTypeSize(field.type);
  if (request.extents) {
    const std::size_t n_wanted = valueCount(*request.extents);
    if (field.bytes.size() % value_bytes != 0 || field.bytes.size() / value_bytes != n_wanted) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("-d {} with {} means {} values of {} bytes, but there are {} "
                                "bytes; {}",
                                dimsText(*request.extents), shortName(field.type), n_wanted,
                                value_bytes, field.bytes.size(), sizeAdvice(field, n_wanted)));
    }
    field.extents = *request.extents;
    field.dims = foldedDims(field.extents);
    field.has_shape = true;
    return;
  }
  if (field.bytes.size() % value_bytes != 0) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("{} bytes is not a multiple of {} bytes ({}); {}", field.bytes.size(),
                              value_bytes, shortName(field.type), sizeAdvice(field, 0)));
  }
  field.dims = {field.bytes.size() / value_bytes, 1, 1};
  field.extents = {field.dims[0]};
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

InputBytes readBytes(const std::string& path, Progress* progress) {
  if (isStandard(path)) {
    if (::isatty(STDIN_FILENO) != 0) {
      throw Failure(ExitCode::kUsage,
                    "standard input is a terminal; name a file or redirect one with '<'");
    }
    return InputBytes(readStream(STDIN_FILENO, inputName(path), progress));
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw Failure(ExitCode::kIo,
                  fmt::format("'{}' is a folder; name a file in it, or take all with -r", path));
  }
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    return reading([&] { return InputBytes::map(path); });
  }
  std::FILE* stream = std::fopen(path.c_str(), "rb");
  if (stream == nullptr) {
    throw Failure(ExitCode::kIo, fmt::format("cannot open: {}; check the path and the permissions",
                                             std::strerror(errno)));
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(stream, &std::fclose);
  return InputBytes(readStream(::fileno(stream), path, progress));
}

void takeShape(Field& field,
               const FieldRequest& request,
               DataType type,
               const std::vector<std::size_t>& shape,
               const std::string& source) {
  if (shape.size() > kMaxAxes) {
    throw Failure(ExitCode::kUsage, fmt::format("the {} has {} axes, fz takes up to {}; reshape it",
                                                source, shape.size(), kMaxAxes));
  }
  const std::array<std::size_t, 3> dims = dimsOfShape(shape);
  const AxisValues extents(shape.rbegin(), shape.rend());
  if (request.type && *request.type != type) {
    throw Failure(ExitCode::kUsage, fmt::format("-t {}, but the {} says {}; leave -t out",
                                                shortName(*request.type), source, shortName(type)));
  }
  if (request.extents && *request.extents != extents && foldedDims(*request.extents) != dims) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-d {}, but the {} says {}; leave -d out", dimsText(*request.extents),
                              source, dimsText(extents)));
  }
  field.type = type;
  field.dims = dims;
  field.extents = extents;
  field.has_shape = true;
}

Field fieldOfStream(std::vector<std::uint8_t>& bytes, const FieldRequest& request) {
  Field field;
  field.name = inputName(std::string(kStandardStream));
  if (hasNpyMagic(bytes)) {
    const NpyHeader header = parseNpyHeader(bytes);
    if (!header.isPlain()) {
      throw Failure(
          ExitCode::kUsage,
          "a .npy array that is big-endian or in Fortran order is put in order as a whole, "
          "which a pipe of this length does not allow; give it as a file");
    }
    takeShape(field, request, header.type, header.shape, ".npy file");
    field.how = ".npy";
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header.n_header_bytes));
    return field;
  }
  if (const std::optional<FileKind> kind = knownFileKind(bytes); kind && !request.type) {
    failKind(*kind);
  }
  if (!request.type) {
    failNoType(std::nullopt, request.extents);
  }
  field.type = *request.type;
  field.how = "-t";
  field.has_shape = request.extents.has_value();
  field.extents = request.extents.value_or(AxisValues{0});
  field.dims = foldedDims(field.extents);
  return field;
}

Field readField(const std::string& path,
                const FieldRequest& request,
                Progress* progress,
                const std::optional<InputBytes>& already) {
  Field field;
  field.name = inputName(path);
  if (const std::optional<Hdf5Name> name = hdf5Name(path)) {
    readHdf5Field(field, request, *name, progress);
    return field;
  }
  checkHdf5Slash(path);
  field.bytes = already ? *already : readBytes(path, progress);
  if (hasHdf5Signature(field.bytes) && !request.type) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("it is an HDF5 file; name a dataset in it, as in '{}:/NAME'{}", path,
                              hdf5Advice(path)));
  }
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

std::string dimsText(const AxisValues& extents) {
  if (extents.size() <= 3 && !extents.empty()) {
    std::array<std::size_t, 3> dims = {1, 1, 1};
    std::copy(extents.begin(), extents.end(), dims.begin());
    return dimsText(dims);
  }
  return extentsText(extents);
}

std::vector<std::size_t> shapeOf(const AxisValues& extents) {
  return {extents.rbegin(), extents.rend()};
}

std::string describeField(const Field& field, const std::string& config) {
  if (!field.has_shape && !config.empty()) {
    return fmt::format("{} ({}), {} values, {} bytes, shape as {} says", shortName(field.type),
                       field.how, field.valueCount(), field.bytes.size(), config);
  }
  const bool one_axis = field.dims[1] == 1 && field.dims[2] == 1;
  const std::string axes = one_axis                   ? "one axis"
                           : field.extents.size() > 3 ? fmt::format("{} axes", field.extents.size())
                           : field.dims[2] == 1       ? "x y"
                                                      : "x y z";
  return fmt::format("{} ({}), {} ({}{}{}) = {} values, {} bytes{}", shortName(field.type),
                     field.how, dimsText(field.extents), axes, one_axis ? "" : ", x fastest",
                     field.has_shape ? "" : ", no -d given", field.valueCount(), field.bytes.size(),
                     field.has_shape ? ": size matches" : "");
}

std::string inputName(const std::string& path) {
  return isStandard(path) ? "standard input" : path;
}

std::vector<double> fillOf(const FrameInfo& info) {
  return info.missing ? info.missing->fill : std::vector<double>{};
}

std::string missingText(const FrameInfo& info) {
  const MissingInfo& missing = *info.missing;
  const std::uint64_t n_values = info.original_bytes / getDataTypeSize(info.type);
  std::string text = fmt::format("{} of {} values missing ({:.1f} %)", missing.n_missing, n_values,
                                 n_values == 0 ? 0.0
                                               : 100.0 * static_cast<double>(missing.n_missing) /
                                                     static_cast<double>(n_values));
  if (!missing.fill.empty()) {
    text += fmt::format(", {} of them the fill value {}", missing.n_filled,
                        fmt::join(missing.fill, " or "));
  }
  return text;
}

}  // namespace fz::cli
