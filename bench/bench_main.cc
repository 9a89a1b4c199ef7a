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

int main(int argc, char** argv) {
  CLI::App app{
      "Speed of stages and presets; % is bytes in and out, of those of a one-thread memcpy in the "
      "same run."};
  fz::bench::Options options;
  std::size_t megabytes = 64;
  std::string json_path;
  bool stages_only = false;
  bool presets_only = false;
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
    if (!presets_only) {
      const auto rows = fz::bench::benchStages(options);
      print("stage, one thread", rows);
      json["stages"] = toJson(rows);
    }
    if (!stages_only) {
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
