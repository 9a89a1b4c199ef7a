// A chain that runs as one must do what its stages do one after the other.
#include "fz/fusion.h"

#include <gtest/gtest.h>
#include <random>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/executors.h"
#include "format/crc32.h"
#include "format/frame_header.h"
#include "support/fields.h"
#include "support/fusion_chains.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

using Dims = std::array<std::size_t, 3>;

/// How a call ended.
struct Outcome {
  std::optional<ErrorCode> code;
  std::string message;
  FrameBytes bytes;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
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

void load(Pipeline& pipeline, const Settings& setup) {
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

Outcome compressed(Pipeline& pipeline, const FrameBytes& data) {
  return outcomeOf([&] { return frameOf(pipeline, data); });
}

Outcome compressed(const Settings& setup, const FrameBytes& data) {
  Pipeline pipeline(0, setup.strategy);
  load(pipeline, setup);
  return compressed(pipeline, data);
}

Outcome decompressed(Fusion fusion, std::size_t n_threads, ByteView frame) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.setFusion(fusion);
  pipeline.setThreads(n_threads);
  return outcomeOf([&] { return decoded<std::uint8_t>(pipeline, frame); });
}

enum class Kind { kSmooth, kRandom, kConstant, kSpecial, kTiny };
constexpr Kind kAllKinds[] = {Kind::kSmooth, Kind::kRandom, Kind::kConstant, Kind::kSpecial,
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

FrameBytes dataOf(DataType type, Kind kind, std::size_t n) {
  return type == DataType::FLOAT32 ? valuesOf<float>(kind, n) : valuesOf<double>(kind, n);
}

std::vector<DataType> typesOf(const FusionChain& chain) {
  return chain.takes_f64 ? std::vector{DataType::FLOAT32, DataType::FLOAT64}
                         : std::vector{DataType::FLOAT32};
}

/// Frames and values are the same with and without fusion, for these thread counts.
void expectSame(Settings setup, const FrameBytes& data, const std::vector<std::size_t>& threads) {
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

TEST(Fusion, EveryChainGivesTheBytesOfItsStages) {
  for (const FusionChain& chain : fusionChains()) {
    for (const DataType type : typesOf(chain)) {
      for (const std::size_t n : {0, 1, 31, 32, 33, 1023, 1024, 1025, 4095, 4096, 4097, 65537}) {
        for (const Kind kind : kAllKinds) {
          SCOPED_TRACE(chain.name + " " + std::string(dataTypeToString(type)) + " " +
                       std::to_string(n) + " kind " + std::to_string(static_cast<int>(kind)));
          expectSame({chain, type}, dataOf(type, kind, n), {1, 2});
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST(Fusion, LargeDataOnAnyNumberOfThreads) {
  for (const FusionChain& chain : fusionChains()) {
    for (const DataType type : typesOf(chain)) {
      for (const Kind kind : {Kind::kSmooth, Kind::kSpecial}) {
        SCOPED_TRACE(chain.name + " " + std::string(dataTypeToString(type)) + " kind " +
                     std::to_string(static_cast<int>(kind)));
        expectSame({chain, type}, dataOf(type, kind, 300'007), {1, 2, 7});
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
}

TEST(Fusion, GridsWithRaggedEdges) {
  const Dims shapes[] = {{67, 41, 11}, {100, 37, 1}, {5, 4, 4},   {1, 1, 9},
                         {9, 1, 1},    {515, 9, 2},  {3, 700, 1}, {64, 64, 16}};
  for (const FusionChain& chain : fusionChains()) {
    for (const DataType type : typesOf(chain)) {
      for (const Dims& dims : shapes) {
        SCOPED_TRACE(chain.name + " " + std::to_string(dims[0]) + "x" + std::to_string(dims[1]) +
                     "x" + std::to_string(dims[2]));
        const std::size_t n = dims[0] * dims[1] * dims[2];
        for (const Kind kind : {Kind::kSmooth, Kind::kRandom}) {
          expectSame({chain, type, dims}, dataOf(type, kind, n), {1, 7});
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

/// Chains of LorenzoQuant, whose units in grids are rows of tiles.
std::vector<FusionChain> gridChains() {
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

// Rows of tiles have no small multiple in common with the chunks of these coders, or are long.
constexpr Dims kBandedGrids[] = {{37, 20, 60}, {301, 45, 33}, {2003, 130, 1}, {259, 67, 63}};

TEST(Fusion, GridsWhoseTilesAndChunksDoNotMeetRunInBands) {
  ASSERT_EQ(gridChains().size(), 3u);
  for (const FusionChain& chain : gridChains()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      for (const Dims& dims : kBandedGrids) {
        SCOPED_TRACE(chain.name + " " + std::string(dataTypeToString(type)) + " " +
                     std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + "x" +
                     std::to_string(dims[2]));
        Pipeline pipeline;
        load(pipeline, {chain, type, dims});
        ASSERT_EQ(pipeline.getDAG()->getGroups().size(), 1u) << pipeline.explain();
        const FusedGroup& group = pipeline.getDAG()->getGroups().front();
        EXPECT_EQ(group.chain.size(), pipeline.getDAG()->getOrder().size()) << pipeline.explain();
        EXPECT_NE(group.tile_values % group.coder_values, 0u);
        const std::size_t n = dims[0] * dims[1] * dims[2];
        for (const Kind kind : {Kind::kSmooth, Kind::kRandom}) {
          expectSame({chain, type, dims}, dataOf(type, kind, n), {1, 3});
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST(Fusion, FewLongRowsOfTilesAreLeftToTheStages) {
  const FusionChain chain = gridChains().front();
  Pipeline pipeline;
  load(pipeline, {.chain = chain, .dims = {259, 67, 56}});
  EXPECT_TRUE(pipeline.getDAG()->getGroups().empty());
  EXPECT_NE(pipeline.explain().find("few and long rows of tiles"), std::string::npos)
      << pipeline.explain();
}

TEST(TileCut, BandsEncodeEachUnitOnceAndDecodeAllThatTheyNeed) {
  for (const std::size_t tile_values : {5, 8, 24, 100}) {
    for (const std::size_t coder_values : {1, 3, 8, 32}) {
      for (const std::uint64_t n_values : {1, 7, 100, 101, 250}) {
        const TileCut cut{n_values, tile_values, 1, coder_values};
        std::uint64_t end = 0;
        for (std::size_t tile = 0; tile < cut.tileCount(); ++tile) {
          const TileRange front = cut.at(tile);
          const TileRange encoded = cut.encodedAt(tile);
          const TileRange decoded = cut.decodedAt(tile);
          EXPECT_EQ(encoded.first, end);
          EXPECT_TRUE(encoded.first % coder_values == 0 || encoded.n_values == 0);
          EXPECT_GE(encoded.first, front.first);
          end = encoded.first + encoded.n_values;
          EXPECT_EQ(decoded.first % coder_values, 0u);
          EXPECT_LE(decoded.first, front.first);
          EXPECT_GE(decoded.first + decoded.n_values, front.first + front.n_values);
          EXPECT_LE(decoded.first + decoded.n_values, n_values);
          EXPECT_LE(decoded.n_values, cut.maxTileValues());
          // What the first op writes: its tile, and what it encodes ahead.
          EXPECT_LE(std::max(end, front.first + front.n_values) - front.first, cut.maxTileValues());
        }
        EXPECT_EQ(end, n_values);
      }
    }
  }
}

TEST(Fusion, WhatEarlierCallsLeftBehindDoesNotShow) {
  for (const FusionChain& chain : fusionChains()) {
    for (const MemoryStrategy strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
      SCOPED_TRACE(chain.name);
      const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 70'001);
      const FrameBytes other = dataOf(DataType::FLOAT32, Kind::kRandom, 90'000);
      const Outcome staged = compressed(Settings{.chain = chain, .fusion = Fusion::Off}, data);
      Pipeline pipeline(0, strategy);
      load(pipeline, {.chain = chain, .n_threads = 2, .strategy = strategy});
      compressed(pipeline, other);
      EXPECT_EQ(compressed(pipeline, data), staged);
      compressed(pipeline, other);
      EXPECT_EQ(compressed(pipeline, data), staged);
    }
  }
}

TEST(Fusion, LongArraysWrittenPastTheCachesAreTheSame) {
  const Dims dims = {515, 64, 257};  // above kStreamedBytes; rows that are no whole lines
  const std::size_t n = dims[0] * dims[1] * dims[2];
  const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, n);
  for (const char* name : {"cuszp", "cuszp3"}) {
    const FusionChain chain{name, std::string(findPreset(name)->toml)};
    const FrameBytes frame = compressed(Settings{.chain = chain, .dims = dims}, data).bytes;
    const Outcome staged = decompressed(Fusion::Off, 1, frame);
    ASSERT_EQ(staged.bytes.size(), data.size());
    EXPECT_TRUE(decompressed(Fusion::Auto, 1, frame) == staged);
    EXPECT_TRUE(decompressed(Fusion::Auto, 3, frame) == staged);

    Pipeline pipeline;
    load(pipeline, {.chain = chain});
    FrameBytes unaligned(data.size() + 24);
    std::size_t n_bytes = 0;
    pipeline.decompress(frame.data(), frame.size(), unaligned.data() + 24, data.size(), &n_bytes);
    EXPECT_EQ(n_bytes, data.size());
    EXPECT_TRUE(std::equal(staged.bytes.begin(), staged.bytes.end(), unaligned.begin() + 24));
  }
}

TEST(Fusion, ThreadsOfTheStandardLibraryGiveTheSame) {
  const auto executor = makeStdExecutor(3);
  const ExecContext context{Backend::CPU, executor.get(), Fusion::Auto};
  for (const FusionChain& chain : fusionChains()) {
    SCOPED_TRACE(chain.name);
    const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 200'003);
    const Outcome staged = compressed(Settings{.chain = chain, .fusion = Fusion::Off}, data);
    Pipeline pipeline;
    load(pipeline, {.chain = chain});
    pipeline.getDAG()->setExecContext(&context);
    EXPECT_EQ(compressed(pipeline, data), staged);
  }
}

TEST(Fusion, ExplainNamesTheGroupAndProfilesHaveARowForIt) {
  for (const FusionChain& chain : fusionChains()) {
    SCOPED_TRACE(chain.name);
    Pipeline pipeline;
    pipeline.enableProfiling(true);
    load(pipeline, {.chain = chain});
    const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 10'000);
    frameOf(pipeline, data);
    const auto& groups = pipeline.getDAG()->getGroups();
    if (!chain.is_fused_in_1d) {
      EXPECT_NE(pipeline.explain().find("not fused: "), std::string::npos) << pipeline.explain();
      continue;
    }
    ASSERT_EQ(groups.size(), 1u) << pipeline.explain();
    EXPECT_EQ(groups[0].chain.size(), pipeline.getDAG()->getOrder().size());
    EXPECT_NE(pipeline.explain().find("one pass over memory: " + groups[0].name),
              std::string::npos);
    const auto& rows = pipeline.getLastPerfResult().stages;
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].name, groups[0].name);
    EXPECT_EQ(rows[0].input_bytes, data.size());
  }
}

TEST(Fusion, ExplainTellsHowTheLastFrameWasDecoded) {
  const FusionChain chain = gridChains().front();
  Pipeline pipeline;
  load(pipeline, {.chain = chain});
  const FrameBytes frame = frameOf(pipeline, dataOf(DataType::FLOAT32, Kind::kSmooth, 10'000));
  EXPECT_EQ(pipeline.explain().find("decoded last"), std::string::npos);
  decoded<std::uint8_t>(pipeline, frame);
  const std::string text = pipeline.explain();
  const std::size_t at = text.find("the frame decoded last:\nfused, one pass over memory: ");
  EXPECT_NE(at, std::string::npos) << text;

  // Another graph and dims that this decoder has to leave to its stages.
  const Dims dims = {259, 67, 56};
  const FrameBytes long_rows =
      compressed(Settings{.chain = chain, .dims = dims},
                 dataOf(DataType::FLOAT32, Kind::kSmooth, dims[0] * dims[1] * dims[2]))
          .bytes;
  decoded<std::uint8_t>(pipeline, long_rows);
  EXPECT_NE(pipeline.explain().find("few and long rows of tiles"), std::string::npos)
      << pipeline.explain();
}

TEST(Fusion, WhatLiesBetweenTheStagesTakesNoMemory) {
  const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, 1'000'000);
  for (const char* name : {"cuszp", "cuszp3", "pfpl", "speed"}) {
    SCOPED_TRACE(name);
    const FusionChain chain{name, std::string(findPreset(name)->toml)};
    std::array<std::size_t, 2> peaks = {};
    std::size_t n_between = 0;
    for (const Fusion fusion : {Fusion::Off, Fusion::Auto}) {
      Pipeline pipeline(0, MemoryStrategy::PREALLOCATE);
      pipeline.setColoringEnabled(false);
      load(pipeline, {.chain = chain, .fusion = fusion, .strategy = MemoryStrategy::PREALLOCATE});
      frameOf(pipeline, data);
      peaks[fusion == Fusion::Auto ? 1 : 0] = pipeline.getPeakMemoryUsage();
      for (const auto& node : pipeline.getDAG()->getNodes()) {
        const BufferInfo& buffer =
            pipeline.getDAG()->getBufferInfo(node->output_index_to_buffer_id.at(0));
        n_between += buffer.is_virtual ? buffer.size : 0;
        EXPECT_TRUE(!buffer.is_virtual || buffer.d_ptr == nullptr);
      }
    }
    EXPECT_GT(n_between, 0u);
    // A few tiles and their payload are kept instead, whatever the size of the data.
    constexpr std::size_t kDeskBytes = 256 * 1024;
    EXPECT_LE(peaks[1] + n_between, peaks[0] + kDeskBytes);
  }
}

TEST(Fusion, BandsTakeNoMemoryForTheCodesOfAGrid) {
  const Dims dims = {129, 128, 128};
  const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kSmooth, dims[0] * dims[1] * dims[2]);
  std::array<std::size_t, 2> peaks = {};
  for (const Fusion fusion : {Fusion::Off, Fusion::Auto}) {
    Pipeline pipeline(0, MemoryStrategy::PREALLOCATE);
    load(pipeline, {.chain = gridChains().front(), .dims = dims, .fusion = fusion});
    frameOf(pipeline, data);
    peaks[fusion == Fusion::Auto ? 1 : 0] = pipeline.getPeakMemoryUsage();
  }
  const std::size_t n_codes = data.size() / 2;
  const std::size_t band = 8 * dims[0] * dims[1] * 2;
  EXPECT_LE(peaks[1] + n_codes, peaks[0] + 3 * band);
}

/// A frame whose checksums fit, whatever its parts say.
FrameBytes sealed(FrameHeader header, const FrameBytes& frame) {
  FrameBytes bytes = frame;
  const MutableByteView all(bytes);
  header.core.data_checksum = crc32(all.subspan(header.core.header_size));
  writeHeader(header, all);
  return bytes;
}

void expectSameEnd(const FrameBytes& frame) {
  Outcome staged = decompressed(Fusion::Off, 1, frame);
  Outcome fused = decompressed(Fusion::Auto, 1, frame);
  // Which of several faults is named may differ.
  staged.message.clear();
  fused.message.clear();
  ASSERT_EQ(fused, staged);
}

TEST(Fusion, DamageEndsInTheSameWay) {
  for (const FusionChain& chain : fusionChains()) {
    SCOPED_TRACE(chain.name);
    const Settings setup{.chain = chain, .dims = {9, 5, 1}};
    const FrameBytes frame = compressed(setup, dataOf(DataType::FLOAT32, Kind::kRandom, 45)).bytes;
    const FrameHeader header = readHeader(frame, frame.size());
    for (std::size_t n = 0; n < frame.size(); ++n) {
      expectSameEnd({frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(n)});
      ASSERT_FALSE(HasFatalFailure()) << n << " bytes";
    }
    for (std::size_t bit = 8 * header.core.header_size; bit < 8 * frame.size(); ++bit) {
      FrameBytes damaged = frame;
      damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      expectSameEnd(sealed(header, damaged));
      ASSERT_FALSE(HasFatalFailure()) << "payload bit " << bit;
    }
    for (std::size_t i = 0; i < header.stages.size(); ++i) {
      for (std::size_t bit = 0; bit < 8 * header.stages[i].config_size; ++bit) {
        FrameHeader damaged = header;
        damaged.stages[i].stage_config[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
        expectSameEnd(sealed(damaged, frame));
        ASSERT_FALSE(HasFatalFailure()) << "stage " << i << " bit " << bit;
      }
    }
  }
}

TEST(Fusion, DamageOfBandsEndsInTheSameWay) {
  const Dims dims = {37, 20, 60};
  for (const FusionChain& chain : gridChains()) {
    SCOPED_TRACE(chain.name);
    const FrameBytes data = dataOf(DataType::FLOAT32, Kind::kRandom, dims[0] * dims[1] * dims[2]);
    const FrameBytes frame = compressed(Settings{.chain = chain, .dims = dims}, data).bytes;
    const FrameHeader header = readHeader(frame, frame.size());
    std::mt19937_64 random(11);
    for (int i = 0; i < 100; ++i) {
      FrameBytes damaged = frame;
      const std::size_t begin = header.core.header_size;
      const std::size_t at = begin + random() % (frame.size() - begin);
      damaged[at] ^= static_cast<std::uint8_t>(1 + random() % 255);
      expectSameEnd(sealed(header, damaged));
      ASSERT_FALSE(HasFatalFailure()) << "payload byte " << at;
    }
  }
}

}  // namespace
}  // namespace fz::test
