#include "chunked_input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <unistd.h>

#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "failure.h"
#include "hdf5_io.h"
#include "npy.h"
#include "progress.h"

namespace fz::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// A pipe or device, closed at the end unless it is standard input.
class Stream {
 public:
  explicit Stream(const std::string& path)
      : name_(inputName(path)),
        fd_(path == kStandardStream ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) {
      throw Failure(
          ExitCode::kIo,
          fmt::format("cannot open: {}; check the path and the permissions", std::strerror(errno)));
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (fd_ != STDIN_FILENO) {
      ::close(fd_);
    }
  }

  std::size_t read(MutableByteView out) const {
    for (;;) {
      const ssize_t n = ::read(fd_, out.data(), out.size());
      if (n >= 0) {
        return static_cast<std::size_t>(n);
      }
      if (errno != EINTR) {
        throw Failure(ExitCode::kIo,
                      fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
      }
    }
  }

 private:
  std::string name_;
  int fd_;
};

ChunkedInput openFile(const std::string& path, const FieldRequest& request) {
  ChunkedInput input;
  input.field = readField(path, request);  // maps it, and reads its header
  const std::shared_ptr<const ByteSource> file = reading([&] { return openSource(path); });
  const std::uint64_t begin = file->size() - input.field.bytes.size();
  const std::size_t value_bytes = getDataTypeSize(input.field.type);
  if (isNpyName(path) && !parseNpyHeader(readBytes(path)).isPlain()) {
    // Put in order as a whole, and so in memory already.
    input.read = [bytes = input.field.bytes, extents = input.field.extents, value_bytes](
                     const Box& box, MutableByteView values) {
      forRuns({AxisValues(extents.size(), 0), extents}, box, value_bytes,
              [&](std::uint64_t offset, std::size_t n_done, std::size_t n) {
                std::copy_n(bytes.data() + offset, n, values.data() + n_done);
              });
    };
    return input;
  }
  input.read = [file, begin, extents = input.field.extents, value_bytes](const Box& box,
                                                                         MutableByteView values) {
    const Box whole{AxisValues(extents.size(), 0), extents};
    forRuns(whole, box, value_bytes, [&](std::uint64_t offset, std::size_t n_done, std::size_t n) {
      file->read(begin + offset, values.subspan(n_done, n));
    });
  };
  return input;
}

ChunkedInput openHdf5(const Hdf5Name& name, const FieldRequest& request) {
  ChunkedInput input;
  const auto reader = std::make_shared<const Hdf5Reader>(name);
  const Hdf5Dataset& about = reader->about();
  input.field.name = fmt::format("{}:{}", name.file, name.dataset);
  takeShape(input.field, request, about.type, about.shape, "HDF5 dataset");
  input.field.how = fmt::format("HDF5{}", about.is_swapped ? ", stored big-endian" : "");
  input.field.fill = about.fill;
  if (!about.fill.empty()) {
    input.field.note =
        fmt::format("fill value {} ({})", fmt::join(about.fill, ", "), about.fill_source);
  }
  input.read = [reader](const Box& box, MutableByteView values) {
    reader->read(shapeOf(box.origin), shapeOf(box.extents), values);
  };
  return input;
}

std::optional<ChunkedInput> openStream(const std::string& path,
                                       const FieldRequest& request,
                                       std::uint64_t whole_bytes,
                                       Progress* progress,
                                       std::optional<InputBytes>& rest) {
  if (path == kStandardStream && ::isatty(STDIN_FILENO) != 0) {
    throw Failure(ExitCode::kUsage,
                  "standard input is a terminal; name a file or redirect one with '<'");
  }
  if (progress != nullptr) {
    progress->beginBytes("reading", 0);
  }
  const auto stream = std::make_shared<const Stream>(path);
  std::vector<std::uint8_t> begun;
  // A header is read in any case.
  const std::uint64_t n_wanted = std::max<std::uint64_t>(whole_bytes, kPieceBytes);
  while (begun.size() <= n_wanted) {
    const std::size_t n_before = begun.size();
    begun.resize(n_before + kPieceBytes);
    const std::size_t n = stream->read(MutableByteView(begun).subspan(n_before));
    begun.resize(n_before + n);
    if (progress != nullptr) {
      progress->add(n);
    }
    if (n == 0) {
      break;
    }
  }
  if (begun.size() <= whole_bytes) {
    rest = InputBytes(std::move(begun));
    return std::nullopt;
  }
  ChunkedInput input;
  input.field = fieldOfStream(begun, request);
  input.field.name = inputName(path);
  input.begun = std::move(begun);
  input.next = [stream](MutableByteView out) { return stream->read(out); };
  return input;
}

}  // namespace

bool isStream(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return path == kStandardStream ||
         (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status));
}

ChunkedInput openByParts(const std::string& path, const FieldRequest& request) {
  if (const std::optional<Hdf5Name> name = hdf5Name(path)) {
    return openHdf5(*name, request);
  }
  checkHdf5Slash(path);
  return openFile(path, request);
}

std::string describeChunked(const ChunkedInput& input) {
  const Field& field = input.field;
  if (input.byteCount() == 0) {
    return fmt::format("{} ({}), as many values as come", shortName(field.type), field.how);
  }
  return fmt::format("{} ({}), {}{} = {} values, {} bytes", shortName(field.type), field.how,
                     dimsText(field.extents), field.extents.size() > 1 ? " (x fastest)" : "",
                     valueCount(field.extents), input.byteCount());
}

std::optional<ChunkedInput> openChunked(const std::string& path,
                                        const FieldRequest& request,
                                        std::uint64_t whole_bytes,
                                        Progress* progress,
                                        std::optional<InputBytes>& rest) {
  if (whole_bytes == ~std::uint64_t{0}) {
    return std::nullopt;
  }
  if (!hdf5Name(path) && isStream(path)) {
    return openStream(path, request, whole_bytes, progress, rest);
  }
  if (const std::optional<Hdf5Name> name = hdf5Name(path)) {
    if (hdf5DatasetBytes(*name) <= whole_bytes) {
      return std::nullopt;
    }
    return openHdf5(*name, request);
  }
  std::error_code error;
  const std::uint64_t n_bytes = fs::file_size(path, error);
  if (error || n_bytes <= whole_bytes) {
    return std::nullopt;  // what is wrong with it the other way says
  }
  return openFile(path, request);
}

}  // namespace fz::cli
