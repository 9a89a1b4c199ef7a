// Fused chains against the same chains stage by stage: frames, values, errors.
#include <gtest/gtest.h>
#include <limits>

#include "format/crc32.h"
#include "gpu/device_pipeline.h"
#include "pipeline/dag.h"

namespace fz::test {
namespace {

/// A chain as text; {T} stands for the type of the field.
struct FusedChain {
  std::string name;
  std::string toml;
  bool refuses_nonfinite = true;
};

std::string linear(const std::string& code_type,
                   const std::string& mode = "ABS",
                   const std::string& policy = "Guarantee") {
  return "[[stage]]\nname = \"quantizer\"\ntype = \"Quantizer\"\ninput_type = \"{T}\"\ncode_type = "
         "\"u" +
         code_type + "\"\nerror_bound = 0.01\nerror_bound_mode = \"" + mode +
         "\"\nlinear_mode = true\nlinear_policy = \"" + policy + "\"\n";
}
std::string lorenzo(const std::string& type, int block) {
  return "[[stage]]\nname = \"delta\"\ntype = \"Lorenzo\"\ndata_type = \"" + type +
         "\"\nblock_size = " + std::to_string(block) +
         "\ninputs = [{ from = \"quantizer\", port = \"codes\" }]\n";
}
std::string tiles(const std::string& type) {
  return "[[stage]]\nname = \"delta\"\ntype = \"TiledLorenzo\"\ndata_type = \"" + type +
         "\"\ninputs = [{ from = \"quantizer\", port = \"codes\" }]\n";
}
std::string bitpack(const std::string& type, int block, bool outlier, bool has_delta = true) {
  return "[[stage]]\nname = \"coder\"\ntype = \"AdaptiveBitpack\"\ninput_type = \"" + type +
         "\"\nblock_size = " + std::to_string(block) +
         "\noutlier_selection = " + (outlier ? "true" : "false") +
         "\ninputs = [{ from = " + (has_delta ? "\"delta\"" : "\"quantizer\", port = \"codes\"") +
         " }]\n";
}

std::vector<FusedChain> chains() {
  std::vector<FusedChain> all;
  for (const std::string type : {"int32", "int16"}) {
    for (const bool outlier : {false, true}) {
      const std::string end = std::string("_") + type + (outlier ? "_outlier" : "_plain");
      all.push_back(
          {"lorenzo32" + end, linear(type) + lorenzo(type, 32) + bitpack(type, 32, outlier)});
      all.push_back({"lorenzo256_block128" + end,
                     linear(type) + lorenzo(type, 256) + bitpack(type, 128, outlier)});
      all.push_back({"lorenzo1024_block1024" + end,
                     linear(type) + lorenzo(type, 1024) + bitpack(type, 1024, outlier)});
      all.push_back({"tiles" + end, linear(type) + tiles(type) + bitpack(type, 64, outlier)});
      all.push_back({"fixed64" + end, linear(type) + bitpack(type, 64, outlier, false)});
      all.push_back({"fixed32" + end, linear(type) + bitpack(type, 32, outlier, false)});
    }
    all.push_back(
        {"noa_" + type, linear(type, "NOA") + lorenzo(type, 32) + bitpack(type, 32, false)});
    all.push_back({"wrap_" + type,
                   linear(type, "ABS", "Wrap") + lorenzo(type, 32) + bitpack(type, 32, true),
                   false});
  }
  return all;
}

std::string forType(const std::string& toml, DataType type) {
  std::string text = toml;
  const std::string name = type == DataType::FLOAT32 ? "float32" : "float64";
  for (std::size_t at = text.find("{T}"); at != std::string::npos; at = text.find("{T}")) {
    text.replace(at, 3, name);
  }
  return text;
}

template <class F>
Field fieldOf(DataType type, std::array<std::size_t, 3> dims, F value) {
  const std::size_t n = dims[0] * dims[1] * dims[2];
  Field field{"", type, dims, {}};
  field.bytes.resize(n * getDataTypeSize(type));
  for (std::size_t i = 0; i < n; ++i) {
    if (type == DataType::FLOAT32) {
      reinterpret_cast<float*>(field.bytes.data())[i] = static_cast<float>(value(i));
    } else {
      reinterpret_cast<double*>(field.bytes.data())[i] = value(i);
    }
  }
  return field;
}

double smooth(std::size_t i) {
  const auto x = static_cast<double>(i);
  return 50 * std::sin(0.01 * x) + 20 * std::cos(0.003 * x) + 0.1 * std::sin(7.3 * x);
}

/// Numbers that look random and are the same in every run.
double scattered(std::size_t i) {
  std::uint64_t u = (i + 1) * 0x9E3779B97F4A7C15ull;
  u ^= u >> 29;
  u *= 0xBF58476D1CE4E5B9ull;
  u ^= u >> 32;
  return static_cast<double>(u >> 11) / 9007199254740992.0 - 0.5;
}

/// Makes the checksums fit, so that the decoders see the damage.
void seal(FrameBytes& frame, std::size_t header_bytes) {
  constexpr std::size_t kDataCrcOffset = 72;
  constexpr std::size_t kHeaderCrcOffset = 76;
  const auto put = [&](std::size_t at, std::uint32_t crc) {
    std::memcpy(frame.data() + at, &crc, sizeof(crc));
  };
  put(kDataCrcOffset, crc32(ByteView(frame).subspan(header_bytes)));
  put(kHeaderCrcOffset, 0);
  put(kHeaderCrcOffset, crc32(ByteView(frame).first(header_bytes)));
}

class DeviceFusion : public OnDevice<testing::TestWithParam<FusedChain>> {
 protected:
  static void build(Pipeline& pipeline, const Field& field, Fusion fusion) {
    pipeline.setBackend(Backend::CUDA);
    pipeline.setFusion(fusion);
    ConfigOverrides overrides;
    overrides.input_type = field.type;
    overrides.dims = field.dims;
    pipeline.loadConfigText(forType(GetParam().toml, field.type), GetParam().name, overrides,
                            false);
    pipeline.finalize();
  }
  static bool isFused(Pipeline& pipeline) {
    const auto& groups = pipeline.getFusedGroups();
    return groups.size() == 1 && groups[0].stages.size() == pipeline.getStages().size();
  }

  /// Both ways to encode, both ways to decode each frame.
  static void expectSame(const Field& field, const std::string& what) {
    SCOPED_TRACE(what);
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    Pipeline staged(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    build(staged, field, Fusion::Off);
    Pipeline fused(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    build(fused, field, Fusion::Auto);
    FrameBytes frame;
    const Failure refused =
        failureOf([&] { frame = frameOnDevice(staged, input, field.bytes.size()); });
    for (int round = 0; round < 2; ++round) {
      FrameBytes own;
      const Failure failure =
          failureOf([&] { own = frameOnDevice(fused, input, field.bytes.size()); });
      ASSERT_EQ(failure.message, refused.message);
      ASSERT_EQ(failure.code, refused.code);
      ASSERT_EQ(own.size(), frame.size());
      ASSERT_TRUE(own == frame) << "first difference at "
                                << std::mismatch(own.begin(), own.end(), frame.begin()).first -
                                       own.begin();
    }
    ASSERT_TRUE(isFused(fused)) << fused.explain();
    if (frame.empty()) {
      return;
    }
    const DeviceBytesBuffer stored{ByteView(frame)};
    const DeviceBytesBuffer from_staged(field.bytes.size());
    const DeviceBytesBuffer from_fused(field.bytes.size());
    FZ_CUDA_CHECK(cudaMemset(from_staged.data(), 0xEE, from_staged.size()));
    FZ_CUDA_CHECK(cudaMemset(from_fused.data(), 0xDD, from_fused.size()));
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    std::size_t n_bytes = 0;
    staged.decompress(stored.data(), frame.size(), from_staged.data(), from_staged.size(),
                      &n_bytes);
    ASSERT_EQ(n_bytes, field.bytes.size());
    fused.decompress(stored.data(), frame.size(), from_fused.data(), from_fused.size(), &n_bytes);
    ASSERT_EQ(n_bytes, field.bytes.size());
    ASSERT_TRUE(from_fused.get(n_bytes) == from_staged.get(n_bytes));
  }
};

TEST_P(DeviceFusion, AllSizesEqualTheStages) {
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    for (const std::size_t n : {1u, 31u, 32u, 33u, 1023u, 1024u, 1025u, 4095u, 4096u, 4097u, 8191u,
                                8192u, 8193u, 65537u, 1000007u}) {
      if (isSmallRun() && n != 33 && n != 4097) {
        continue;
      }
      expectSame(fieldOf(type, {n, 1, 1}, smooth), std::to_string(n) + " values");
    }
  }
}

TEST_P(DeviceFusion, AllShapesEqualTheStages) {
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    for (const std::array<std::size_t, 3> dims : {std::array<std::size_t, 3>{64, 64, 1},
                                                  {65, 63, 1},
                                                  {3, 1001, 1},
                                                  {1001, 3, 1},
                                                  {1000, 800, 1},
                                                  {512, 16, 16},
                                                  {67, 43, 29},
                                                  {1, 1, 77},
                                                  {5, 2, 300},
                                                  {128, 128, 64}}) {
      if (isSmallRun() && dims[0] != 65 && dims[0] != 5) {
        continue;
      }
      expectSame(fieldOf(type, dims, smooth), std::to_string(dims[0]) + " x " +
                                                  std::to_string(dims[1]) + " x " +
                                                  std::to_string(dims[2]));
    }
  }
}

TEST_P(DeviceFusion, AllKindsOfDataEqualTheStages) {
  if (isSmallRun()) {
    GTEST_SKIP() << "under a sanitizer sizes and shapes are enough; this runs without one";
  }
  constexpr std::size_t kN = 70'001;
  for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
    expectSame(fieldOf(type, {kN, 1, 1}, [](std::size_t) { return 0.0; }), "zeros");
    expectSame(fieldOf(type, {kN, 1, 1}, [](std::size_t) { return -3.25; }), "constant");
    expectSame(fieldOf(type, {kN, 1, 1}, [](std::size_t i) { return 200 * scattered(i); }),
               "random");
    expectSame(fieldOf(type, {kN, 1, 1}, [](std::size_t i) { return 4e7 * scattered(i); }),
               "large");  // a smaller step, or none that helps
    expectSame(
        fieldOf(type, {kN, 1, 1}, [](std::size_t i) { return i % 9000 == 8191 ? 1e5 : smooth(i); }),
        "spikes");
    expectSame(
        fieldOf(type, {kN, 1, 1},
                [](std::size_t i) { return 3e4 * std::sin(0.001 * static_cast<double>(i)); }),
        "ladder");
    for (const double odd : {std::numeric_limits<double>::quiet_NaN(),
                             -std::numeric_limits<double>::infinity(), 3e38}) {
      expectSame(
          fieldOf(type, {kN, 1, 1}, [&](std::size_t i) { return i == 40'000 ? odd : smooth(i); }),
          "one value " + std::to_string(odd));
    }
  }
}

TEST_P(DeviceFusion, DamageEndsInTheSameErrors) {
  if (isSmallRun()) {
    GTEST_SKIP() << "under a sanitizer sizes and shapes are enough; this runs without one";
  }
  const Field field = fieldOf(DataType::FLOAT32, {50'000, 1, 1}, smooth);
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  Pipeline staged(field.bytes.size());
  build(staged, field, Fusion::Off);
  Pipeline fused(field.bytes.size());
  build(fused, field, Fusion::Auto);
  const FrameBytes frame = frameOnDevice(staged, input, field.bytes.size());
  const std::size_t header = staged.buildHeader().core.header_size;
  const DeviceBytesBuffer out(field.bytes.size());
  const auto outcome = [&](Pipeline& pipeline, const FrameBytes& damaged) {
    const DeviceBytesBuffer stored{ByteView(damaged)};
    std::size_t n_bytes = 0;
    FZ_CUDA_CHECK(cudaMemset(out.data(), 0, out.size()));
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    const Failure failure = failureOf([&] {
      pipeline.decompress(stored.data(), damaged.size(), out.data(), out.size(), &n_bytes);
    });
    return std::make_pair(failure.message,
                          failure.message.empty() ? out.get(out.size()) : FrameBytes{});
  };
  for (std::size_t at = header; at < frame.size(); at += 1 + (at - header) / 3) {
    for (const unsigned bits : {0x01u, 0x80u, 0xFFu}) {
      FrameBytes damaged = frame;
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ bits);
      seal(damaged, header);
      ASSERT_EQ(outcome(fused, damaged), outcome(staged, damaged)) << "byte " << at;
    }
  }
}

/// The decoder is enqueued before the host knows the checksum.
TEST_P(DeviceFusion, APayloadThatMissesItsChecksumIsNotDecoded) {
  const std::size_t n = isSmallRun() ? 4097 : 50'000;
  const Field field = fieldOf(DataType::FLOAT32, {n, 1, 1}, smooth);
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  Pipeline fused(field.bytes.size());
  build(fused, field, Fusion::Auto);
  const FrameBytes frame = frameOnDevice(fused, input, field.bytes.size());
  FrameBytes damaged = frame;
  damaged.back() ^= 1;
  const DeviceBytesBuffer good{ByteView(frame)};
  const DeviceBytesBuffer bad{ByteView(damaged)};
  const DeviceBytesBuffer out(field.bytes.size());
  const FrameBytes before(out.size(), 0x5A);
  for (int round = 0; round < 2; ++round) {
    std::size_t n_bytes = 0;
    out.put(before);
    const Failure failure = failureOf(
        [&] { fused.decompress(bad.data(), bad.size(), out.data(), out.size(), &n_bytes); });
    EXPECT_EQ(failure.code, ErrorCode::kCorrupt);
    EXPECT_TRUE(failure.mentions("checksum")) << failure.message;
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_TRUE(out.get(out.size()) == before);
    fused.decompress(good.data(), good.size(), out.data(), out.size(), &n_bytes);
    EXPECT_EQ(n_bytes, out.size());
    EXPECT_FALSE(out.get(out.size()) == before);
  }
}

TEST_P(DeviceFusion, GraphsAndAsynchronousCallsEqualTheStages) {
  constexpr std::size_t kN = 60'000;
  constexpr std::size_t kBytes = kN * sizeof(float);
  const DeviceStream stream;
  Field first = fieldOf(DataType::FLOAT32, {kN, 1, 1}, smooth);
  // Within the reach of the codes, though not of the first step.
  const double height = GetParam().name.find("int16") != std::string::npos ? 300 : 2e4;
  const auto dataOf = [&](int i) {
    return fieldOf(DataType::FLOAT32, {kN, 1, 1}, [&](std::size_t k) {
      return i % 3 == 2
                 ? height *
                       std::sin(0.01 * static_cast<double>(k + 7 * static_cast<std::size_t>(i)))
                 : (1 + i) * smooth(k + 100 * static_cast<std::size_t>(i));
    });
  };
  Pipeline staged(kBytes, MemoryStrategy::PREALLOCATE);
  build(staged, first, Fusion::Off);
  Pipeline graph(kBytes, MemoryStrategy::PREALLOCATE);
  graph.enableGraphMode(true);
  build(graph, first, Fusion::Auto);
  graph.warmup(stream);
  graph.captureGraph(stream);
  Pipeline async(kBytes, MemoryStrategy::PREALLOCATE);
  build(async, first, Fusion::Auto);
  async.warmup(stream);
  const DeviceBytesBuffer input(kBytes);
  const DeviceBytesBuffer frame(4 * kBytes + (1 << 16));
  const DeviceBytesBuffer out(kBytes);
  for (int i = 0; i < 7; ++i) {
    const Field field = dataOf(i);
    input.put(field.bytes);
    const FrameBytes expected = frameOnDevice(staged, input, kBytes, stream);
    ASSERT_TRUE(frameOnDevice(graph, input, kBytes, stream) == expected) << "graph, replay " << i;
    async.compressAsync(input.data(), kBytes, frame.data(), frame.size(), nullptr, stream);
    ASSERT_EQ(async.finishAsync(stream), expected.size());
    ASSERT_TRUE(frame.get(expected.size()) == expected) << "asynchronous, call " << i;
    std::size_t n_bytes = 0;
    staged.decompress(frame.data(), expected.size(), out.data(), kBytes, &n_bytes, stream);
    const auto values = out.get(kBytes);
    FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, kBytes));
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    async.decompressAsync(frame.data(), frame.size(), out.data(), kBytes, nullptr, stream);
    ASSERT_EQ(async.finishAsync(stream), kBytes);
    ASSERT_TRUE(out.get(kBytes) == values) << "asynchronous, call " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, DeviceFusion, testing::ValuesIn(chains()), [](const auto& param) {
  return param.param.name;
});

}  // namespace
}  // namespace fz::test
