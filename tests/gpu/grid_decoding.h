#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/rtc/compiler.h"
#include "format/crc32.h"
#include "fzgpumodules.h"
#include "gpu/device_pipeline.h"
#include "pipeline/dag.h"

/// Decoders of LorenzoQuant of grids in groups with their coders, for tests.
namespace fz::test {

using Dims = std::array<std::size_t, 3>;

struct GridCase {
  std::string name;
  DataType type;
  std::string settings;
  /// Codes come from RZE through Bitshuffle, which give no runs of them: those two are a group, and
  /// LorenzoQuant decodes alone. Else from BitplaneRZE, all in one kernel.
  bool has_planes = false;

  std::size_t kernelCount() const { return has_planes ? 2 : 1; }
};

inline std::string nameOf(const Dims& dims) {
  return std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " x " +
         std::to_string(dims[2]);
}

inline std::string tomlOf(const GridCase& which) {
  const std::string type = which.type == DataType::FLOAT32 ? "float32" : "float64";
  const std::string codes = "inputs = [{ from = \"predict\", port = \"codes\" }]\n";
  const std::string toml =
      "[[stage]]\nname = \"predict\"\ntype = \"LorenzoQuant\"\ninput_type = \"" + type +
      "\"\ncode_type = \"uint16\"\nerror_bound = 0.5\n" + which.settings;
  if (!which.has_planes) {
    return toml + "[[stage]]\nname = \"coder\"\ntype = \"BitplaneRZE\"\n" + codes;
  }
  return toml + "[[stage]]\nname = \"planes\"\ntype = \"Bitshuffle\"\nelement_width = 2\n" + codes +
         "[[stage]]\nname = \"coder\"\ntype = \"RZE\"\ninputs = [{ from = \"planes\" }]\n";
}

inline std::vector<GridCase> gridCases() {
  std::vector<GridCase> all;
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    const std::string end = type == DataType::FLOAT32 ? "_float32" : "_float64";
    const std::string zigzag = "quant_radius = 32768\nzigzag_codes = true\n";
    all.push_back({"Zigzag" + end, type, zigzag});
    all.push_back({"Signed" + end, type, "quant_radius = 500\n"});
    all.push_back({"Shuffled" + end, type, zigzag, true});
  }
  return all;
}

/// One unit is a bin.
enum class Data {
  kSmooth,  ///< sums of 16 bits do
  kSteep,   ///< deltas of all sizes that have codes
  kOdd,     ///< list entries of both kinds, at ends of tiles too
};

/// The first value of odd data, and its delta: beyond all codes.
template <class T>
constexpr T kFirstOdd = T(4e4);

template <class T>
std::vector<std::uint8_t> valuesOf(const Dims& dims, Data data) {
  std::mt19937 random(5);
  std::vector<T> values;
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      for (std::size_t x = 0; x < dims[0]; ++x) {
        double value = 90 * std::sin(0.02 * static_cast<double>(x + 3 * z)) +
                       40 * std::cos(0.1 * static_cast<double>(y)) +
                       static_cast<double>(random() % 5);
        if (data == Data::kSteep) {
          value += static_cast<double>(random() % 30'000) - 15'000;
        }
        values.push_back(static_cast<T>(value));
      }
    }
  }
  const T odd[] = {kFirstOdd<T>, std::numeric_limits<T>::quiet_NaN(),
                   -std::numeric_limits<T>::max(), T(-7e4), T(3e5)};
  for (std::size_t i = 0; data == Data::kOdd && i < values.size(); i += 31) {
    values[i] = odd[i / 31 % std::size(odd)];
  }
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Makes the checksums fit, so that the decoders see the damage.
inline void seal(FrameBytes& frame, std::size_t header_bytes) {
  constexpr std::size_t kDataCrcOffset = 72;
  constexpr std::size_t kHeaderCrcOffset = 76;
  const auto put = [&](std::size_t at, std::uint32_t crc) {
    std::memcpy(frame.data() + at, &crc, sizeof(crc));
  };
  put(kDataCrcOffset, crc32(ByteView(frame).subspan(header_bytes)));
  put(kHeaderCrcOffset, 0);
  put(kHeaderCrcOffset, crc32(ByteView(frame).first(header_bytes)));
}

/// Of two entries for one value, either may be called the second.
inline std::string withoutNumbers(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }),
             text.end());
  return text;
}

/// Puts `entry` in place of some of the first range entries of a frame of odd data.
template <class T>
bool replaceEntries(FrameBytes& frame, std::size_t header_bytes, T entry) {
  for (std::size_t at = header_bytes; at + 16 * sizeof(T) <= frame.size(); at += 4) {
    if (std::memcmp(frame.data() + at, &kFirstOdd<T>, sizeof(T)) == 0) {
      for (const std::size_t i : {0u, 3u, 4u, 9u}) {
        std::memcpy(frame.data() + at + i * sizeof(T), &entry, sizeof(T));
      }
      return true;
    }
  }
  return false;
}

class DeviceGridDecoding : public OnDevice<testing::TestWithParam<GridCase>> {
 protected:
  static void build(Pipeline& pipeline, const Dims& dims, Fusion fusion) {
    pipeline.setBackend(Backend::CUDA);
    pipeline.setFusion(fusion);
    pipeline.enableProfiling(true);
    ConfigOverrides overrides;
    overrides.input_type = GetParam().type;
    overrides.dims = dims;
    pipeline.loadConfigText(tomlOf(GetParam()), GetParam().name, overrides, false);
    pipeline.finalize();
  }
  static std::vector<std::uint8_t> fieldOf(const Dims& dims, Data data) {
    return GetParam().type == DataType::FLOAT32 ? valuesOf<float>(dims, data)
                                                : valuesOf<double>(dims, data);
  }
  /// What decompress leaves in memory that was full of something else, or its message.
  struct Outcome {
    std::string message;
    std::vector<std::uint8_t> values;
    bool operator==(const Outcome&) const = default;
  };
  static Outcome decode(Pipeline& pipeline,
                        const FrameBytes& frame,
                        std::size_t n_bytes,
                        std::uint8_t before) {
    const DeviceBytesBuffer stored{ByteView(frame)};
    const DeviceBytesBuffer out(n_bytes);
    FZ_CUDA_CHECK(cudaMemset(out.data(), before, out.size()));
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    std::size_t n_out = 0;
    const Failure failure = failureOf(
        [&] { pipeline.decompress(stored.data(), stored.size(), out.data(), out.size(), &n_out); });
    return failure.code ? Outcome{failure.message, {}} : Outcome{"", out.get(n_out)};
  }
  /// A row of the profile is a kernel of a group, or a stage.
  static std::vector<std::string> rowsOf(const Pipeline& pipeline) {
    std::vector<std::string> names;
    for (const StageTimingResult& row : pipeline.getLastPerfResult().stages) {
      names.push_back(row.name);
    }
    return names;
  }

  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && GetParam().has_planes && cuda::rtc::compilerVersion().empty()) {
      GTEST_SKIP() << "no run-time compiler";
    }
  }

  static void expectSameValues(const Dims& dims, Data data) {
    SCOPED_TRACE(nameOf(dims) + ", data " + std::to_string(static_cast<int>(data)));
    const std::vector<std::uint8_t> bytes = fieldOf(dims, data);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size(), MemoryStrategy::MINIMAL);
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(fused, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const Outcome expected = decode(staged, frame, bytes.size(), 0xC3);
    ASSERT_EQ(expected.values.size(), bytes.size()) << expected.message;
    EXPECT_EQ(rowsOf(staged).size(), GetParam().has_planes ? 3u : 2u);
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(decode(fused, frame, bytes.size(), static_cast<std::uint8_t>(0x5A + round)) ==
                  expected);
      ASSERT_EQ(rowsOf(fused).size(), GetParam().kernelCount()) << fused.explain();
    }
  }
};

}  // namespace fz::test
