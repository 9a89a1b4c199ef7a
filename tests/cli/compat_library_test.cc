// fzgmod_cli_main() called in-process, as the programs of others do.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "fz/host_api.h"
#include "fzgmod_cli.h"

namespace fs = std::filesystem;

namespace {

class FzgmodCliMain : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fz_cli_main_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (std::size_t i = 0; i < 1000; ++i) {
      field_.push_back(static_cast<float>(i % 97) * 0.25F);
    }
    std::ofstream(path("a.f32"), std::ios::binary)
        .write(reinterpret_cast<const char*>(field_.data()), 4000);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static int call(std::vector<std::string> words) {
    words.insert(words.begin(), "fzgmod-cli");
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    return fzgmod_cli_main(static_cast<int>(words.size()), argv.data());
  }

  fs::path folder_;
  std::vector<float> field_;
};

TEST_F(FzgmodCliMain, NoInputIsAnError) {
  EXPECT_EQ(call({"-z"}), 1);
  EXPECT_EQ(call({}), 1);
}

TEST_F(FzgmodCliMain, CompressMakesAFrameThatTheLibraryReads) {
  EXPECT_EQ(call({"-z", "-i", path("a.f32"), "-m", "abs", "-e", "0.01"}), 0);
  const fz::Array back = fz::decompress(fz::Frame::readFromFile(path("a.f32.fzm")));
  ASSERT_EQ(back.as<float>().size(), field_.size());
  for (std::size_t i = 0; i < field_.size(); ++i) {
    ASSERT_LE(std::abs(static_cast<double>(back.as<float>()[i]) - static_cast<double>(field_[i])),
              0.01);
  }
}

TEST_F(FzgmodCliMain, DecompressGivesWhatTheLibraryWrote) {
  fz::compress(std::span<const float>(field_),
               {.preset = "speed", .error_bound = 0.01, .mode = fz::ErrorBoundMode::ABS})
      .writeToFile(path("lib.fzm"));
  EXPECT_EQ(call({"-x", "-i", path("lib.fzm"), "-o", path("b.f32")}), 0);
  EXPECT_EQ(fs::file_size(path("b.f32")), 4000U);
}

TEST_F(FzgmodCliMain, BenchmarkWithOneRunIsFine) {
  EXPECT_EQ(call({"-b", "-i", path("a.f32"), "--runs", "1"}), 0);
}

}  // namespace
