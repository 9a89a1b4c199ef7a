#pragma once

#include <string>
#include <string_view>

#include "field_io.h"
#include "fz/host_api.h"
#include "options.h"
#include "pipeline_options.h"
#include "report/hook.h"

namespace fz::cli {

inline constexpr std::string_view kArchiveSuffix = ".fzm";

/// The arguments of `fz compress` as they were given.
struct CompressArguments {
  CommonOptions common;
  PipelineArguments pipeline;
  std::string type;
  std::string dims;
  ReportOptions report;
  bool verify = false;
};

/// The arguments after parsing, the same for every file.
struct CompressJob {
  CommonOptions common;
  PipelineChoice pipeline;
  FieldRequest request;
  ReportOptions report;
  bool verify = false;
};

/// Throws Failure(kUsage) for arguments that are wrong or contradict each other.
CompressJob makeJob(const CompressArguments& arguments);
/// What the archive of an input is called when nothing is said.
std::string ownName(const std::string& input);
CompressOptions optionsFor(const CompressJob& job, const Field& field);
/// An archive is one frame, so the whole field passes the pipeline at once; what that takes is
/// known before any of it is read. Throws Failure(kMemory).
void checkMemoryFor(const CompressJob& job, const Field& field, const CompressOptions& options);

}  // namespace fz::cli
