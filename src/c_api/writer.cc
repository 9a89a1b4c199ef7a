// Archives of chunks: writing.
#include <algorithm>
#include <memory>
#include <string_view>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/versioned.h"
#include "fz/archive.h"

using fz::ErrorCode;
using fz::c_api::guarded;

namespace {

/// Functions of the caller.
class CalledSink : public fz::ByteSink {
 public:
  explicit CalledSink(const fz_sink& sink) : sink_(sink) {}
  void write(fz::ByteView bytes) override {
    const int32_t failure = sink_.write(bytes.data(), bytes.size(), sink_.context);
    FZ_REQUIRE(failure == 0, ErrorCode::kIo,
               "fz_sink: {} bytes could not be written (the function returned {})", bytes.size(),
               failure);
  }

 private:
  fz_sink sink_;
};

}  // namespace

struct fz_writer {
  std::unique_ptr<CalledSink> sink;  ///< none for a file; outlives the writer
  std::unique_ptr<fz::ArchiveWriter> writer;
};

namespace {

fz::DataType typeOf(const fz_pipeline& handle, const char* who) {
  const fz::DataType asked = handle.recipe.overrides.input_type;
  const fz::DataType type = fz::isKnown(asked) ? asked : handle.masked_type;
  FZ_REQUIRE(fz::isKnown(type), ErrorCode::kInvalidArgument,
             "{}: the pipeline was made without a type; set fz_options.type", who);
  return type;
}

fz::ArchiveOptions archiveOptions(const fz_pipeline& handle,
                                  const fz_writer_options& given,
                                  const char* who) {
  fz::c_api::requireEncoder(handle, who);
  FZ_REQUIRE(!handle.device_memory, ErrorCode::kUnsupported,
             "{}: archives of chunks are written from host memory only", who);
  FZ_REQUIRE(given.n_axes >= 0 && given.n_axes <= FZ_MAX_AXES, ErrorCode::kInvalidArgument,
             "fz_writer_options: n_axes is {}, allowed are 0 to {}", given.n_axes, FZ_MAX_AXES);
  fz::ArchiveOptions options;
  options.compress = fz::c_api::compressOptionsOf(handle);
  fz::c_api::setBound(handle, options.compress);
  options.extents.assign(given.extents, given.extents + given.n_axes);
  if (std::any_of(given.chunk, given.chunk + given.n_axes, [](uint64_t n) { return n != 0; })) {
    options.chunk.assign(given.chunk, given.chunk + given.n_axes);
  }
  options.verify = given.verify != 0;
  if (given.has_range != 0) {
    options.range = fz::ValueRange{given.range[0], given.range[1]};
  }
  return options;
}

}  // namespace

fz_status fz_writer_create(const char* path,
                           const fz_pipeline* pipeline,
                           const fz_writer_options* options,
                           fz_writer** writer) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(writer);
    *writer = nullptr;
    FZ_REQUIRE_POINTER(path);
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(options);
    const fz_writer_options known =
        fz::c_api::readVersioned(*options, sizeof(*options), "fz_writer_options");
    auto made = std::make_unique<fz_writer>();
    made->writer = std::make_unique<fz::ArchiveWriter>(typeOf(*pipeline, who),
                                                       archiveOptions(*pipeline, known, who), path,
                                                       known.keep_existing == 0);
    *writer = made.release();
  });
}

fz_status fz_writer_create_callbacks(const fz_sink* sink,
                                     const fz_pipeline* pipeline,
                                     const fz_writer_options* options,
                                     fz_writer** writer) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(writer);
    *writer = nullptr;
    FZ_REQUIRE_POINTER(sink);
    FZ_REQUIRE_POINTER(sink->write);
    FZ_REQUIRE_POINTER(pipeline);
    FZ_REQUIRE_POINTER(options);
    const fz_writer_options known =
        fz::c_api::readVersioned(*options, sizeof(*options), "fz_writer_options");
    auto made = std::make_unique<fz_writer>();
    made->sink = std::make_unique<CalledSink>(*sink);
    made->writer = std::make_unique<fz::ArchiveWriter>(
        typeOf(*pipeline, who), archiveOptions(*pipeline, known, who), *made->sink);
    *writer = made.release();
  });
}

void fz_writer_destroy(fz_writer* writer) {
  delete writer;
}

uint64_t fz_writer_chunk_count(const fz_writer* writer) {
  return writer == nullptr ? 0 : writer->writer->chunkCount();
}

fz_status fz_writer_chunk_box(const fz_writer* writer,
                              uint64_t chunk,
                              uint64_t* origin,
                              uint64_t* extents) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(writer);
    FZ_REQUIRE_POINTER(origin);
    FZ_REQUIRE_POINTER(extents);
    const fz::Box box = writer->writer->chunkBox(chunk);
    std::copy(box.origin.begin(), box.origin.end(), origin);
    std::copy(box.extents.begin(), box.extents.end(), extents);
  });
}

fz_status fz_writer_append(fz_writer* writer, const void* values, size_t n_bytes) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(writer);
    FZ_REQUIRE(values != nullptr || n_bytes == 0, ErrorCode::kInvalidArgument, "{}: values is NULL",
               who);
    writer->writer->append({static_cast<const std::uint8_t*>(values), n_bytes});
  });
}

fz_status fz_writer_put(fz_writer* writer, uint64_t chunk, const void* values, size_t n_bytes) {
  return guarded(__func__, [&](const char* who) {
    FZ_REQUIRE_POINTER(writer);
    FZ_REQUIRE(values != nullptr || n_bytes == 0, ErrorCode::kInvalidArgument, "{}: values is NULL",
               who);
    writer->writer->put(chunk, {static_cast<const std::uint8_t*>(values), n_bytes});
  });
}

fz_status fz_writer_finish(fz_writer* writer, uint64_t* archive_bytes) {
  return guarded(__func__, [&](const char* who) {
    if (archive_bytes != nullptr) {
      *archive_bytes = 0;
    }
    FZ_REQUIRE_POINTER(writer);
    const std::uint64_t n_bytes = writer->writer->finish();
    if (archive_bytes != nullptr) {
      *archive_bytes = n_bytes;
    }
  });
}
