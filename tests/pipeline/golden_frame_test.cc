#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "format/crc32.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/fields.h"

// tests/golden/<preset>_<type>.fzm are frames of a fixed field; .crc holds the checksum of what
// they decode to. FZ_UPDATE_GOLDEN=1 writes them anew: only ever for a new format version.

namespace fz::test {
namespace {

Field goldenField(DataType type) {
  Field field = smoothField(type, {24, 10, 1});
  // Values that libm computes may differ in the last bit between machines; a grid removes that.
  const auto snap = [](auto* values, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      using T = std::remove_reference_t<decltype(values[0])>;
      values[i] = static_cast<T>(static_cast<int>(values[i] * 64)) / 64;
    }
  };
  if (type == DataType::FLOAT32) {
    snap(reinterpret_cast<float*>(field.bytes.data()), field.valueCount());
  } else {
    snap(reinterpret_cast<double*>(field.bytes.data()), field.valueCount());
  }
  return field;
}

TEST(GoldenFrames, PresetsWriteAndReadTheCommittedBytes) {
  const bool update = std::getenv("FZ_UPDATE_GOLDEN") != nullptr;
  const std::filesystem::path folder = FZ_SOURCE_DIR "/tests/golden";
  for (const Preset& preset : allPresets()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      const std::string name = std::string(preset.name) + "_" + std::string(dataTypeToString(type));
      SCOPED_TRACE(name);
      const Field field = goldenField(type);
      CompressOptions options;
      options.preset = preset.name;
      options.config_toml = preset.toml;
      options.dims = field.dims;
      options.lossless_fallback = false;
      const Frame frame = compress(field.type, field.bytes, options);
      const auto archive = folder / (name + ".fzm");
      const auto checksum = folder / (name + ".crc");
      if (update) {
        std::filesystem::create_directories(folder);
        frame.writeToFile(archive.string());
        std::ofstream(checksum) << crc32(decompress(frame).bytes()) << "\n";
      }
      ASSERT_TRUE(std::filesystem::exists(archive)) << "missing golden file " << archive;
      const std::vector<std::uint8_t> golden = readBytes(archive.string());
      EXPECT_TRUE(
          std::equal(golden.begin(), golden.end(), frame.bytes().begin(), frame.bytes().end()))
          << "the bytes of this preset changed";
      std::uint32_t expected = 0;
      std::ifstream(checksum) >> expected;
      EXPECT_EQ(crc32(decompress(golden).bytes()), expected);
    }
  }
}

}  // namespace
}  // namespace fz::test
