// R8: archives of every stage, type, setting and version are made anew and compared with
// committed hashes; what they decode to is compared as well.
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <sstream>

#include "fz/error.h"
#include "fz/host_api.h"
#include "trust/corpus.h"
#include "trust/trust.h"

namespace fz::trust {
namespace {

constexpr const char* kFile = FZ_SOURCE_DIR "/tests/trust/golden_hashes.tsv";

/// FNV-1a, 64 bits: enough to notice change, and nothing is needed to compute it.
std::uint64_t hashOf(ByteView bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const std::uint8_t b : bytes) {
    hash = (hash ^ b) * 0x100000001B3u;
  }
  return hash;
}

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<Seed> goldenSeeds() {
  std::vector<Seed> seeds = stageSeeds(70);
  std::vector<Seed> pipelines = pipelineSeeds();
  std::move(pipelines.begin(), pipelines.end(), std::back_inserter(seeds));
  const std::size_t n = seeds.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (isCompact(seeds[i].frame)) {
      continue;  // no older writer has these stages
    }
    seeds.push_back(asOlderVersion(seeds[i], 0));
    seeds.push_back(asOlderVersion(seeds[i], 1));
  }
  return seeds;
}

/// "length hash-of-frame hash-of-result"
std::string lineOf(const Seed& seed) {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = 1;
  const Array array = decompress(seed.frame, options);
  return std::to_string(seed.frame.size()) + "\t" + hex(hashOf(seed.frame)) + "\t" +
         hex(hashOf(array.bytes()));
}

std::map<std::string, std::string> committed() {
  std::map<std::string, std::string> lines;
  std::ifstream in(kFile);
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t tab = line.find('\t');
    if (tab != std::string::npos) {
      lines[line.substr(0, tab)] = line.substr(tab + 1);
    }
  }
  return lines;
}

const RegisterGoal kGolden(
    "R8",
    "archives of every stage, type, setting and version have the committed bytes and decode alike",
    [](const Settings& settings, Report& report) {
      const std::vector<Seed> seeds = goldenSeeds();
      std::map<std::string, std::string> now;
      for (const Seed& seed : seeds) {
        try {
          const bool is_new = now.emplace(seed.name, lineOf(seed)).second;
          report.check(is_new, "two archives are called " + seed.name);
        } catch (const Error& e) {
          report.fail(seed.name + ": " + e.what());
        }
      }
      if (settings.update) {
        std::ofstream out(kFile);
        for (const auto& [name, line] : now) {
          out << name << "\t" << line << "\n";
        }
      }
      const std::map<std::string, std::string> before = committed();
      report.add("archives", now.size());
      for (const auto& [name, line] : before) {
        const auto found = now.find(name);
        report.check(found != now.end(), name + ": no longer written");
        report.check(
            found == now.end() || found->second == line,
            fmt::format("{}: was {}, is {}", name, line, found == now.end() ? "" : found->second));
      }
      for (const auto& [name, line] : now) {
        report.check(before.count(name) != 0, name + ": has no committed hash");
      }
      report.check(now.size() >= 300, "fewer than 300 archives");
    });

}  // namespace
}  // namespace fz::trust
