#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chunked_input.h"
#include "format/file_io.h"
#include "fz/archive.h"
#include "input_bytes.h"
#include "options.h"
#include "pipeline/bound_check.h"
#include "report/report.h"

namespace fz::cli {

class Progress;

/// What a page shows of an archive of chunks. A page looks at all values several times, so those
/// that were decoded stand in a file without a name in the page's folder, and so does an original
/// that is not a file of plain values: memory stays that of a few chunks.
class ChunkedPage {
 public:
  /// Decodes the archive. `page` is the path of the page. Throws Failure, Error; Error(kIo) where
  /// its folder has no room.
  ChunkedPage(const ArchiveReader& reader,
              const std::string& archive,
              const std::string& original,
              const std::string& page,
              const CommonOptions& common,
              Progress& progress);

  /// `check` is what checkChunks() said. Valid as long as this object.
  report::Input input(const CheckReport& check) const;

 private:
  MutableByteView room(std::size_t n_bytes);
  void takeOriginal(const ArchiveReader& reader, const std::string& path, Progress& progress);
  void takeDecoded(const ArchiveReader& reader, const CommonOptions& common, Progress& progress);
  void takeSample(const ArchiveReader& reader);

  std::string folder_;
  std::vector<std::unique_ptr<AtomicFile>> files_;
  InputBytes archive_;
  ChunkedInput original_;
  report::Input input_;
};

}  // namespace fz::cli
