// Every stage that is a map on a device: its op compiles, and gives the bytes of the CPU in a
// group.
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "coders/rze/rze_stage.h"
#include "gpu/device_pipeline.h"
#include "gpu/rtc_chains.h"

namespace fz::test {
namespace {

struct MapStage {
  const StageDescriptor* descriptor;
  std::vector<DataType> types;
  DataType field_type;
};

std::vector<MapStage> mapStages() {
  std::vector<MapStage> maps;
  for (const StageDescriptor* descriptor : allStages()) {
    for (const std::vector<DataType>& types : descriptor->type_combinations) {
      const std::unique_ptr<Stage> stage = descriptor->make(types);
      const auto* simple = dynamic_cast<const SimpleStage*>(stage.get());
      if (simple != nullptr && std::holds_alternative<MapOp>(simple->tileOp(Backend::CUDA))) {
        maps.push_back({descriptor, types, static_cast<DataType>(simple->getInputDataType(0))});
      }
    }
  }
  return maps;
}

std::unique_ptr<SimpleStage> makeStage(const MapStage& map) {
  return std::unique_ptr<SimpleStage>(
      dynamic_cast<SimpleStage*>(map.descriptor->make(map.types).release()));
}

std::string configOf(const MapStage& map) {
  std::string text =
      "[[stage]]\nname = \"map\"\ntype = \"" + std::string(map.descriptor->name) + "\"\n";
  for (std::size_t i = 0; i < map.types.size(); ++i) {
    text += std::string(map.descriptor->type_keys[i].key) + " = \"" +
            std::string(dataTypeToString(map.types[i])) + "\"\n";
  }
  return text + "[[stage]]\nname = \"coder\"\ntype = \"RZE\"\ninputs = [{ from = \"map\" }]\n";
}

TEST_F(RunTimeCompiler, TakesEveryMapOfTheLibrary) {
  std::set<DataType> types;  // one of each with a coder: it is the coder that takes long
  for (const MapStage& map : mapStages()) {
    SCOPED_TRACE(map.descriptor->name);
    Stages alone;
    alone.push_back(makeStage(map));
    expectCompiles(alone, map.field_type);
    if (!types.insert(map.field_type).second) {
      continue;
    }
    Stages coded;
    coded.push_back(makeStage(map));
    coded.push_back(make<RZEStage>());
    expectCompiles(coded, map.field_type);
  }
}

class DeviceMapGroups : public OnDevice<> {};

TEST_F(DeviceMapGroups, HaveTheBytesOfTheCpuAndRestoreEveryValue) {
  for (const MapStage& map : mapStages()) {
    if (makeStage(map)->boundInfo().has_value()) {
      continue;  // does not restore every value; the fused presets have it
    }
    for (const std::size_t n_values : {1u, 4095u, 70'001u}) {
      SCOPED_TRACE(configOf(map) + std::to_string(n_values) + " values");
      std::vector<std::uint8_t> field(n_values * getDataTypeSize(map.field_type));
      std::mt19937_64 rng(n_values);
      for (std::uint8_t& byte : field) {
        byte = static_cast<std::uint8_t>(rng() % 3);
      }
      Pipeline on_cpu;
      on_cpu.setBackend(Backend::CPU);
      on_cpu.loadConfigText(configOf(map), "map");
      const CompressedView view = on_cpu.compress(field.data(), field.size());
      const auto* begin = static_cast<const std::uint8_t*>(view.data);

      Pipeline pipeline;
      pipeline.setBackend(Backend::CUDA);
      pipeline.loadConfigText(configOf(map), "map");
      const DeviceBytesBuffer input{ByteView(field)};
      const FrameBytes frame = frameOnDevice(pipeline, input, field.size());
      EXPECT_TRUE(frame == FrameBytes(begin, begin + view.n_bytes));
      if (!cuda::rtc::compilerVersion().empty()) {
        EXPECT_EQ(pipeline.getFusedGroups().size(), 1u) << pipeline.explain();
      }
      void* decoded = nullptr;
      std::size_t n_decoded = 0;
      pipeline.decompress(nullptr, 0, &decoded, &n_decoded);
      ASSERT_EQ(n_decoded, field.size());
      EXPECT_TRUE(fromDevice(decoded, n_decoded) == field);
    }
  }
}

}  // namespace
}  // namespace fz::test
