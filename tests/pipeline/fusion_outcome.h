#pragma once

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "format/crc32.h"
#include "format/frame_header.h"
#include "support/fields.h"
#include "support/fusion_chains.h"
#include "support/pipelines.h"

/// What tests of fused chains compare: how calls end with and without fusion.
namespace fz::test::fusion {

using Dims = std::array<std::size_t, 3>;

/// How a call ended.
struct Outcome {
  std::optional<ErrorCode> code;
  std::string message;
  FrameBytes bytes;
  bool operator==(const Outcome&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << (outcome.code ? static_cast<int>(*outcome.code) : -1) << " " << outcome.message
             << ", " << outcome.bytes.size() << " bytes";
}

struct Settings {
  const FusionChain& chain;
  DataType type = DataType::FLOAT32;
  Dims dims = {0, 1, 1};
  Fusion fusion = Fusion::Auto;
  std::size_t n_threads = 1;
  MemoryStrategy strategy = MemoryStrategy::MINIMAL;
};

inline void load(Pipeline& pipeline, const Settings& setup) {
  ConfigOverrides overrides;
  overrides.input_type = setup.type;
  overrides.dims = setup.dims;
  pipeline.setBackend(Backend::CPU);
  pipeline.setFusion(setup.fusion);
  pipeline.setThreads(setup.n_threads);
  pipeline.loadConfigText(setup.chain.toml, setup.chain.name, overrides);
}

template <class F>
Outcome outcomeOf(F&& f) {
  Outcome outcome;
  const Failure failure = failureOf([&] { outcome.bytes = f(); });
  outcome.code = failure.code;
  outcome.message = failure.message;
  return outcome;
}

inline Outcome compressed(Pipeline& pipeline, const FrameBytes& data) {
  return outcomeOf([&] { return frameOf(pipeline, data); });
}

inline Outcome compressed(const Settings& setup, const FrameBytes& data) {
  Pipeline pipeline(0, setup.strategy);
  load(pipeline, setup);
  return compressed(pipeline, data);
}

inline Outcome decompressed(Fusion fusion, std::size_t n_threads, ByteView frame) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.setFusion(fusion);
  pipeline.setThreads(n_threads);
  return outcomeOf([&] { return decoded<std::uint8_t>(pipeline, frame); });
}

enum class Kind { kSmooth, kRandom, kConstant, kSpecial, kTiny };
inline constexpr Kind kAllKinds[] = {Kind::kSmooth, Kind::kRandom, Kind::kConstant, Kind::kSpecial,
                                     Kind::kTiny};

template <class T>
FrameBytes valuesOf(Kind kind, std::size_t n) {
  std::mt19937_64 random(7 + n);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i);
    double value = 20 * std::sin(0.01 * x) + 3 * std::cos(0.13 * x) + 0.002 * unit(random);
    value = kind == Kind::kRandom ? 1000 * unit(random) : value;
    value = kind == Kind::kConstant ? 1.25 : value;
    value =
        kind == Kind::kTiny ? std::numeric_limits<T>::denorm_min() * static_cast<T>(i % 5) : value;
    if (kind == Kind::kSpecial && i % 97 == 5) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const double specials[] = {std::nan(""), kInfinity, -kInfinity, 1e30, -0.0};
      value = specials[i / 97 % 5];
    }
    values[i] = static_cast<T>(value);
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  return {bytes, bytes + n * sizeof(T)};
}

inline FrameBytes dataOf(DataType type, Kind kind, std::size_t n) {
  return type == DataType::FLOAT32 ? valuesOf<float>(kind, n) : valuesOf<double>(kind, n);
}

inline std::vector<DataType> typesOf(const FusionChain& chain) {
  return chain.takes_f64 ? std::vector{DataType::FLOAT32, DataType::FLOAT64}
                         : std::vector{DataType::FLOAT32};
}

/// Chains of LorenzoQuant, whose units in grids are rows of tiles.
inline std::vector<FusionChain> gridChains() {
  std::vector<FusionChain> chains;
  for (const FusionChain& chain : fusionChains()) {
    if (chain.name == "fzgpu" || chain.name == "prediction to bytes") {
      chains.push_back(chain);
    }
  }
  chains.push_back({"prediction, one stage less",
                    detail::lorenzoQuant("quant_radius = 4") +
                        detail::stage("c", "RZE", "chunk_size = 4096", "q", true)});
  return chains;
}

/// Frames and values are the same with and without fusion, for these thread counts.
inline void expectSame(Settings setup,
                       const FrameBytes& data,
                       const std::vector<std::size_t>& threads) {
  setup.fusion = Fusion::Off;
  setup.n_threads = 1;
  const Outcome staged = compressed(setup, data);
  const Outcome staged_back = staged.code ? Outcome{} : decompressed(Fusion::Off, 1, staged.bytes);
  setup.fusion = Fusion::Auto;
  for (const std::size_t n_threads : threads) {
    setup.n_threads = n_threads;
    ASSERT_EQ(compressed(setup, data), staged) << n_threads << " threads";
    if (!staged.code) {
      ASSERT_EQ(decompressed(Fusion::Auto, n_threads, staged.bytes), staged_back)
          << n_threads << " threads";
    }
  }
}

/// A frame whose checksums fit, whatever its parts say.
inline FrameBytes sealed(FrameHeader header, const FrameBytes& frame) {
  FrameBytes bytes = frame;
  const MutableByteView all(bytes);
  header.core.data_checksum = crc32(all.subspan(header.core.header_size));
  writeHeader(header, all);
  return bytes;
}

inline void expectSameEnd(const FrameBytes& frame) {
  Outcome staged = decompressed(Fusion::Off, 1, frame);
  Outcome fused = decompressed(Fusion::Auto, 1, frame);
  // Which of several faults is named may differ.
  staged.message.clear();
  fused.message.clear();
  ASSERT_EQ(fused, staged);
}

}  // namespace fz::test::fusion
