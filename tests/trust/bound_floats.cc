// R5 for bit patterns: all floats, or random ones, through the quantiser.
#include <bit>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "fz/error.h"
#include "fz/host_api.h"
#include "trust/bound_check.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

struct Pattern {
  const char* mode;
  double bound;
  const char* codes;
  const char* more;
};
constexpr Pattern kPatterns[] = {
    {"ABS", 1e-3, "uint32", ""},
    {"REL", 1e-3, "uint32", ""},
    {"NOA", 1e-3, "uint16", ""},
    {"ABS", 1e20, "uint16", "zigzag_codes = true\n"},
    {"REL", 1e-6, "uint32", ""},
    {"NOA", 1e-8, "uint32", "zigzag_codes = true\n"},
    {"ABS", 0x1p-20, "uint32", "zigzag_codes = true\ninplace_outliers = true\n"},
    {"REL", 0.1, "uint16", ""},
    {"ABS", 1e-38, "uint32", ""},
    {"NOA", 0x1p-12, "uint32", ""},
    {"REL", 0x1p-10, "uint32", ""},
    {"ABS", 5.0, "uint16", ""},
};

constexpr std::size_t kPatternValues = 1u << 20;  // of a block
constexpr unsigned kBlockBits = 12;               // blocks of all floats: 2^12

/// A block of floats through the quantiser and back.
void judgePatterns(const std::vector<float>& values,
                   const Pattern& p,
                   const std::string& name,
                   Report& report) {
  char toml[512];
  std::snprintf(toml, sizeof(toml),
                "[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\ninput_type = \"float32\"\n"
                "code_type = \"%s\"\nerror_bound = %.17e\nerror_bound_mode = \"%s\"\n%s",
                p.codes, p.bound, p.mode, p.more);
  CompressOptions options;
  options.config_toml = toml;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.lossless_fallback = false;  // the quantiser is to be judged
  const std::string where =
      std::string("bit patterns, ") + p.mode + " " + std::to_string(p.bound) + ", " + name;
  try {
    const Frame frame = frameOfStages(values, options);
    DecompressOptions back_options;
    back_options.threads = 1;
    const Array back = decompress(frame, back_options);
    const auto span = back.as<float>();
    checkResult(values, inspect(frame), std::vector<float>(span.begin(), span.end()), where,
                report);
    report.add("bit patterns", values.size());
  } catch (const Error& e) {
    report.add(std::string("pattern blocks refused: ") + errorCodeName(e.code()));
    // Only outliers in place can look like codes; every other value can be stored.
    report.check(
        e.code() == ErrorCode::kBoundViolation && std::strstr(p.more, "inplace") != nullptr,
        where + ": " + e.what());
  }
}

/// Random floats, or random ones near one.
void randomPatterns(const Settings& settings, std::uint64_t trial, Report& report) {
  std::mt19937_64 rng(trialSeed(settings.seed, trial));
  const bool near_one = rng() % 2 == 0;
  std::vector<float> values(kPatternValues);
  for (float& v : values) {
    auto bits = static_cast<std::uint32_t>(rng());
    if (near_one) {
      bits = (bits & 0x81FFFFFFu) | 0x3E000000u;  // exponents of 2^-3 to 2^1
    }
    v = std::bit_cast<float>(bits);
  }
  judgePatterns(values, kPatterns[trial % std::size(kPatterns)], "trial " + std::to_string(trial),
                report);
}

/// One block of all floats under one of the bounds. The blocks' order is that of their reversed
/// numbers, so that the first trials are a sample spread over all floats and bounds.
void allPatterns(std::uint64_t trial, Report& report) {
  const auto i = static_cast<std::uint32_t>(trial / std::size(kPatterns));
  std::uint32_t block = 0;
  for (unsigned bit = 0; bit < kBlockBits; ++bit) {
    block |= (i >> bit & 1u) << (kBlockBits - 1 - bit);
  }
  std::vector<float> values(kPatternValues);
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = std::bit_cast<float>(static_cast<std::uint32_t>(block * kPatternValues + k));
  }
  judgePatterns(values, kPatterns[trial % std::size(kPatterns)], "block " + std::to_string(block),
                report);
}

const RegisterGoal kFloatsGoal(
    "R5-floats",
    "floats of every bit pattern keep their bound in exact arithmetic, under every bound and mode",
    [](const Settings& settings, Report& report) {
      constexpr std::uint64_t kRandomBlocks = 64;
      constexpr std::uint64_t kAll = kRandomBlocks + (std::size(kPatterns) << kBlockBits);
      runInProcesses(std::min(kAll, settings.trials(kRandomBlocks, kAll)), settings, report,
                     [&](std::uint64_t trial, Report& mine) {
                       if (trial < kRandomBlocks) {
                         randomPatterns(settings, trial, mine);
                       } else {
                         allPatterns(trial - kRandomBlocks, mine);
                       }
                     });
    });

}  // namespace
}  // namespace fz::trust
