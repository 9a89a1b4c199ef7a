#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fz/host_api.h"
#include "fz/span.h"
#include "pipeline/bound_check.h"
#include "report/error_scale.h"
#include "report/field_view.h"

/// One page about one archive: pictures, figures and where they come from.
namespace fz::report {

/// One preset's result, for pages that compare several.
struct PresetResult {
  std::string name;
  double ratio = 0.0;
  double bound = 0.0;  ///< absolute
  double max_error = 0.0;
  double psnr = 0.0;
  std::size_t n_violations = 0;
  double compress_gbs = 0.0;
  double decompress_gbs = 0.0;
};

/// Of an archive of chunks one of them, on which stages are measured.
struct ChunkSample {
  std::uint64_t n_chunks = 0;
  std::vector<std::uint8_t> values;
  FieldView original;  ///< of these values
  Frame frame;
  FrameInfo info;
};

/// All that a page is made of. Views must outlive the call.
struct Input {
  std::string command;        ///< as it was typed
  std::string original_name;  ///< for people; any bytes
  std::string archive_name;
  FieldView original;
  ByteView decoded;  ///< as long as the original
  ByteView frame;    ///< or the archive, where it has several
  FrameInfo info;
  std::shared_ptr<const ChunkSample> chunk;  ///< for an archive of chunks
  CheckReport check;
  /// How the archive was made; without it there are no times of compression and no sweep.
  std::optional<CompressOptions> options;
  DecompressOptions decode;
  /// Bounds of a rate-distortion curve, in the mode of the archive's bound.
  std::vector<double> sweep_bounds;
  std::vector<PresetResult> presets;
};

/// "auto": seven bounds, half a decade apart, with the archive's own in the middle; or numbers with
/// commas between them. Throws Failure(kUsage).
std::vector<double> parseSweep(const std::string& text, const FrameInfo& info);

/// The page as HTML that needs nothing but itself. Runs the pipeline again to measure its stages.
std::string makePage(const Input& input);

}  // namespace fz::report
