// R4: every truncation and every flipped bit of an archive is noticed.
#include <algorithm>

#include "fz/error.h"
#include "fz/host_api.h"
#include "pipeline/compressor.h"
#include "support/fields.h"
#include "support/fusion_chains.h"
#include "trust/corpus.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

/// Archives of some KiB; the more of them, the more shapes.
std::vector<Seed> smallArchives(std::size_t n_wanted) {
  constexpr std::array<std::size_t, 3> kShapes[] = {
      {61, 40, 1}, {2900, 1, 1}, {15, 14, 12}, {7, 300, 1}, {1, 1, 2200}};
  std::vector<Seed> seeds;
  for (std::size_t round = 0; seeds.size() < n_wanted; ++round) {
    for (const test::FusionChain& chain : test::fusionChains()) {
      const bool is_f64 = round % 2 == 1 && chain.takes_f64;
      auto dims = kShapes[round / 2 % std::size(kShapes)];
      dims[0] += round / (2 * std::size(kShapes));
      const test::Field field =
          test::smoothField(is_f64 ? DataType::FLOAT64 : DataType::FLOAT32, dims);
      CompressOptions options;
      options.preset = chain.name;
      options.config_toml = chain.toml;
      options.dims = field.dims;
      options.backend = Backend::CPU;
      options.threads = 1;
      options.lossless_fallback = false;  // the chain's own frame, however small the field
      const Frame frame = compress(field.type, field.bytes, options);
      seeds.push_back({chain.name + (is_f64 ? " f64" : " f32"),
                       Bytes(frame.bytes().begin(), frame.bytes().end()),
                       {}});
      if (seeds.size() == n_wanted) {
        break;
      }
    }
  }
  return seeds;
}

bool isRejected(Pipeline& pipeline, ByteView bytes) {
  void* out = nullptr;
  std::size_t n_bytes = 0;
  try {
    pipeline.decompressFrame(bytes, &out, &n_bytes);
  } catch (const Error& e) {
    return e.code() == ErrorCode::kCorrupt || e.code() == ErrorCode::kUnsupported;
  }
  return false;
}

/// One kibibyte of positions of one archive.
struct Part {
  std::size_t archive;
  std::size_t first_byte;
};

void damagePart(const Seed& seed, std::size_t first_byte, std::size_t n_bytes, Report& report) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.setThreads(1);
  Bytes bytes = seed.frame;
  for (std::size_t i = first_byte; i < first_byte + n_bytes; ++i) {
    report.check(isRejected(pipeline, ByteView(bytes).first(i)),
                 seed.name + ": cut to " + std::to_string(i) + " bytes and accepted");
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<std::uint8_t>(1u << bit);
      report.check(isRejected(pipeline, bytes), seed.name + ": bit " + std::to_string(bit) +
                                                    " of byte " + std::to_string(i) +
                                                    " flipped and accepted");
      bytes[i] ^= static_cast<std::uint8_t>(1u << bit);
    }
  }
  report.add("truncations", n_bytes);
  report.add("flipped bits", 8 * n_bytes);
}

const RegisterGoal kDamage(
    "R4",
    "every truncation and every flipped bit of an archive is rejected",
    [](const Settings& settings, Report& report) {
      constexpr std::size_t kPartBytes = 1024;
      const std::vector<Seed> archives = smallArchives(settings.trials(20, 400));
      std::vector<Part> parts;
      for (std::size_t i = 0; i < archives.size(); ++i) {
        report.add("archives");
        report.add("archive bytes", archives[i].frame.size());
        for (std::size_t at = 0; at < archives[i].frame.size(); at += kPartBytes) {
          parts.push_back({i, at});
        }
      }
      runInProcesses(parts.size(), settings, report, [&](std::uint64_t trial, Report& mine) {
        const Part& part = parts[trial];
        const Seed& seed = archives[part.archive];
        damagePart(seed, part.first_byte, std::min(kPartBytes, seed.frame.size() - part.first_byte),
                   mine);
      });
    });

}  // namespace
}  // namespace fz::trust
