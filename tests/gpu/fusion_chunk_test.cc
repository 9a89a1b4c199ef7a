// Chains of the chunk coders (RZE, BitplaneRZE): a fused group makes the bytes of its stages.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "gpu/device_fixture.h"
#include "gpu/device_pipeline.h"
#include "support/test_stages.h"

namespace fz::test {
namespace {

struct Chain {
  std::string name;
  std::string toml;
  unsigned n_encoding = 0;  ///< stages of the largest group
  unsigned n_decoding = 0;
};

std::string quantizer(const std::string& type,
                      const std::string& code,
                      const std::string& mode,
                      const std::string& more = "") {
  return "[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\ninput_type = \"" + type +
         "\"\ncode_type = \"" + code + "\"\nerror_bound = 1e-3\nerror_bound_mode = \"" + mode +
         "\"\n" + more;
}
std::string stage(const std::string& name,
                  const std::string& type,
                  const std::string& from,
                  const std::string& more = "",
                  const std::string& port = "") {
  return "[[stage]]\nname = \"" + name + "\"\ntype = \"" + type + "\"\n" + more +
         "inputs = [{ from = \"" + from + "\"" + (port.empty() ? "" : ", port = \"" + port + "\"") +
         " }]\n";
}

std::string difference(unsigned chunk_bytes) {
  return stage("d", "Difference", "q",
               "input_type = \"int32\"\noutput_type = \"uint32\"\nchunk_size = " +
                   std::to_string(chunk_bytes) + "\n",
               "codes");
}
std::string shuffle(unsigned width, const std::string& from, unsigned block = 16384) {
  return stage(
      "s", "Bitshuffle", from,
      "element_width = " + std::to_string(width) + "\nblock_size = " + std::to_string(block) + "\n",
      from == "q" ? "codes" : "");
}

std::vector<Chain> chains() {
  std::vector<Chain> all;
  const std::string zigzag = "zigzag_codes = true\n";
  const std::string wide = "quant_radius = 1073741824\n";
  const std::string plain = wide + "zigzag_codes = false\n";
  for (const std::string type : {"float32", "float64"}) {
    for (const std::string mode : {"ABS", "NOA", "REL"}) {
      all.push_back({std::string("Pfpl_").append(mode).append("_").append(type),
                     quantizer(type, "uint32", mode, plain) + difference(16384) + shuffle(4, "d") +
                         stage("c", "RZE", "s"),
                     4, 4});
    }
    all.push_back(
        {"Speed_" + type,
         quantizer(type, "uint16", "NOA", zigzag) + shuffle(2, "q") + stage("c", "RZE", "s"), 3,
         3});
    all.push_back(
        {"Bitplane_" + type,
         quantizer(type, "uint16", "NOA", zigzag) + stage("c", "BitplaneRZE", "q", "", "codes"), 2,
         2});
    all.push_back(
        {"ShuffleU32_" + type,
         quantizer(type, "uint32", "ABS", wide + zigzag) + shuffle(4, "q") + stage("c", "RZE", "s"),
         3, 3});
  }
  for (const std::string type : {"float32", "float64"}) {
    const std::string predict =
        "[[stage]]\nname = \"q\"\ntype = \"LorenzoQuant\"\ninput_type = \"" + type +
        "\"\ncode_type = \"uint16\"\nerror_bound = 1e-3\nquant_radius = 500\n";
    all.push_back({"Fzgpu_" + type, predict + stage("c", "BitplaneRZE", "q", "", "codes"), 2, 2});
    all.push_back({"LorenzoQuantRze_" + type,
                   predict + "error_bound_mode = \"NOA\"\nzigzag_codes = true\n" + shuffle(2, "q") +
                       stage("c", "RZE", "s"),
                   3, 3});
  }
  all.push_back({"SmallUnits",
                 quantizer("float32", "uint32", "ABS", plain) + difference(4096) +
                     shuffle(4, "d", 4096) + stage("c", "RZE", "s"),
                 4, 4});
  all.push_back({"TinyDifferences",
                 quantizer("float32", "uint32", "ABS", plain) + difference(8) +
                     shuffle(4, "d", 8192) + stage("c", "RZE", "s", "levels = 2\n"),
                 4, 4});
  return all;
}

/// Data of a kind: smooth, noise, all equal, or with values that no code holds.
template <class T>
std::vector<T> values(const std::string& kind, std::size_t n) {
  std::vector<T> all(n);
  std::mt19937 random(7);
  std::normal_distribution<double> noise;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i);
    if (kind == "equal") {
      all[i] = static_cast<T>(2.5);
    } else if (kind == "noise") {
      all[i] = static_cast<T>(noise(random) * 50.0);
    } else {
      all[i] = static_cast<T>(20.0 * std::sin(x * 1e-3) + 3.0 * std::cos(x * 0.017));
    }
    if (kind == "odd" && i % 97 == 3) {
      const T odd[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                       T{0}, -std::numeric_limits<T>::max(), std::numeric_limits<T>::denorm_min()};
      all[i] = odd[i / 97 % 5];
    }
  }
  return all;
}

class DeviceChunkFusion : public OnDevice<testing::TestWithParam<Chain>> {
 protected:
  static std::unique_ptr<Pipeline> make(Fusion fusion, std::size_t n_bytes) {
    auto pipeline = std::make_unique<Pipeline>(n_bytes, MemoryStrategy::MINIMAL);
    pipeline->setBackend(Backend::CUDA);
    pipeline->setFusion(fusion);
    pipeline->loadConfigText(GetParam().toml, GetParam().name, {}, false);
    pipeline->finalize();
    return pipeline;
  }
  static std::size_t largestGroup(Pipeline& pipeline) {
    std::size_t n = 0;
    for (const auto& group : pipeline.getFusedGroups()) {
      n = std::max(n, group.stages.size());
    }
    return n;
  }

  template <class T>
  void run(const std::vector<T>& data) {
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(data.data()), byteCount(data));
    const DeviceBytesBuffer input(bytes);
    const auto staged = make(Fusion::Off, bytes.size());
    const auto fused = make(Fusion::Auto, bytes.size());
    const FrameBytes expected = frameOnDevice(*staged, input, input.size());
    for (int round = 0; round < 2; ++round) {
      const FrameBytes frame = frameOnDevice(*fused, input, input.size());
      ASSERT_EQ(frame.size(), expected.size());
      ASSERT_TRUE(frame == expected)
          << "first difference at "
          << std::mismatch(frame.begin(), frame.end(), expected.begin()).first - frame.begin();
    }
    EXPECT_EQ(largestGroup(*fused), GetParam().n_encoding) << fused->explain();
    const DeviceBytesBuffer on_device{ByteView(expected)};
    FrameBytes decoded[2];
    for (int side = 0; side < 2; ++side) {
      Pipeline& pipeline = side == 0 ? *staged : *fused;
      const DeviceBytesBuffer out(bytes.size());
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xA5, out.size()));
      std::size_t n_bytes = 0;
      pipeline.decompress(on_device.data(), on_device.size(), out.data(), out.size(), &n_bytes);
      ASSERT_EQ(n_bytes, bytes.size());
      decoded[side] = out.get(n_bytes);
    }
    ASSERT_TRUE(decoded[0] == decoded[1])
        << "first difference at "
        << std::mismatch(decoded[0].begin(), decoded[0].end(), decoded[1].begin()).first -
               decoded[0].begin();
  }
};

TEST_P(DeviceChunkFusion, BytesAreThoseOfTheStages) {
  for (const std::size_t n : {1u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 4095u, 4096u, 4097u, 8191u,
                              8192u, 8193u, 65537u, 1'000'007u}) {
    for (const char* kind : {"smooth", "noise", "equal", "odd"}) {
      if (isSmallRun() && ((n != 33 && n != 8193) || kind == std::string("smooth"))) {
        continue;
      }
      SCOPED_TRACE(std::string(kind) + ", " + std::to_string(n) + " values");
      if (GetParam().name.find("float64") != std::string::npos) {
        run(values<double>(kind, n));
      } else {
        run(values<float>(kind, n));
      }
      if (HasFailure()) {
        return;
      }
    }
  }
}

using DeviceChunkFusionDims = OnDevice<>;

INSTANTIATE_TEST_SUITE_P(Chains,
                         DeviceChunkFusion,
                         testing::ValuesIn(chains()),
                         [](const auto& param) { return param.param.name; });

/// 4 MiB of floats: codes, differences and shuffled bytes would each take as much.
TEST_F(DeviceChunkFusionDims, BuffersInsideAGroupTakeNoMemory) {
  const Field field = smoothField(DataType::FLOAT32, {1u << 20, 1, 1});
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  for (const MemoryStrategy strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
    std::size_t peak[2] = {};
    for (int side = 0; side < 2; ++side) {
      Pipeline pipeline(field.bytes.size(), strategy);
      pipeline.setBackend(Backend::CUDA);
      pipeline.setFusion(side == 0 ? Fusion::Off : Fusion::Auto);
      loadPreset(pipeline, "pfpl", field, "0.0001");
      pipeline.finalize();
      frameOnDevice(pipeline, input, field.bytes.size());
      peak[side] = pipeline.getDAG()->getPeakMemoryUsage();
    }
    EXPECT_LE(peak[1] + field.bytes.size(), peak[0]);
  }
}

}  // namespace
}  // namespace fz::test
