// Archives of chunks: reading and recovery.
#include <algorithm>
#include <memory>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/versioned.h"
#include "fz/archive.h"

using fz::ErrorCode;
using fz::c_api::guarded;

struct fz_reader {
  fz::ArchiveReader reader;
  fz::DecompressOptions options;
};

namespace {

/// Functions of the caller.
class CalledSource : public fz::ByteSource {
 public:
  explicit CalledSource(const fz_source& source) : source_(source) {}
  std::uint64_t size() const override { return source_.n_bytes; }
  void read(std::uint64_t offset, fz::MutableByteView out) const override {
    const int32_t failure = source_.read(offset, out.data(), out.size(), source_.context);
    FZ_REQUIRE(failure == 0, ErrorCode::kIo,
               "fz_source: {} bytes at {} could not be read (the function returned {})", out.size(),
               offset, failure);
  }

 private:
  fz_source source_;
};

fz_reader* open(std::shared_ptr<const fz::ByteSource> source, const fz_options& options) {
  const fz::DecodeLimits limits{options.max_output_bytes, options.max_memory_bytes};
  fz::DecompressOptions how;
  how.limits = limits;
  how.backend = static_cast<fz::Backend>(options.backend);
  how.threads = options.n_threads;
  return new fz_reader{fz::ArchiveReader(std::move(source), limits), how};
}

fz_options hostOptions(const fz_options* given, const char* who) {
  const fz_options options = fz::c_api::checkedOptions(given);
  FZ_REQUIRE(options.memory == FZ_MEMORY_HOST, ErrorCode::kUnsupported,
             "{}: archives of chunks are read into host memory only", who);
  return options;
}

fz_reader_info describe(const fz::ArchiveInfo& info) {
  fz_reader_info row = {};
  row.type = static_cast<int32_t>(info.type);
  row.n_axes = static_cast<int32_t>(info.extents.size());
  std::copy(info.extents.begin(), info.extents.end(), row.extents);
  std::copy(info.chunk.begin(), info.chunk.end(), row.chunk);
  row.n_chunks = info.n_chunks;
  row.n_absent = info.n_absent;
  row.original_bytes = info.original_bytes;
  row.archive_bytes = info.archive_bytes;
  row.bound_mode = FZ_BOUND_DEFAULT;
  if (info.bound) {
    row.has_bound = 1;
    row.bound_mode = static_cast<int32_t>(info.bound->mode) + FZ_BOUND_ABS;
    row.bound_requested = info.bound->requested;
    row.bound_absolute = info.bound->absolute;
  }
  return row;
}

/// The steps of a box, the caller's or those of values one after the other; all of it lies within
/// the buffer. A box without values has no steps to check.
std::vector<std::ptrdiff_t> checkedSteps(const fz::AxisValues& extents,
                                         const ptrdiff_t* byte_steps,
                                         std::size_t value_bytes,
                                         std::size_t capacity,
                                         const char* who) {
  std::vector<std::ptrdiff_t> steps;
  bool is_beyond = false;
  std::uint64_t dense = value_bytes;
  std::uint64_t end = value_bytes;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::uint64_t step = dense;
    if (byte_steps != nullptr) {
      FZ_REQUIRE(byte_steps[axis] >= 0, ErrorCode::kInvalidArgument,
                 "{}: the step of axis {} is {}, which is negative", who, axis, byte_steps[axis]);
      step = static_cast<std::uint64_t>(byte_steps[axis]);
    }
    std::uint64_t reach = 0;
    is_beyond = is_beyond || step > PTRDIFF_MAX ||
                __builtin_mul_overflow(step, extents[axis] - 1, &reach) ||
                __builtin_add_overflow(end, reach, &end) ||
                __builtin_mul_overflow(dense, extents[axis], &dense);
    steps.push_back(static_cast<std::ptrdiff_t>(step));
  }
  FZ_REQUIRE(!is_beyond, ErrorCode::kBufferTooSmall,
             "{}: the box ends beyond 64 bits, the buffer after {} bytes", who, capacity);
  FZ_REQUIRE(end <= capacity, ErrorCode::kBufferTooSmall,
             "{}: the box ends after {} bytes, the buffer after {}", who, end, capacity);
  return steps;
}

}  // namespace

fz_status fz_reader_open(const char* path, const fz_options* options, fz_reader** reader) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(reader);
    *reader = nullptr;
    FZ_REQUIRE_POINTER(path);
    *reader = open(fz::openSource(path), hostOptions(options, who));
  });
}

fz_status fz_reader_open_callbacks(const fz_source* source,
                                   const fz_options* options,
                                   fz_reader** reader) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(reader);
    *reader = nullptr;
    FZ_REQUIRE_POINTER(source);
    FZ_REQUIRE_POINTER(source->read);
    *reader = open(std::make_shared<CalledSource>(*source), hostOptions(options, who));
  });
}

void fz_reader_destroy(fz_reader* reader) {
  delete reader;
}

fz_status fz_reader_get(const fz_reader* reader, fz_reader_info* info) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(reader);
    FZ_REQUIRE_POINTER(info);
    fz::c_api::writeVersioned(describe(reader->reader.info()), info, sizeof(*info),
                              "fz_reader_info");
  });
}

fz_status fz_reader_read_box(const fz_reader* reader,
                             const uint64_t* origin,
                             const uint64_t* extents,
                             void* out,
                             size_t capacity,
                             const ptrdiff_t* byte_steps) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(reader);
    const fz::ArchiveInfo& info = reader->reader.info();
    const std::size_t n_axes = info.extents.size();
    fz::Box box;
    if (n_axes > 0) {
      FZ_REQUIRE_POINTER(origin);
      FZ_REQUIRE_POINTER(extents);
      box = {{origin, origin + n_axes}, {extents, extents + n_axes}};
    }
    if (std::find(box.extents.begin(), box.extents.end(), 0u) != box.extents.end()) {
      reader->reader.read(box, out, std::vector<std::ptrdiff_t>(n_axes), reader->options);
      return;
    }
    FZ_REQUIRE_POINTER(out);
    const std::size_t value_bytes = fz::isKnown(info.type) ? fz::getDataTypeSize(info.type) : 1;
    const std::vector<std::ptrdiff_t> steps =
        checkedSteps(box.extents, byte_steps, value_bytes, capacity, who);
    reader->reader.read(box, out, steps, reader->options);
  });
}

fz_status fz_recover(const char* from_path,
                     const char* to_path,
                     uint64_t* n_damaged_bytes,
                     uint64_t* n_dropped) {
  return guarded(__func__, [&](const char* who) {
    uint64_t unused = 0;
    uint64_t& damaged = n_damaged_bytes == nullptr ? unused : *n_damaged_bytes;
    uint64_t& dropped = n_dropped == nullptr ? unused : *n_dropped;
    damaged = 0;
    dropped = 0;
    FZ_REQUIRE_POINTER(from_path);
    FZ_REQUIRE_POINTER(to_path);
    const fz::Recovery found = fz::recoverArchive(*fz::openSource(from_path), to_path);
    damaged = found.n_damaged_bytes;
    dropped = found.n_dropped;
  });
}
