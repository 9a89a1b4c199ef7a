#include "compress_job.h"

#include <charconv>
#include <fmt/format.h>

#include "commands.h"
#include "failure.h"
#include "hdf5_io.h"
#include "memory_check.h"
#include "npy.h"
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

/// -r takes what can be compressed without asking back.
std::vector<std::string> inputsOf(const CompressArguments& arguments) {
  std::vector<std::string> files = filesOf(
      arguments.common,
      [&](const std::string& path) {
        return !path.ends_with(kArchiveSuffix) &&
               (!arguments.type.empty() || typeFromName(path) || isNpyName(path));
      },
      "archives and files whose type neither their name nor -t says");
  if (files.empty() && !arguments.common.files.empty()) {
    throw Failure(ExitCode::kUsage, "there is nothing to compress in these folders");
  }
  return files;
}

void checkRemovable(const CompressJob& job) {
  for (const std::string& input : job.common.files) {
    if (job.common.remove && hdf5Name(input)) {
      throw Failure(
          ExitCode::kUsage,
          fmt::format("--rm would remove more than the dataset '{}'; leave it out", input));
    }
  }
}

}  // namespace

std::string ownName(const std::string& input) {
  const std::optional<Hdf5Name> dataset = hdf5Name(input);
  return (dataset ? flatName(*dataset) : input) + std::string(kArchiveSuffix);
}

FillChoice parseFill(const std::vector<std::string>& words) {
  FillChoice choice;
  for (const std::string& word : words) {
    if (word == "none") {
      choice.is_none = true;
      continue;
    }
    double value = 0.0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || stop != word.data() + word.size()) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("--fill takes a number or 'none', not '{}'", word));
    }
    choice.values.push_back(value);
  }
  if (choice.is_none && !choice.values.empty()) {
    throw Failure(ExitCode::kUsage, "--fill none says that there are none; leave the others out");
  }
  return choice;
}

void applyFill(const FillChoice& choice,
               const std::vector<double>& in_file,
               CompressOptions& options) {
  options.suspect_fill = !choice.is_none;
  options.fill = choice.is_none ? std::vector<double>{} : in_file;
  options.fill.insert(options.fill.end(), choice.values.begin(), choice.values.end());
}

CompressJob makeJob(const CompressArguments& arguments) {
  CompressJob job;
  job.common = arguments.common;
  job.common.files = filesOrStandardInput(inputsOf(arguments));
  job.verify = arguments.verify;
  job.strict = arguments.strict;
  job.pipeline = choosePipeline(arguments.pipeline);
  if (!arguments.type.empty()) {
    job.request.type = parseType(arguments.type);
  }
  if (!arguments.dims.empty()) {
    job.request.extents = parseExtents(arguments.dims);
  }
  job.fill = parseFill(arguments.fill);
  job.chunk = parseChunk(arguments.chunk);
  checkCommon(job.common);
  checkRemovable(job);
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
  applyFill(job.fill, field.fill, options);
  if (field.has_shape) {
    options.extents = field.extents;
  } else if (job.pipeline.has_config) {
    options.dims = {0, 0, 0};  // as the configuration says
  }
  return options;
}

void checkMemoryFor(const CompressJob& job,
                    const Field& field,
                    const HostCompression& compression) {
  std::uint64_t n_bytes = compression.estimateMemory();
  n_bytes += field.bytes.isMapped() ? 0 : field.bytes.size();
  // A report needs the decoded values too, and about as much again for its figures.
  const unsigned n_fields = !job.report.path.empty() ? 2 : job.verify ? 1 : 0;
  n_bytes += n_fields * field.bytes.size();
  checkMemory({n_bytes, fmt::format("compressing {} bytes with {}{}", field.bytes.size(),
                                    job.pipeline.name, job.verify ? " and --verify" : "")},
              job.common.limits.max_memory_bytes);
}

}  // namespace fz::cli
