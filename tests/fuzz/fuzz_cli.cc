// Any words given to the command line tool end in an exit code that it documents. Words are
// separated by line ends; slashes are taken out, so that only the folder made here is touched.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "commands.h"
#include "failure.h"

namespace {

constexpr std::size_t kMaxFolderFiles = 40;

/// A folder with a field and nothing on the standard streams.
class Workplace {
 public:
  Workplace() {
    std::string name = (std::filesystem::temp_directory_path() / "fz_fuzz_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    std::filesystem::current_path(folder_);
    for (const int fd : {0, 1}) {
      ::dup2(::open("/dev/null", O_RDWR | O_CLOEXEC), fd);
    }
    fill();
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Results of earlier calls are taken away when there are many.
  void tidy() {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) {
      ++n;
    }
    if (n > kMaxFolderFiles) {
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        std::filesystem::remove_all(entry.path());
      }
      fill();
    }
  }

 private:
  static void fill() {
    const std::vector<float> values(300, 1.5f);
    std::FILE* file = std::fopen("a.f32", "wb");
    std::fwrite(values.data(), sizeof(float), values.size(), file);
    std::fclose(file);
  }
  std::filesystem::path folder_;
};

/// Keeps the tool's messages off the terminal while it runs; a sanitizer's stay visible, as they do
/// not go through the C library.
class QuietErrors {
 public:
  QuietErrors() : saved_(stderr) {
    static std::FILE* const kNowhere = std::fopen("/dev/null", "w");
    stderr = kNowhere;
  }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;
  ~QuietErrors() { stderr = saved_; }

 private:
  std::FILE* saved_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  static Workplace workplace;
  std::vector<std::string> words;
  std::string word;
  for (std::size_t i = 0; i < n_bytes; ++i) {
    if (data[i] == '\n') {
      words.push_back(word);
      word.clear();
    } else if (data[i] != '/' && data[i] != '\0') {
      word += static_cast<char>(data[i]);
    }
  }
  if (!word.empty()) {
    words.push_back(word);
  }
  for (std::string& w : words) {
    w = w == ".." ? "x" : w;
  }
  if (!words.empty() && words.front() == "bench") {
    return 0;  // runs for as long as it is told to
  }
  int code = 0;
  {
    const QuietErrors quiet;
    code = fz::cli::runTool(words);
  }
  if (code < 0 || code > static_cast<int>(fz::cli::ExitCode::kNoDevice)) {
    std::abort();
  }
  workplace.tidy();
  return 0;
}
