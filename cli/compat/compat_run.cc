// fzgmod-cli: its modes, on the code of fz.
#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <sstream>

#include "bench_run.h"
#include "compat/compat_options.h"
#include "compat/compat_pipeline.h"
#include "failure.h"
#include "field_io.h"
#include "fz/backend_memory.h"
#include "fz/host_api.h"
#include "fzgmod_cli.h"
#include "output_io.h"
#include "pipeline/compressor.h"
#include "pipeline/stat.h"
#include "progress.h"
#include "standard_streams.h"

namespace fz::cli::compat {

namespace {

double gbPerSecond(std::size_t n_bytes, double seconds) {
  return seconds > 0.0 ? static_cast<double>(n_bytes) / seconds * 1e-9 : 0.0;
}

void line(const char* label, const std::string& value) {
  fmt::print("  {:<18}: {}\n", label, value);
}

InputBytes readInput(const Options& options) {
  InputBytes bytes = readBytes(options.input);
  const std::size_t value_bytes = getDataTypeSize(options.type);
  if (bytes.size() == 0) {
    throw Failure(ExitCode::kUsage, fmt::format("input file '{}' is empty", options.input));
  }
  if (bytes.size() % value_bytes != 0) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("input of {} bytes is not a multiple of the element size {}",
                              bytes.size(), value_bytes));
  }
  if (options.dims && *countOf(*options.dims) != bytes.size() / value_bytes) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("dims hold {} values, but the input has {}", *countOf(*options.dims),
                              bytes.size() / value_bytes));
  }
  return bytes;
}

CompressOptions compressOptions(const Options& options) {
  CompressOptions own;
  own.lossless_fallback = false;  // the original writes what its stages make
  if (options.config.empty()) {
    own.preset = "--stages";
    own.config_toml = stagesToToml(options);
  } else {
    const InputBytes file = readBytes(options.config);
    own.preset = options.config;
    own.config_toml = std::string(file.data(), file.data() + file.size()) + "\n";
    own.dims = {0, 0, 0};  // as the file says
  }
  own.dims = options.dims.value_or(own.dims);
  return own;
}

void printProfile(const Options& options, const PipelinePerfResult& perf) {
  if (options.profile) {
    std::ostringstream text;
    perf.print(text);
    fmt::print("{}", text.str());
  }
}

template <class T>
void printQuality(const T* original, const T* decoded, std::size_t n_values) {
  const ReconstructionStats stats = calculateStatistics(original, decoded, n_values);
  line("Value Range", fmt::format("{:.6g}", stats.value_range));
  line("Max Abs Error", fmt::format("{:.6g}", stats.max_error));
  line("PSNR", fmt::format("{:.4f} dB", stats.psnr));
  line("NRMSE", fmt::format("{:.6g}", stats.nrmse));
}

template <class T>
std::vector<double> asDoubles(ByteView bytes) {
  const T* values = reinterpret_cast<const T*>(bytes.data());
  std::vector<double> out;
  out.reserve(bytes.size() / sizeof(T));
  std::transform(values, values + bytes.size() / sizeof(T), std::back_inserter(out),
                 [](T x) { return static_cast<double>(x); });
  return out;
}

void printQuality(DataType type, ByteView original, ByteView decoded) {
  const auto doubles = [type](ByteView bytes) {
    return type == DataType::INT32   ? asDoubles<std::int32_t>(bytes)
           : type == DataType::INT64 ? asDoubles<std::int64_t>(bytes)
                                     : asDoubles<double>(bytes);
  };
  if (type != DataType::FLOAT32) {
    const std::vector<double> x = doubles(original);
    printQuality(x.data(), doubles(decoded).data(), x.size());
    return;
  }
  printQuality(reinterpret_cast<const float*>(original.data()),
               reinterpret_cast<const float*>(decoded.data()), original.size() / sizeof(float));
}

void runCompress(const Options& options) {
  const std::string output = options.output.empty() ? options.input + ".fzm" : options.output;
  const InputBytes input = readInput(options);
  Pipeline pipeline(input.size(), options.strategy, static_cast<float>(options.pool_multiplier));
  pipeline.setWarmupOnFinalize(options.warmup);
  configure(pipeline, options.type, compressOptions(options));
  pipeline.enableProfiling(options.profile);
  const Backend backend = pipeline.getBackend();
  std::unique_ptr<BackendMemory> on_device;
  const void* data = input.data();
  if (backend == Backend::CUDA) {
    on_device = std::make_unique<BackendMemory>(backend, input.size());
    on_device->upload(input);
    data = on_device->data();
  }
  const auto start = std::chrono::steady_clock::now();
  const CompressedView view = pipeline.compress(data, input.size());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (backend == Backend::CUDA) {
    std::vector<std::uint8_t> frame(view.n_bytes);
    BackendMemory::fetch(backend, view.data, frame);
    writeOutput(output, Existing::kReplace, {}, frame);
  } else {
    writeOutput(output, Existing::kReplace, {},
                {static_cast<const std::uint8_t*>(view.data), view.n_bytes});
  }
  if (options.report) {
    fmt::print("[Compress Report]\n");
    line("Input size", fmt::format("{} bytes", input.size()));
    line("Compressed size", fmt::format("{} bytes", view.n_bytes));
    line("Ratio", fmt::format("{:.4f}", static_cast<double>(input.size()) /
                                            static_cast<double>(view.n_bytes)));
    line("Time", fmt::format("{:.3f} ms", seconds * 1e3));
    line("Throughput", fmt::format("{:.3f} GB/s", gbPerSecond(input.size(), seconds)));
  }
  printProfile(options, pipeline.getLastPerfResult());
}

/// The original of a comparison, which must be as long as the result.
InputBytes readOriginal(const std::string& path, std::size_t n_bytes) {
  InputBytes original = readBytes(path);
  if (original.size() != n_bytes) {
    throw Failure(ExitCode::kBound, fmt::format("size mismatch: '{}' has {} bytes, the result {}",
                                                path, original.size(), n_bytes));
  }
  return original;
}

void runDecompress(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const InputBytes frame = readBytes(options.input);
  const FrameInfo info = inspect(frame);
  Pipeline pipeline;
  pipeline.enableProfiling(options.profile);
  Result result(options.output, Existing::kReplace, "");
  const std::size_t n_bytes =
      pipeline.decompressFrame(frame, [&](std::size_t n) { return result.provide(n); });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  InputBytes original;
  if (!options.compare.empty()) {
    original = readOriginal(options.compare, n_bytes);
  }
  if (options.report || !options.compare.empty()) {
    fmt::print("[Decompress Report]\n");
    line("Output size", fmt::format("{} bytes", n_bytes));
    line("Time", fmt::format("{:.3f} ms", seconds * 1e3));
    line("Throughput", fmt::format("{:.3f} GB/s", gbPerSecond(n_bytes, seconds)));
  }
  if (!options.compare.empty()) {
    printQuality(info.type, original, result.bytes());
  }
  printProfile(options, pipeline.getLastPerfResult());
  if (!options.output.empty()) {
    result.finish();
  }
}

void printSummary(const char* what, const BenchResult& result, const BenchTimes& times) {
  fmt::print("[benchmark] {} summary\n", what);
  line("runs", fmt::format("{}", result.n_runs));
  line("host ms mean", fmt::format("{:.4f}", times.call.mean * 1e3));
  line("dag ms mean", fmt::format("{:.4f}", times.stages_mean * 1e3));
  line("throughput GB/s", fmt::format("{:.3f}", gbPerSecond(result.field_bytes, times.call.mean)));
  line("host ms median", fmt::format("{:.4f} (p5 {:.4f}, p95 {:.4f})", times.call.median * 1e3,
                                     times.call.p5 * 1e3, times.call.p95 * 1e3));
}

void printStages(const char* what, const BenchTimes& times) {
  for (const BenchStage& stage : times.stages) {
    fmt::print("  {:<11}{:<44}{:>10.4f} ms {:>13} -> {} bytes\n", what, stage.name,
               stage.seconds * 1e3, stage.input_bytes, stage.output_bytes);
  }
}

void runBenchmark(const Options& options) {
  const InputBytes input = readInput(options);
  BenchPlan plan;
  plan.n_warmups = options.warmup ? 2 : 1;
  plan.n_runs = options.runs;
  plan.strategy = options.strategy;
  plan.pool_multiplier = static_cast<float>(options.pool_multiplier);
  plan.minds_missing = false;
  Progress silent(ProgressMode::kNever, options.input);
  const BenchResult result = runBench(options.type, input, compressOptions(options), plan, silent);
  printSummary("compress", result, result.compress);
  printSummary("decompress", result, result.decompress);
  if (options.profile) {
    printStages("compress", result.compress);
    printStages("decompress", result.decompress);
  }
  if (!options.report && options.compare.empty()) {
    return;
  }
  const InputBytes original =
      options.compare.empty() ? input : readOriginal(options.compare, result.decoded.size());
  fmt::print("[Quality Report]\n");
  line("Input size", fmt::format("{} bytes", input.size()));
  line("Compressed size", fmt::format("{} bytes", result.frame.frameBytes()));
  line("Ratio", fmt::format("{:.4f}", result.frame.ratio()));
  printQuality(options.type, original, result.decoded);
}

int run(const std::vector<std::string>& words) {
  const Options options = parseOptions(words);
  if (options.help) {
    fmt::print("{}", usageText());
    return 0;
  }
  for (const std::string& option : options.unused_with_config) {
    say("[fzgmod-cli] warning: {} has no effect with -c\n", option);
  }
  switch (options.mode) {
    case Mode::kCompress:
      runCompress(options);
      break;
    case Mode::kDecompress:
      runDecompress(options);
      break;
    case Mode::kBenchmark:
      runBenchmark(options);
      break;
    case Mode::kNone:
      break;
  }
  return 0;
}

}  // namespace

}  // namespace fz::cli::compat

int fzgmod_cli_main(int argc, char** argv) {
  using fz::cli::Failure;
  namespace compat = fz::cli::compat;
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    if (words.empty()) {
      throw Failure(fz::cli::ExitCode::kUsage, "no arguments");
    }
    const int code = compat::run(words);
    if (std::fflush(stdout) != 0) {
      throw Failure(fz::cli::ExitCode::kIo, "cannot write standard output");
    }
    return code;
  } catch (...) {
    const Failure failure = fz::cli::currentFailure(fz::cli::Task::kEncode);
    fz::cli::say("[fzgmod-cli] error: {}\n", failure.what());
    const std::string usage = compat::usageText();
    // Without a check: when standard output is what failed, standard error has said so.
    std::fwrite(usage.data(), 1, usage.size(), stdout);
    std::fflush(stdout);
    return 1;
  }
}
