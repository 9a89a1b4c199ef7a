// fz_trust GOAL... [--release] [--count N] [--first N] [--seed N] [--jobs N] [--update]: runs goals
// and prints one line of JSON for each; the exit status is not zero when a promise was broken.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {

std::vector<Goal>& goals() {
  static std::vector<Goal> all;
  return all;
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

void print(const Goal& goal, const Report& report, double seconds) {
  std::string line = "{\"goal\":" + quoted(goal.id) + ",\"claim\":" + quoted(goal.claim) +
                     ",\"seconds\":" + std::to_string(seconds) + ",\"counts\":{";
  const char* separator = "";
  for (const auto& [what, n] : report.counts()) {
    line += separator + quoted(what) + ":" + std::to_string(n);
    separator = ",";
  }
  line += "},\"failures\":[";
  separator = "";
  for (const std::string& text : report.failures()) {
    line += separator + quoted(text);
    separator = ",";
  }
  std::printf("%s]}\n", line.c_str());
  std::fflush(stdout);
}

bool runGoal(const Goal& goal, const Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  Report report;
  try {
    goal.run(settings, report);
  } catch (const std::exception& e) {
    report.fail(std::string("ended by an exception: ") + e.what());
  }
  print(goal, report,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return report.failures().empty();
}

int run(int argc, char** argv) {
  Settings settings;
  settings.n_jobs = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--release") {
      settings.release = true;
    } else if (word == "--update") {
      settings.update = true;
    } else if (word == "--count" && has_value) {
      settings.count = std::strtoull(argv[++i], nullptr, 0);
    } else if (word == "--first" && has_value) {
      settings.first = std::strtoull(argv[++i], nullptr, 0);
    } else if (word == "--seed" && has_value) {
      settings.seed = std::strtoull(argv[++i], nullptr, 0);
    } else if (word == "--jobs" && has_value) {
      settings.n_jobs = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 0));
    } else {
      wanted.push_back(word);
    }
  }
  bool all_hold = true;
  std::size_t n_run = 0;
  for (const Goal& goal : goals()) {
    for (const std::string& id : wanted) {
      if ((id == goal.id || id == "all") && !wasStopped()) {
        all_hold = runGoal(goal, settings) && all_hold;
        ++n_run;
      }
    }
  }
  if (n_run == 0) {
    std::fprintf(stderr, "fz_trust: name a goal:");
    for (const Goal& goal : goals()) {
      std::fprintf(stderr, " %s", goal.id.c_str());
    }
    std::fprintf(stderr, "\n");
    return 2;
  }
  return all_hold ? 0 : 1;
}

}  // namespace
}  // namespace fz::trust

int main(int argc, char** argv) {
  return fz::trust::run(argc, argv);
}
