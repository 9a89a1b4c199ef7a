// Speed of every stage and every preset, beside a memcpy measured in the same run.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fstream>
#include <hwy/targets.h>
#include <nlohmann/json.hpp>

#include "bench_common.h"

namespace {

void print(const std::string& title, const std::vector<fz::bench::Row>& rows) {
  fmt::print("{:<74} {:>8} {:>7} {:>9} {:>9} {:>7} {:>7}\n", title, "ratio", "memcpy", "enc GB/s",
             "dec GB/s", "enc %", "dec %");
  for (const fz::bench::Row& row : rows) {
    fmt::print("{:<74} {:>8.2f} {:>7.2f} {:>9.2f} {:>9.2f} {:>7.1f} {:>7.1f}\n", row.name,
               row.ratio, row.memcpy_gbs, row.encode_gbs, row.decode_gbs, row.encodeShare(),
               row.decodeShare());
  }
  fmt::print("\n");
}

void print(const std::vector<fz::bench::MissingRow>& rows) {
  fmt::print("{:<34} {:>15} {:>25} {:>25} {:>12}\n", "35 % missing; ms: filled, missing", "ratio",
             "compress: ms, % of speed", "decompress", "% to ask");
  for (const fz::bench::MissingRow& row : rows) {
    fmt::print(
        "{:<34} {:>7.2f} {:>7.2f} {:>9.2f} {:>9.2f} {:>5.1f} {:>9.2f} {:>9.2f} {:>5.1f} "
        "{:>6.2f} {:>5.1f}\n",
        row.name, row.filled_ratio, row.missing_ratio, row.filled.compress_ms,
        row.missing.compress_ms, row.compressShare(), row.filled.decompress_ms,
        row.missing.decompress_ms, row.decompressShare(), row.askCost(), row.declaredCost());
  }
  fmt::print(
      "\n% to ask: what a field without missing values pays, with nothing declared and with "
      "one fill value declared\n");
}

nlohmann::json toJson(const std::vector<fz::bench::MissingRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const fz::bench::MissingRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"filled_ratio", row.filled_ratio},
                    {"missing_ratio", row.missing_ratio},
                    {"filled_compress_ms", row.filled.compress_ms},
                    {"filled_decompress_ms", row.filled.decompress_ms},
                    {"missing_compress_ms", row.missing.compress_ms},
                    {"missing_decompress_ms", row.missing.decompress_ms},
                    {"compress_percent", row.compressShare()},
                    {"decompress_percent", row.decompressShare()},
                    {"ask_percent", row.askCost()},
                    {"declared_percent", row.declaredCost()}});
  }
  return list;
}

nlohmann::json toJson(const std::vector<fz::bench::Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const fz::bench::Row& row : rows) {
    list.push_back({{"name", row.name},
                    {"ratio", row.ratio},
                    {"memcpy_gbs", row.memcpy_gbs},
                    {"encode_gbs", row.encode_gbs},
                    {"decode_gbs", row.decode_gbs},
                    {"encode_percent_of_memcpy", row.encodeShare()},
                    {"decode_percent_of_memcpy", row.decodeShare()}});
  }
  return list;
}

}  // namespace

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): its message is all to say
  CLI::App app{
      "Speed of stages and presets; % is bytes in and out, of those of a one-thread memcpy in the "
      "same run."};
  fz::bench::Options options;
  std::size_t megabytes = 64;
  std::string json_path;
  bool stages_only = false;
  bool presets_only = false;
  bool missing_only = false;
  app.add_option("--mib", megabytes, "size of the data in MiB")->capture_default_str();
  app.add_option("--threads", options.threads, "threads of the presets; stages run on one")
      ->capture_default_str();
  app.add_option("--runs", options.runs, "runs after one warm-up; the median counts")
      ->capture_default_str();
  app.add_option("--only", options.only, "only names that contain this");
  std::string fusion = "both";
  app.add_option("--fusion", fusion, "how presets run: stage by stage, in groups, or one and other")
      ->check(CLI::IsMember({"off", "auto", "both"}))
      ->capture_default_str();
  app.add_flag("--1d", options.in_1d, "presets get data without dims");
  std::string vectors = "all";
  app.add_option("--vectors", vectors, "widest vectors that may be used")
      ->check(CLI::IsMember({"all", "avx2", "none"}))
      ->capture_default_str();
  app.add_option("--json", json_path, "also write the rows to this file");
  app.add_flag("--stages", stages_only, "stages only");
  app.add_flag("--presets", presets_only, "presets only");
  app.add_flag("--missing", missing_only,
               "only what missing values cost presets: whole calls, best of all runs");
  CLI11_PARSE(app, argc, argv);
  options.n_bytes = megabytes << 20;
  if (fusion != "both") {
    options.fusions = {fusion == "off" ? fz::Fusion::Off : fz::Fusion::Auto};
  }
  if (vectors != "all") {
    hwy::GetChosenTarget().Update(vectors == "avx2" ? hwy::SupportedTargets() & HWY_AVX2 : 0);
  }
  nlohmann::json json;
  try {
    if (missing_only) {
      const auto rows = fz::bench::benchMissing(options);
      print(rows);
      json["missing"] = toJson(rows);
    }
    if (!presets_only && !missing_only) {
      const auto rows = fz::bench::benchStages(options);
      print("stage, one thread", rows);
      json["stages"] = toJson(rows);
    }
    if (!stages_only && !missing_only) {
      const auto rows = fz::bench::benchPresets(options);
      print(fmt::format("preset, {} threads",
                        options.threads == 0 ? "all" : std::to_string(options.threads)),
            rows);
      json["presets"] = toJson(rows);
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "fz_bench: {}\n", e.what());
    return 1;
  }
  if (!json_path.empty()) {
    std::ofstream(json_path) << json.dump(2) << "\n";
  }
  return 0;
}
