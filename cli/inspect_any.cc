#include "inspect_any.h"

#include "archive_output.h"
#include "failure.h"
#include "field_io.h"

namespace fz::cli {

/// Missing values are counted in the headers of all chunks.
NamedFrame inspectAny(const std::string& file) {
  const bool is_pipe = file == kStandardStream;
  const InputBytes piped = is_pipe ? readBytes(file) : InputBytes();
  if (is_pipe ? !isChunkedArchive(*sourceOf(piped)) : !isChunkedFile(file)) {
    return {file, is_pipe ? inspect(piped) : reading([&] { return inspectFile(file); })};
  }
  const ArchiveReader reader =
      is_pipe ? ArchiveReader(sourceOf(piped)) : openArchive(file, {}, nullptr);
  std::optional<FrameInfo> first;
  MissingInfo missing;
  for (std::uint64_t chunk = 0; chunk < reader.info().n_chunks; ++chunk) {
    if (!reader.hasChunk(chunk)) {
      continue;
    }
    FrameInfo info = reader.inspect(chunk);
    if (info.missing) {
      missing.n_missing += info.missing->n_missing;
      missing.n_filled += info.missing->n_filled;
      missing.fill = info.missing->fill;
    }
    first = first ? first : std::optional(std::move(info));
  }
  NamedFrame named{file, first.value_or(FrameInfo{}), reader.info()};
  if (missing.n_missing > 0) {
    named.frame.missing = missing;
  }
  return named;
}

}  // namespace fz::cli
