#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

#include "fz/byte_io.h"
#include "support/stage_case.h"

// Golden streams: modules/<stage>/golden/<types>_<config>.bin holds, for the first input family of
// the case at 70 values, the config and every stream. FZ_UPDATE_GOLDEN=1 writes them anew.

namespace fz::test {
namespace {

constexpr std::size_t kGoldenValues = 70;

std::string slug(std::string text) {
  for (char& c : text) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return text;
}

std::filesystem::path stageFolder(const std::string& stage_name) {
  static const std::map<std::string, std::string> kFolders = [] {
    std::map<std::string, std::string> folders;
    for (const StageDescriptor* d : allStages()) {
      for (const auto& entry :
           std::filesystem::recursive_directory_iterator(FZ_SOURCE_DIR "/modules")) {
        if (entry.path().filename() == "SPEC.md") {
          std::ifstream spec(entry.path());
          std::string title;
          std::getline(spec, title);
          if (title == "# " + std::string(d->name) + ", stage id " + std::to_string(d->id)) {
            folders[std::string(d->name)] = entry.path().parent_path().string();
          }
        }
      }
    }
    return folders;
  }();
  const auto found = kFolders.find(stage_name);
  return found == kFolders.end() ? std::filesystem::path{} : std::filesystem::path(found->second);
}

Bytes serialize(const Encoded& encoded) {
  Bytes bytes(16 + encoded.config.size());
  for (const Bytes& stream : encoded.streams) {
    bytes.resize(bytes.size() + 4 + stream.size());
  }
  ByteWriter out(bytes);
  out.u16(encoded.version).u16(static_cast<std::uint16_t>(encoded.streams.size()));
  out.u32(static_cast<std::uint32_t>(encoded.config.size())).raw(encoded.config);
  for (const Bytes& stream : encoded.streams) {
    out.u32(static_cast<std::uint32_t>(stream.size())).raw(stream);
  }
  bytes.resize(out.position());
  return bytes;
}

TEST(Golden, StreamsAreWhatTheyHaveAlwaysBeen) {
  const bool update = std::getenv("FZ_UPDATE_GOLDEN") != nullptr;
  for (const StageSetup& s : allSetups()) {
    for (const InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      const auto folder = stageFolder(s.stage_case->stage);
      ASSERT_FALSE(folder.empty()) << s.stage_case->stage << ": no SPEC.md with the right title";
      std::string types;
      for (const DataType type : s.types) {
        types += std::string(dataTypeToString(type)) + "_";
      }
      const auto file = folder / "golden" / (types + slug(s.config->label) + ".bin");
      std::mt19937_64 rng(70);
      const std::unique_ptr<Stage> stage = s.makeStage(kGoldenValues);
      const Bytes bytes = serialize(encode(*stage, input.make(s.inputType(), kGoldenValues, rng)));
      if (update) {
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
      }
      std::ifstream in(file, std::ios::binary);
      ASSERT_TRUE(in.good()) << "missing golden file " << file;
      const Bytes golden(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>{});
      EXPECT_TRUE(golden == bytes) << s.text() << ": bytes differ from " << file;
      break;  // the first input family that applies
    }
  }
}

}  // namespace
}  // namespace fz::test
