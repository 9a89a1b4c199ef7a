#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/rze/rze_stage.h"
#include "fz/cpu_tile.h"
#include "fz/host_api.h"
#include "fz/simple_stage.h"
#include "fz/stage_descriptor.h"
#include "pipeline/compressor.h"
#include "quantizers/quantizer/quantizer.h"

/// A stage from outside the library that takes part in groups; public headers are all it needs.
namespace fz::test {
namespace {

void negate(const float* in, std::size_t n_values, float* out) {
  for (std::size_t i = 0; i < n_values; ++i) {
    out[i] = -in[i];
  }
}

const StageDescriptor& negateDescriptor();

class NegateStage final : public fz::SimpleStage, private fz::CpuTileOp {
 public:
  fz::TileOp cpuTileOp() const override { return fz::MapOp{}; }
  fz::CpuTilePart* cpuTilePart() override { return this; }

  const StageDescriptor& descriptor() const override { return negateDescriptor(); }

 private:
  void beginTiles(const fz::CpuRun& run, const fz::TileCut&) override { requireFloats(run); }
  void encodeTile(const fz::TileRange& range, const void* in, void* out) override {
    negate(static_cast<const float*>(in), range.n_values, static_cast<float*>(out));
  }
  void decodeTile(const fz::TileRange& range, const void* in, void* out) override {
    encodeTile(range, in, out);
  }
  void endTiles(const fz::CpuRun& run) override { setActualBytes(0, run.inputs[0].size()); }

  static void requireFloats(const CpuRun& run) {
    if (run.inputs[0].size() % sizeof(float) != 0) {
      throw Error(ErrorCode::kBadSize, "Negate: size is not a multiple of 4 bytes");
    }
  }
  DataType inputType() const override { return DataType::FLOAT32; }
  Ports outputPorts() const override { return {{"output", DataType::FLOAT32}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override {
    return encoded_bytes[0];
  }
  void encodeCpu(const CpuRun& run) override {
    requireFloats(run);
    negate(reinterpret_cast<const float*>(run.inputs[0].data()),
           run.inputs[0].size() / sizeof(float), reinterpret_cast<float*>(run.outputs[0].data()));
    setActualBytes(0, run.inputs[0].size());
  }
  void decodeCpu(const CpuRun& run) override { encodeCpu(run); }
  void writeConfig(ByteWriter& /*out*/) const override {}
  void readConfig(ByteReader& /*in*/) override {}
};

const StageDescriptor& negateDescriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 0x4A01,
      .name = "Negate",
      .category = "transform",
      .summary = "every value with the other sign",
      .type_keys = {},
      .type_combinations = {{}},
      .aliases = {},
      .make = [](std::span<const DataType> /*types*/) -> std::unique_ptr<Stage> {
        return std::make_unique<NegateStage>();
      },
      .types_from_config = [](ByteView /*config*/) { return StageTypes{}; },
      .params = []() -> const ParamTable& {
        static const ParamTable kTable;
        return kTable;
      },
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

struct Result {
  std::vector<std::uint8_t> frame;
  std::string explained;
};

using Adjust = void (*)(QuantizerStage<float, std::uint32_t>& quantizer);

void makeLinear(QuantizerStage<float, std::uint32_t>& quantizer) {
  quantizer.setLinearMode(true);
  quantizer.setLinearPolicy(LinearPolicy::Guarantee);
}

Result compressWith(Fusion fusion, const std::vector<float>& values, Adjust adjust = &makeLinear) {
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.setFusion(fusion);
  auto* negated = pipeline.addStage<NegateStage>();
  auto* quantizer = pipeline.addStage<QuantizerStage<float, std::uint32_t>>();
  quantizer->setErrorBound(1e-3);
  adjust(*quantizer);
  pipeline.connect(quantizer, negated);
  if (quantizer->getLinearMode()) {
    pipeline.connect(pipeline.addStage<AdaptiveBitpackStage<std::int32_t>>(), quantizer, "codes");
  } else {
    pipeline.connect(pipeline.addStage<RZEStage>(), quantizer, "codes");
  }
  pipeline.finalize();
  const CompressedView view = pipeline.compress(values.data(), values.size() * sizeof(float));
  const auto* bytes = static_cast<const std::uint8_t*>(view.data);
  return {{bytes, bytes + view.n_bytes}, pipeline.explain()};
}

/// Once in the process, by whichever test comes first.
void registerNegate() {
  static const bool kRegistered = (registerStage(negateDescriptor()), true);
  ASSERT_TRUE(kRegistered);
}

TEST(CustomTileStage, AStageThatNeedsItsValuesInMemoryIsNotFusedBehindIt) {
  registerNegate();
  std::vector<float> values(50'001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 1000 == 0 ? 1e30f : static_cast<float>(i % 977) * 0.01f;
  }
  const Adjust adjustments[] = {[](QuantizerStage<float, std::uint32_t>& with_lists) {
                                  with_lists.setErrorBoundMode(ErrorBoundMode::NOA);
                                },
                                [](QuantizerStage<float, std::uint32_t>& quantizer) {
                                  makeLinear(quantizer);
                                  quantizer.setErrorBoundMode(ErrorBoundMode::NOA);
                                }};
  for (const Adjust adjust : adjustments) {
    const Result fused = compressWith(Fusion::Auto, values, adjust);
    EXPECT_EQ(fused.frame, compressWith(Fusion::Off, values, adjust).frame);
    EXPECT_NE(fused.explained.find("needs all of its values in memory"), std::string::npos)
        << fused.explained;
  }
}

TEST(CustomTileStage, OutlierListsAreMadeOfTilesFromTheStageBefore) {
  registerNegate();
  std::vector<float> values(50'001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        i % 9 == 0 ? 1e30f + static_cast<float>(i) * 1e25f : static_cast<float>(i % 977) * 0.01f;
  }
  const auto with_lists = [](QuantizerStage<float, std::uint32_t>& /*as it is*/) {};
  const Result fused = compressWith(Fusion::Auto, values, with_lists);
  EXPECT_EQ(fused.frame, compressWith(Fusion::Off, values, with_lists).frame);
  EXPECT_NE(fused.explained.find("one pass over memory: Negate + Quantizer + RZE"),
            std::string::npos)
      << fused.explained;
  const Array back = decompress(ByteView(fused.frame));
  for (std::size_t i = 0; i < values.size(); i += 9) {
    ASSERT_EQ(back.as<float>()[i], values[i]) << i;
  }
}

TEST(CustomTileStage, RunsInAGroupWithTheBytesOfTheStagesAndDecodesAnywhere) {
  registerNegate();
  std::vector<float> values(50'001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 977) * 0.01f - 3.0f;
  }
  const Result fused = compressWith(Fusion::Auto, values);
  const Result staged = compressWith(Fusion::Off, values);
  EXPECT_NE(fused.explained.find("one pass over memory: Negate + Quantizer + AdaptiveBitpack"),
            std::string::npos)
      << fused.explained;
  EXPECT_EQ(staged.explained.find("one pass over memory"), std::string::npos) << staged.explained;
  EXPECT_EQ(fused.frame, staged.frame);
  const Array back = decompress(ByteView(fused.frame));
  ASSERT_EQ(back.as<float>().size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = static_cast<double>(values[i]) - static_cast<double>(back.as<float>()[i]);
    ASSERT_LE(std::abs(error), 1e-3) << "value " << i;
  }
}

TEST(CustomTileStage, IsKnownToConfigurationsOnceRegistered) {
  registerNegate();
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.loadConfigText("[[stage]]\nname = \"other\"\ntype = \"negate\"\n", "text");
  const std::vector<float> values = {1.5f, -2.0f, 0.0f};
  const CompressedView view = pipeline.compress(values.data(), sizeof(float) * values.size());
  const Array back = decompress({static_cast<const std::uint8_t*>(view.data), view.n_bytes});
  EXPECT_TRUE(std::equal(values.begin(), values.end(), back.as<float>().begin()));
}

TEST(CustomTileStage, TakenIdsAndNamesAreRefused) {
  registerNegate();
  StageDescriptor other = negateDescriptor();
  EXPECT_THROW(registerStage(other), InvalidArgument);
  other.id = 0x4A02;
  EXPECT_THROW(registerStage(other), InvalidArgument);
  other.name = "rze";  // a stage of the library, in another spelling
  EXPECT_THROW(registerStage(other), InvalidArgument);
  other.name = "Negate2";
  other.id = 18;
  EXPECT_THROW(registerStage(other), InvalidArgument);
  EXPECT_EQ(findStage("Negate2"), nullptr);
}

TEST(CustomTileStage, OfManyThreadsOneGetsAnId) {
  struct Candidates {
    std::string name;
    std::array<StageDescriptor, 16> descriptors;
  };
  static std::deque<Candidates> for_the_process;  // repeated runs register other ids
  auto& [name, descriptors] = for_the_process.emplace_back();
  descriptors.fill(negateDescriptor());
  std::uint16_t id = 0x4B00;
  while (findStage(id) != nullptr) {
    ++id;
  }
  name = "Negate" + std::to_string(id);
  std::atomic<int> n_registered = 0;
  std::atomic<bool> may_begin = false;
  {
    std::vector<std::jthread> threads;
    for (StageDescriptor& descriptor : descriptors) {
      descriptor.id = id;
      descriptor.name = name;
      threads.emplace_back([&may_begin, &n_registered, &descriptor] {
        may_begin.wait(false);
        try {
          registerStage(descriptor);
          ++n_registered;
        } catch (const InvalidArgument&) {
          return;
        }
      });
    }
    may_begin = true;
    may_begin.notify_all();
  }
  EXPECT_EQ(n_registered, 1);
}

}  // namespace
}  // namespace fz::test
