#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "pipeline/compressor.h"

namespace fz::test {
namespace {

struct Block {
  std::string place;  ///< file and line
  std::string text;
};

/// The code blocks of a page that are marked as TOML.
std::vector<Block> tomlBlocks(const std::filesystem::path& page) {
  std::vector<Block> blocks;
  std::ifstream in(page);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!inside && line.starts_with("```toml")) {
      blocks.push_back({page.filename().string() + ":" + std::to_string(number), ""});
      inside = true;
    } else if (inside && line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

TEST(Docs, EveryConfigurationThatTheyShowLoads) {
  std::vector<std::filesystem::path> pages = {FZ_SOURCE_DIR "/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(FZ_SOURCE_DIR "/docs")) {
    pages.push_back(entry.path());
  }
  std::size_t n_blocks = 0;
  for (const auto& page : pages) {
    for (const Block& block : tomlBlocks(page)) {
      Pipeline pipeline;
      EXPECT_NO_THROW(pipeline.loadConfigText(block.text, block.place)) << block.place;
      EXPECT_TRUE(pipeline.isFinalized());
      ++n_blocks;
    }
  }
  EXPECT_GE(n_blocks, 2u) << "README.md and docs/config.md show one each";
}

}  // namespace
}  // namespace fz::test
