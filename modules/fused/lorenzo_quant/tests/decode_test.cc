#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fused/lorenzo_quant/tests/support.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

using F32 = LorenzoQuantStage<float, std::uint16_t>;

TEST(LorenzoQuant, DecodesTheWorkedExampleOfTheFormat) {
  const Bytes config = {0xcd, 0xcc, 0xcc, 0x3d, 0,    2,    0, 0, 8, 0, 0, 0, 1, 0, 0,
                        0,    8,    1,    1,    0,    0,    0, 0, 0, 1, 0, 0, 0, 1, 0,
                        0,    0,    0xcd, 0xcc, 0xcc, 0x3d, 0, 0, 0, 0, 0, 0, 0, 0};
  Encoded old;
  old.config = config;
  old.streams = {toBytes(std::vector<std::uint16_t>{0, 2, 1, 0, 0, 2, 0, 0}),
                 Bytes{0x00, 0xb3, 0x08, 0x47}, Bytes{7, 0, 0, 0}, Bytes{1, 0, 0, 0}};
  std::vector<float> expected;
  for (const int bin : {0, 2, 3, 3, 3, 5, 5, 35000}) {
    expected.push_back(static_cast<float>(bin) * 0.2f);
  }
  EXPECT_EQ(decode(1, old), toBytes(expected));
  old.streams.pop_back();  // three parts, as later versions write
  EXPECT_EQ(decode(1, old), toBytes(expected));
}

Bytes readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>{}};
}

// In this archive the codes went through Bitpack with 8 bits, which is a byte for each code: its
// parts can be had without any other stage. Offsets are those of the container's records.
TEST(LorenzoQuant, DecodesAnArchiveOfTheOriginalSystemToTheSameBits) {
  const std::string base = std::string(FZ_SHARED_DATA) + "/interop/v64x64.lq-bitpack";
  const Bytes file = readFile(base + ".fzm");
  if (file.empty()) {
    GTEST_SKIP() << "no " << base << ".fzm";
  }
  constexpr std::size_t kCore = 80;
  constexpr std::size_t kRecord = 256;
  const auto header_bytes = loadLe<std::uint64_t>(file.data() + 24);
  const auto n_stages = loadLe<std::uint32_t>(file.data() + 32);
  Encoded e;
  e.config.assign(file.begin() + kCore + 40, file.begin() + kCore + 40 + 44);
  for (const char* name : {"output", "outlier_errors", "outlier_indices", "outlier_count"}) {
    for (std::size_t at = kCore + kRecord * n_stages; at < header_bytes; at += kRecord) {
      const std::uint8_t* record = file.data() + at;
      if (std::string(reinterpret_cast<const char*>(record + 8)) == name) {
        const auto n_bytes = loadLe<std::uint64_t>(record + 72);
        const std::uint8_t* part = file.data() + header_bytes + loadLe<std::uint64_t>(record + 96);
        e.streams.emplace_back(part, part + n_bytes);
      }
    }
  }
  ASSERT_EQ(e.streams.size(), 4u);
  e.streams[0] = toBytes(std::vector<std::uint16_t>(e.streams[0].begin(), e.streams[0].end()));
  EXPECT_TRUE(decode(1, e) == readFile(base + ".dec.f32"));
}

TEST(LorenzoQuant, ShortConfigsOfOldObjectsAreRead) {
  F32 stage;
  Encoded e = encode(stage, toBytes(std::vector<float>{1, 2, 3}));
  const Bytes whole = decode(1, e);
  e.config.resize(32);
  EXPECT_EQ(decode(1, e), whole);
  e.config.resize(31);
  EXPECT_THROW(decode(1, e), Error);
}

TEST(LorenzoQuant, OutliersInAnyOrderDecodeAlike) {
  F32 stage(F32::Config(0.5, 4));
  std::vector<float> values = {0, 100, 3, 50, 51, 999, 7};
  Encoded e = encode(stage, toBytes(values));
  const Bytes expected = decode(1, e);
  auto deltas = fromBytes<float>(e.streams[1]);
  auto indices = fromBytes<std::uint32_t>(e.streams[2]);
  std::reverse(deltas.begin(), deltas.end());
  std::reverse(indices.begin(), indices.end());
  e.streams[1] = toBytes(deltas);
  e.streams[2] = toBytes(indices);
  EXPECT_EQ(decode(1, e), expected);
  indices[0] = indices[1];
  e.streams[2] = toBytes(indices);
  EXPECT_THROW(decode(1, e), Error);  // two outliers in one place
  indices[0] = 7;
  e.streams[2] = toBytes(indices);
  EXPECT_THROW(decode(1, e), Error);  // beyond the values
}

TEST(LorenzoQuant, VersionOneIgnoresEntriesBeyondTheCountAndVersionThreeIsRefused) {
  F32 stage(F32::Config(0.5, 4));
  Encoded e = encode(stage, toBytes(std::vector<float>{0, 100, 3}));
  const Bytes expected = decode(1, e);
  e.streams[1].resize(40, 0x11);
  e.streams[2].resize(40, 0x77);
  EXPECT_EQ(decode(1, e), expected);
  e.version = 3;
  EXPECT_THROW(decode(1, e), Error);
}

TEST(LorenzoQuant, DeltasBeyondTheIntegersOfOldStreamsDecode) {
  F32 stage(F32::Config(0.5, 4));
  Encoded e = encode(stage, toBytes(std::vector<float>{0, 100, 3}));
  e.streams[1] = toBytes(std::vector<float>{1e12f, -1e12f});
  EXPECT_EQ(fromBytes<float>(decode(1, e)), (std::vector<float>{0, 1e12f, 0}));
}

TEST(LorenzoQuant, DeltasThatAreNoNumberDecodeToOneBitPattern) {
  F32 stage(F32::Config(0.5, 4));
  Encoded e = encode(stage, toBytes(std::vector<float>{0, 100, 3}));
  e.streams[1] = toBytes(std::vector<float>{-INFINITY, INFINITY});
  EXPECT_EQ(fromBytes<std::uint32_t>(decode(1, e)),
            (std::vector<std::uint32_t>{0, 0xff800000u, 0x7fc00000u}));
}

TEST(LorenzoQuant, ValuesBeyondTheDimsOfOldStreamsAreZero) {
  F32 stage(F32::Config(0.5));
  stage.setDims(2, 2);
  Encoded e = encode(stage, toBytes(std::vector<float>{1, 2, 3, 4}));
  e.config[8] = 6;
  e.streams[0].resize(12, 0x55);
  EXPECT_EQ(fromBytes<float>(decode(1, e)), (std::vector<float>{1, 2, 3, 4, 0, 0}));
  e.config[20] = 4;
  EXPECT_THROW(decode(1, e), Error);  // dims that hold more than the stream
}

TEST(LorenzoQuant, DecodesRightAfterEncodingWithoutAConfig) {
  F32 stage(F32::Config(0.5, 4));
  std::vector<float> values = {0, 100, NAN, 50, 51, 999, 7};
  const Bytes bytes = toBytes(values);
  Encoded e = encode(stage, bytes);
  stage.setInverse(true);
  std::vector<float> out(values.size());
  std::vector<void*> inputs;
  std::vector<std::size_t> sizes;
  for (Bytes& s : e.streams) {
    inputs.push_back(s.data());
    sizes.push_back(s.size());
  }
  EXPECT_EQ(stage.estimateOutputSizes(sizes), std::vector<std::size_t>{bytes.size()});
  stage.execute(nullptr, nullptr, inputs, {out.data()}, sizes);
  expectWithin(values, out, 0.5);
}

}  // namespace
}  // namespace fz::test
