// R5: every finite value is within its bound on the real numbers, NaN and infinities keep their
// bits, and where that cannot be, compress() says so. The same trials hold R13: no frame exceeds
// getMaxCompressedSize().
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

#include "fz/error.h"
#include "fz/host_api.h"
#include "pipeline/compressor.h"
#include "support/stage_case.h"
#include "trust/bound_check.h"
#include "trust/combinations.h"
#include "trust/exact_f64.h"
#include "trust/families.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

constexpr double kBounds[] = {1e-3, 1e-6, 0.5, 1e-2, 0x1p-10, 1e-1, 1e-42, 1e10, 3e38, 1e-300};

/// One array through one pipeline, there and back.
template <class T>
void roundTrip(const Combination& c, Report& report) {
  const std::vector<T> values = test::fromBytes<T>(c.bytes);
  Pipeline pipeline;
  pipeline.setThreads(1);
  load(pipeline, c, Backend::CPU);
  const std::size_t most = pipeline.getMaxCompressedSize(c.bytes.size());
  const CompressedView view = pipeline.compress(c.bytes.data(), c.bytes.size());
  report.check(view.n_bytes <= most, c.name + ": " + std::to_string(view.n_bytes) +
                                         " bytes, getMaxCompressedSize() says " +
                                         std::to_string(most));
  const FrameInfo info =
      inspect(ByteView(static_cast<const std::uint8_t*>(view.data), view.n_bytes));
  void* out = nullptr;
  std::size_t out_bytes = 0;
  pipeline.decompress(nullptr, 0, &out, &out_bytes);
  const T* begin = static_cast<const T*>(out);
  checkResult(values, info, std::vector<T>(begin, begin + out_bytes / sizeof(T)), c.name, report);
}

void familyTrial(const Settings& settings, std::uint64_t trial, Report& report) {
  const Combination c = combination(settings.seed, trial);
  report.add("cases");
  try {
    if (c.type == DataType::FLOAT64) {
      roundTrip<double>(c, report);
    } else {
      roundTrip<float>(c, report);
    }
  } catch (const Error& e) {
    report.add(std::string("refused: ") + errorCodeName(e.code()));
    report.check(isRefusal(e.code()), c.name + ": " + e.what());
  } catch (const InvalidArgument&) {
    report.add("refused: invalid argument");
  }
}

// The linear quantiser.

std::string linearToml(const char* policy, const char* codes, double bound) {
  char text[512];
  std::snprintf(text, sizeof(text),
                "[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\ninput_type = \"float32\"\n"
                "code_type = \"%s\"\nerror_bound = %.17e\nerror_bound_mode = \"ABS\"\n"
                "linear_mode = true\nlinear_policy = \"%s\"\n",
                codes, bound, policy);
  return text;
}

template <class T>
std::uint64_t throwCount(const std::vector<T>& values, const std::string& toml) {
  CompressOptions options;
  options.config_toml = toml;
  options.backend = Backend::CPU;
  options.threads = 1;
  options.lossless_fallback = false;  // the quantiser is to be judged
  try {
    static_cast<void>(frameOfStages(values, options));
    return 0;
  } catch (const Error& e) {
    const std::string text = e.what();
    const std::size_t colon = text.find(": ");
    return e.code() == ErrorCode::kBoundViolation && colon != std::string::npos
               ? std::strtoull(text.c_str() + colon + 2, nullptr, 10)
               : ~std::uint64_t{0};
  }
}

template <class T>
void linearTrial(const Family<T>& family, double bound, const char* codes, Report& report) {
  const std::vector<T> values = makeFamily(family, 1000, bound, 3);
  CompressOptions wrap;
  wrap.config_toml = linearToml("Wrap", codes, bound);
  wrap.backend = Backend::CPU;
  wrap.threads = 1;
  wrap.lossless_fallback = false;
  const Array back = decompress(frameOfStages(values, wrap));
  const std::uint64_t n_missed = misses(values, back.as<T>().data(), bound, false);
  const std::uint64_t n_thrown = throwCount(values, linearToml("Throw", codes, bound));
  report.add("linear cases");
  report.add("linear violations found", n_missed);
  report.check(n_missed == n_thrown, "linear, " + family.name + ", bound " + std::to_string(bound) +
                                         ", " + codes + ": " + std::to_string(n_missed) +
                                         " values miss, the error says " +
                                         std::to_string(n_thrown));
}

template <class T>
void linearTrials(Report& report) {
  for (const Family<T>& family : families<T>()) {
    for (const double bound : {1e-3, 0.5, 1e-6, 0x1p-10}) {
      linearTrial(family, bound, "uint16", report);
      linearTrial(family, bound, "uint32", report);
    }
  }
}

/// The judge itself, against integers.
template <class T>
void oracleTrial(std::uint64_t seed, Report& report) {
  std::mt19937_64 rng(seed);
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    const std::size_t f = rng() % families<T>().size();
    const double bound = kBounds[rng() % std::size(kBounds)];
    const T x = families<T>()[f].at(rng() % 1000, 1000, bound, rng);
    T y = families<T>()[f].at(rng() % 1000, 1000, bound, rng);
    if (rng() % 2 == 0 && fp::isFinite(x)) {
      // Close to the edge of what is allowed, by a few units in the last place.
      const double allowed = rng() % 2 == 0 ? bound : bound * std::fabs(static_cast<double>(x));
      y = static_cast<T>(static_cast<double>(x) + allowed);
      for (std::uint64_t k = rng() % 4; k > 0; --k) {
        y = std::nextafter(y, rng() % 2 == 0 ? T{0} : std::numeric_limits<T>::max());
      }
    }
    const auto wide_x = static_cast<double>(x);
    const auto wide_y = static_cast<double>(y);
    // A NaN may change its bits when it is widened.
    if (std::isnan(x) || std::isnan(y)) {
      continue;
    }
    const bool holds =
        keepsAbsolute(x, y, bound) == keepsByIntegers(wide_x, wide_y, bound, false) &&
        keepsRelative(x, y, bound) == keepsByIntegers(wide_x, wide_y, bound, true);
    if constexpr (std::is_same_v<T, double>) {
      report.check(keepsAbsolute64(x, y, bound) == keepsByIntegers(x, y, bound, false) &&
                       (bound < 0x1p-400 || bound > 1.0 ||
                        keepsRelative64(x, y, bound) == keepsByIntegers(x, y, bound, true)),
                   "the exact check of devices is wrong for " + std::to_string(x) + ", " +
                       std::to_string(y) + ", bound " + std::to_string(bound));
    }
    report.add("judgements compared with integers", 2);
    report.check(holds, "the exact check is wrong for " + std::to_string(wide_x) + ", " +
                            std::to_string(wide_y) + ", bound " + std::to_string(bound));
  }
}

const RegisterGoal kBoundGoal(
    "R5",
    "every value is within the bound in exact arithmetic or kept bit for bit, or compress() throws",
    [](const Settings& settings, Report& report) {
      report.add("families", familyCount());
      report.add("pipelines", pipelineCount());
      constexpr std::uint64_t kOracleBlocks = 20;
      const std::uint64_t n_families = settings.trials(60'000, 1'000'000);
      const std::uint64_t n_all = kOracleBlocks + 2 + n_families;
      runInProcesses(n_all, settings, report, [&](std::uint64_t trial, Report& mine) {
        if (trial < kOracleBlocks) {
          oracleTrial<float>(trial, mine);
          oracleTrial<double>(trial, mine);
        } else if (trial == kOracleBlocks) {
          linearTrials<float>(mine);
        } else if (trial == kOracleBlocks + 1) {
          linearTrials<double>(mine);
        } else {
          familyTrial(settings, trial - kOracleBlocks - 2, mine);
        }
      });
    });

}  // namespace
}  // namespace fz::trust
