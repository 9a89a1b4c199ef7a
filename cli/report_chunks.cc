#include "report_chunks.h"

#include <algorithm>
#include <filesystem>

#include "archive/box_copy.h"
#include "archive/chunk_grid.h"
#include "archive_output.h"
#include "failure.h"
#include "field_io.h"
#include "inspect_any.h"
#include "output_io.h"
#include "progress.h"
#include "verify_chunks.h"

namespace fz::cli {

namespace {

/// Puts the values of a box to their places in the whole array.
void place(const Box& whole,
           const Box& box,
           std::size_t value_bytes,
           ByteView values,
           MutableByteView array) {
  forRuns(whole, box, value_bytes, [&](std::uint64_t offset, std::size_t n_done, std::size_t n) {
    std::copy_n(values.data() + n_done, n, array.data() + offset);
  });
}

/// As if the archive were one frame: the pipeline is that of its chunks, lengths are those of all.
FrameInfo infoOfWhole(const ArchiveInfo& archive, FrameInfo info) {
  info.dims = foldedDims(archive.extents);
  info.extents = archive.extents;
  info.place.reset();
  info.original_bytes = archive.original_bytes;
  info.header_bytes = 0;
  info.payload_bytes = archive.archive_bytes;
  info.bound = archive.bound;
  info.has_checksums = false;
  return info;
}

}  // namespace

ChunkedPage::ChunkedPage(const ArchiveReader& reader,
                         const std::string& archive,
                         const std::string& original,
                         const std::string& page,
                         const CommonOptions& common,
                         Progress& progress)
    : folder_(page == kStandardStream
                  ? (std::filesystem::temp_directory_path() / "fz_report").string()
                  : page) {
  const ArchiveInfo& about = reader.info();
  input_.original_name = inputName(original);
  input_.archive_name = inputName(archive);
  input_.info = infoOfWhole(about, inspectAny(archive).frame);
  input_.decode = {
      .limits = common.limits, .backend = parseBackend(common.backend), .threads = common.threads};
  archive_ = readBytes(archive);
  input_.frame = archive_;
  takeOriginal(reader, original, progress);
  takeDecoded(reader, common, progress);
  takeSample(reader);
}

report::Input ChunkedPage::input(const CheckReport& check) const {
  report::Input input = input_;
  input.check = check;
  return input;
}

MutableByteView ChunkedPage::room(std::size_t n_bytes) {
  files_.push_back(std::make_unique<AtomicFile>(folder_));
  return files_.back()->map(n_bytes);
}

void ChunkedPage::takeOriginal(const ArchiveReader& reader,
                               const std::string& path,
                               Progress& progress) {
  const ArchiveInfo& about = reader.info();
  original_ = openOriginal(path, about);
  input_.original = {about.type, foldedDims(about.extents), original_.field.bytes};
  if (original_.field.bytes.size() == about.original_bytes) {
    return;  // a file of plain values is memory already
  }
  const Box whole{AxisValues(about.extents.size(), 0), about.extents};
  const std::size_t value_bytes = getDataTypeSize(about.type);
  const MutableByteView array = room(about.original_bytes);
  std::vector<std::uint8_t> values;
  progress.beginBytes("reading", about.original_bytes);
  for (std::uint64_t chunk = 0; chunk < about.n_chunks; ++chunk) {
    const Box box = reader.chunkBox(chunk);
    values.resize(valueCount(box.extents) * value_bytes);
    original_.read(box, values);
    place(whole, box, value_bytes, values, array);
    progress.add(values.size());
  }
  input_.original.bytes = array;
}

void ChunkedPage::takeDecoded(const ArchiveReader& reader,
                              const CommonOptions& common,
                              Progress& progress) {
  const ArchiveInfo& about = reader.info();
  const Box whole{AxisValues(about.extents.size(), 0), about.extents};
  const MutableByteView array = room(about.original_bytes);
  const DecompressOptions how{
      .limits = common.limits, .backend = input_.decode.backend, .threads = common.threads};
  progress.beginBytes("decoding", about.original_bytes);
  reader.readParts(
      whole,
      [&](const Box& part, ByteView values) {
        place(whole, part, getDataTypeSize(about.type), values, array);
        progress.add(values.size());
      },
      how);
  input_.decoded = array;
}

/// Stages are measured on a chunk from the middle.
void ChunkedPage::takeSample(const ArchiveReader& reader) {
  const ArchiveInfo& about = reader.info();
  const std::uint64_t chunk = about.n_chunks / 2;
  const Box box = reader.chunkBox(chunk);
  auto sample = std::make_shared<report::ChunkSample>();
  sample->n_chunks = about.n_chunks;
  sample->values.resize(valueCount(box.extents) * getDataTypeSize(about.type));
  original_.read(box, sample->values);
  sample->original = {about.type, foldedDims(box.extents), sample->values};
  sample->frame = reader.frame(chunk);
  sample->info = inspect(sample->frame);
  input_.chunk = std::move(sample);
}

}  // namespace fz::cli
