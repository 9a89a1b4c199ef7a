// The main job from end to end: a field, every preset, decoded and checked, as a table and a page.
//
//   fz_demo [--out DIR] [--field FILE --type f32|f64 --dims XxYxZ] [--bound 1e-3] [--threads N]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <vector>

#include "demo_report.h"
#include "fzgpumodules.h"

namespace {

using fz::demo::Field;
using fz::demo::Row;

/// A field like weather on a sphere: large waves, fronts, and small-scale noise.
Field makeField() {
  Field field{"generated", fz::DataType::FLOAT32, {720, 360, 12}, {}};
  const std::size_t n = field.dims[0] * field.dims[1] * field.dims[2];
  std::vector<float> values(n);
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i % field.dims[0]) / 720.0 * 6.283185;
    const std::size_t row = i / field.dims[0] % field.dims[1];
    const double y = static_cast<double>(row) / 360.0 * 3.141593;
    const std::size_t layer = i / (field.dims[0] * field.dims[1]);
    const auto z = static_cast<double>(layer);
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double noise = static_cast<double>(state >> 40) / 16777216.0 - 0.5;
    const double front = std::tanh(8 * std::sin(3 * x + 0.2 * z) * std::sin(y));
    values[i] = static_cast<float>(260 + 40 * std::sin(y) + 6 * std::sin(5 * x + 0.3 * z) * y +
                                   4 * front + 0.05 * noise);
  }
  field.bytes.resize(n * sizeof(float));
  std::copy_n(reinterpret_cast<const std::uint8_t*>(values.data()), field.bytes.size(),
              field.bytes.data());
  return field;
}

Field readField(const std::string& path, const std::string& type, const std::string& dims) {
  Field field{path, fz::dataTypeFromString(type).value_or(fz::DataType::UNKNOWN), {0, 1, 1}, {}};
  if (field.type != fz::DataType::FLOAT32 && field.type != fz::DataType::FLOAT64) {
    throw fz::InvalidArgument("--type must be f32 or f64, not '" + type + "'");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw fz::Error(fz::ErrorCode::kIo, "cannot open '" + path + "'");
  }
  field.bytes.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  const std::size_t n_values = field.bytes.size() / fz::getDataTypeSize(field.type);
  field.dims[0] = n_values;
  if (!dims.empty()) {
    std::istringstream extents(dims);
    std::string extent;
    for (std::size_t i = 0; i < 3 && std::getline(extents, extent, 'x'); ++i) {
      field.dims[i] = std::stoul(extent);
    }
  }
  if (field.dims[0] * field.dims[1] * field.dims[2] != n_values) {
    throw fz::InvalidArgument(fmt::format("--dims {} hold {} values, the file has {}", dims,
                                          field.dims[0] * field.dims[1] * field.dims[2], n_values));
  }
  return field;
}

template <class F>
double bestSeconds(F f) {
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

template <class T>
void compare(const Field& field, const void* decoded, double bound, Row& row) {
  const T* original = reinterpret_cast<const T*>(field.bytes.data());
  const T* values = static_cast<const T*>(decoded);
  const std::size_t n = field.bytes.size() / sizeof(T);
  const fz::ReconstructionStats stats = fz::calculateStatistics(original, values, n);
  row.max_error = stats.max_error;
  row.psnr = stats.psnr;
  row.n_violations = fz::countBoundViolations(original, values, n, bound);
}

/// One preset on one pipeline object, as a program would use it: built once, run many times.
Row runPreset(const fz::Preset& preset, const Field& field, double bound, std::size_t threads) {
  Row row;
  row.name = preset.name;
  fz::Pipeline pipeline;
  pipeline.setBackend(fz::Backend::CPU);
  pipeline.setThreads(threads);
  fz::ConfigOverrides overrides;
  overrides.input_type = field.type;
  overrides.dims = field.dims;
  overrides.params = {{"error_bound", fmt::format("{}", bound)}, {"error_bound_mode", "NOA"}};
  pipeline.loadConfigText(std::string(preset.toml), row.name, overrides);
  void* frame = nullptr;
  std::size_t n_frame = 0;
  void* decoded = nullptr;
  std::size_t n_decoded = 0;
  const double compress_s = bestSeconds(
      [&] { pipeline.compress(field.bytes.data(), field.bytes.size(), &frame, &n_frame); });
  const double decompress_s =
      bestSeconds([&] { pipeline.decompress(frame, n_frame, &decoded, &n_decoded); });
  if (n_decoded != field.bytes.size()) {
    throw fz::Error(fz::ErrorCode::kInternal, "decoded length differs from the original");
  }
  const fz::FrameInfo info = fz::inspect({static_cast<const std::uint8_t*>(frame), n_frame});
  row.ratio = info.ratio();
  row.bound = info.bound->absolute;
  row.compress_gbs = static_cast<double>(field.bytes.size()) / compress_s * 1e-9;
  row.decompress_gbs = static_cast<double>(field.bytes.size()) / decompress_s * 1e-9;
  if (field.type == fz::DataType::FLOAT32) {
    compare<float>(field, decoded, row.bound, row);
  } else {
    compare<double>(field, decoded, row.bound, row);
  }
  return row;
}

int run(const std::string& out, const Field& field, double bound, std::size_t threads) {
  fmt::print("field: {}, {} {} x {} x {}, {:.1f} MB\n", field.name, dataTypeToString(field.type),
             field.dims[0], field.dims[1], field.dims[2],
             static_cast<double>(field.bytes.size()) * 1e-6);
  fmt::print("bound: {} of the value range, checked exactly on every value\n\n", bound);
  fmt::print("{}", fz::demo::tableHead());
  std::vector<Row> rows;
  for (const fz::Preset& preset : fz::allPresets()) {
    try {
      rows.push_back(runPreset(preset, field, bound, threads));
      fmt::print("{}", fz::demo::tableLine(rows.back()));
    } catch (const fz::Error& e) {
      fmt::print("{:<26} refused: {}\n", preset.name, e.what());
    }
    std::fflush(stdout);
  }
  if (rows.empty()) {
    fmt::print("\nno preset takes this field\n");
    return 1;
  }
  std::filesystem::create_directories(out);
  const std::string page = out + "/fz_demo.html";
  std::ofstream(page) << fz::demo::htmlPage(field, bound, threads, rows);
  std::size_t n_violations = 0;
  for (const Row& row : rows) {
    n_violations += row.n_violations;
  }
  fmt::print("\nreport: {}\n{}\n", page,
             n_violations == 0 ? "every value of every preset is within its bound"
                               : "THE BOUND IS BROKEN: please report this");
  return n_violations == 0 ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): of options named twice here
  CLI::App app{"Compresses a field with every preset, checks the result, writes a report."};
  std::string out = "build/demo";
  std::string file;
  std::string type = "f32";
  std::string dims;
  double bound = 1e-3;
  std::size_t threads = 0;
  app.add_option("--out", out, "folder for the report")->capture_default_str();
  app.add_option("--field", file, "raw little-endian field instead of the generated one");
  app.add_option("--type", type, "f32 or f64")->capture_default_str();
  app.add_option("--dims", dims, "XxYxZ, x fastest");
  app.add_option("--bound", bound, "error bound as a fraction of the value range")
      ->capture_default_str();
  app.add_option("--threads", threads, "threads; 0 means all")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(out, file.empty() ? makeField() : readField(file, type, dims), bound, threads);
  } catch (const std::exception& e) {
    fmt::print(stderr, "fz_demo: {}\n", e.what());
    return 1;
  }
}
