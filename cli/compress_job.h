#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/host_run.h"
#include "chunk_options.h"
#include "field_io.h"
#include "fz/host_api.h"
#include "options.h"
#include "pipeline_options.h"
#include "report/hook.h"

namespace fz::cli {

/// What --fill says.
struct FillChoice {
  std::vector<double> values;  ///< that mean "missing", besides those that a file names
  bool is_none = false;        ///< there are none, whatever files or data look like
};

/// Throws Failure(kUsage) for what is neither numbers nor "none" alone.
FillChoice parseFill(const std::vector<std::string>& words);
/// Applies it to what a file says.
void applyFill(const FillChoice& choice,
               const std::vector<double>& in_file,
               CompressOptions& options);

/// The arguments of `fz compress` as they were given.
struct CompressArguments {
  CommonOptions common;
  PipelineArguments pipeline;
  std::string type;
  std::string dims;
  std::vector<std::string> fill;
  ChunkArguments chunk;
  ReportOptions report;
  bool verify = false;
  bool strict = false;
};

/// The arguments after parsing, the same for every file.
struct CompressJob {
  CommonOptions common;
  PipelineChoice pipeline;
  FieldRequest request;
  FillChoice fill;
  ChunkChoice chunk;
  ReportOptions report;
  bool verify = false;
  bool strict = false;  ///< what may lose values is an error
};

/// Throws Failure(kUsage) for arguments that are wrong or contradict each other.
CompressJob makeJob(const CompressArguments& arguments);
/// What the archive of an input is called when nothing is said.
std::string ownName(const std::string& input);
CompressOptions optionsFor(const CompressJob& job, const Field& field);
/// An archive is one frame, so the whole field passes the pipeline at once; what that takes is
/// known before it does. Throws Failure(kMemory).
void checkMemoryFor(const CompressJob& job, const Field& field, const HostCompression& compression);

}  // namespace fz::cli
