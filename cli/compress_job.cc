#include "compress_job.h"

#include <fmt/format.h>

#include "commands.h"
#include "hdf5_io.h"
#include "memory_check.h"
#include "output_io.h"

namespace fz::cli {

namespace {

/// No archive and no page may replace another of the same run.
void checkDistinct(const CompressJob& job) {
  DistinctOutputs outputs;
  for (const std::string& input : job.common.files) {
    outputs.add(outputPath(job.common, input, ownName(input)), input);
    outputs.add(pagePath(job.report, job.common, input), input);
  }
}

}  // namespace

std::string ownName(const std::string& input) {
  const std::optional<Hdf5Name> dataset = hdf5Name(input);
  return (dataset ? flatName(*dataset) : input) + std::string(kArchiveSuffix);
}

CompressJob makeJob(const CompressArguments& arguments) {
  CompressJob job;
  job.common = arguments.common;
  job.common.files = filesOrStandardInput(arguments.common.files);
  job.verify = arguments.verify;
  job.pipeline = choosePipeline(arguments.pipeline);
  if (!arguments.type.empty()) {
    job.request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    job.request.dims = parseDims(arguments.dims);
  }
  checkCommon(arguments.common);
  checkOutputCount(job.common);
  job.report = arguments.report;
  checkReport(job.report, job.common);
  checkDistinct(job);
  return job;
}

CompressOptions optionsFor(const CompressJob& job, const Field& field) {
  CompressOptions options = compressOptions(job.pipeline, field.type);
  options.backend = parseBackend(job.common.backend);
  options.threads = job.common.threads;
  options.max_memory_bytes = job.common.limits.max_memory_bytes;
  options.dims = field.dims;
  options.fill = field.fill;
  if (!field.has_shape && job.pipeline.has_config) {
    options.dims = {0, 0, 0};  // as the configuration says
  }
  return options;
}

void checkMemoryFor(const CompressJob& job, const Field& field, const CompressOptions& options) {
  std::uint64_t n_bytes = fz::estimateMemory(field.type, field.bytes.size(), options);
  n_bytes += field.bytes.isMapped() ? 0 : field.bytes.size();
  // A report needs the decoded values too, and about as much again for its figures.
  const unsigned n_fields = !job.report.path.empty() ? 2 : job.verify ? 1 : 0;
  n_bytes += n_fields * field.bytes.size();
  checkMemory({n_bytes, fmt::format("compressing {} bytes with {}{}", field.bytes.size(),
                                    job.pipeline.name, job.verify ? " and --verify" : "")},
              job.common.limits.max_memory_bytes);
}

}  // namespace fz::cli
