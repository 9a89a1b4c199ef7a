#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

#include "fz/host_api.h"
#include "support/fields.h"

// Archives written by the existing system (FZM 3.1) must decode: bit-equal where its own decoder
// could read them, within the bound of their config otherwise.

namespace fz::test {
namespace {

const std::string kFolder = std::string(FZ_SHARED_DATA) + "/interop";

std::vector<std::filesystem::path> archives() {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(kFolder)) {
    for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
      if (entry.path().extension() == ".fzm") {
        files.push_back(entry.path());
      }
    }
  }
  return files;
}

std::vector<float> asFloats(ByteView bytes) {
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

TEST(Interop, EveryArchiveOfTheExistingSystemDecodes) {
  const auto files = archives();
  if (files.empty()) {
    GTEST_SKIP() << "no archives of the existing system beside the project";
  }
  const std::vector<float> original = asFloats(readBytes(kFolder + "/v64x64.f32"));
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    const std::vector<std::uint8_t> bytes = readBytes(file.string());
    const Array array = decompress(bytes);
    const std::vector<float> decoded = asFloats(array.bytes());
    ASSERT_EQ(decoded.size(), original.size());

    auto reference = file;
    reference.replace_extension(".dec.f32");
    if (std::filesystem::exists(reference)) {
      const std::vector<std::uint8_t> expected = readBytes(reference.string());
      EXPECT_TRUE(
          std::equal(expected.begin(), expected.end(), array.bytes().begin(), array.bytes().end()))
          << "differs from what the existing system decodes";
    }

    const FrameInfo info = inspect(bytes);
    EXPECT_EQ(info.version_minor, 1u);
    std::map<std::string, ParamValue> params(info.stages[0].params.begin(),
                                             info.stages[0].params.end());
    const double bound = std::get<double>(params.at("error_bound"));
    const std::string mode = std::get<std::string>(params.at("error_bound_mode"));
    float smallest = original[0];
    float largest = original[0];
    for (const float x : original) {
      smallest = std::min(smallest, x);
      largest = std::max(largest, x);
    }
    const bool pointwise = mode == "REL" && info.stages[0].name == "Quantizer";
    double absolute = bound;
    if (mode == "NOA") {
      absolute = bound * (static_cast<double>(largest) - static_cast<double>(smallest));
    } else if (mode == "REL") {
      absolute = bound * std::max(std::fabs(smallest), std::fabs(largest));
    }
    for (std::size_t i = 0; i < original.size(); ++i) {
      const double x = original[i];
      const double ulp = std::nextafter(std::fabs(original[i]), INFINITY) - std::fabs(x);
      // The writer of these files does not check its bound: allow its own rounding, no more.
      const double allowed = pointwise ? bound * std::fabs(x) + 4 * ulp : absolute + 2 * ulp;
      ASSERT_LE(std::fabs(x - static_cast<double>(decoded[i])), allowed) << "at " << i;
    }
  }
}

}  // namespace
}  // namespace fz::test
