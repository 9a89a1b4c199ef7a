// BlockANS where Huffman was.
#include <gtest/gtest.h>

#include "fz/host_api.h"
#include "pipeline/compressor.h"
#include "support/fields.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

constexpr const char* kPredict =
    "[[stage]]\nname = \"p\"\ntype = \"LorenzoQuant\"\ninput_type = \"float32\"\n"
    "code_type = \"uint16\"\nerror_bound = 1e-4\nerror_bound_mode = \"NOA\"\n"
    "quant_radius = 512\n";
constexpr const char* kQuantize =
    "[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\ninput_type = \"float32\"\n"
    "code_type = \"uint32\"\nerror_bound = 1e-4\nerror_bound_mode = \"NOA\"\n"
    "linear_mode = true\nlinear_policy = \"Guarantee\"\n"
    "[[stage]]\nname = \"p\"\ntype = \"Lorenzo\"\ndata_type = \"int32\"\n"
    "inputs = [{ from = \"q\", port = \"codes\" }]\n";

std::string coder(const std::string& settings, bool has_codes) {
  return "[[stage]]\nname = \"c\"\n" + settings + "\ninputs = [{ from = \"p\"" +
         (has_codes ? ", port = \"codes\"" : "") + " }]\n";
}

Frame frameOf(const Field& field, const std::string& toml, std::size_t threads = 1) {
  CompressOptions options;
  options.config_toml = toml;
  options.dims = field.dims;
  options.backend = Backend::CPU;
  options.threads = threads;
  return compress(field.type, field.bytes, options);
}

void expectWithinBound(const Field& field, const Frame& frame) {
  const FrameInfo info = inspect(frame);
  ASSERT_TRUE(info.bound.has_value());
  const Array array = decompress(frame);
  EXPECT_EQ(countViolations(field, array.bytes().data(), info.bound->absolute), 0u);
}

TEST(BlockAnsPipelines, PredictedCodesAreSmallerThanWithHuffman) {
  const Field field = smoothField(DataType::FLOAT32, {120, 90, 40});
  const Frame ans =
      frameOf(field, kPredict + coder("type = \"BlockANS\"\ninput_type = \"uint16\"", true));
  const Frame zigzag = frameOf(
      field, std::string(kPredict) + "zigzag_codes = true\n" +
                 coder("type = \"BlockANS\"\ninput_type = \"uint16\"\nmap = \"none\"", true));
  const Frame huffman =
      frameOf(field, std::string(kPredict) + "zigzag_codes = true\n" +
                         coder("type = \"Huffman\"\ninput_type = \"uint16\"\nbklen = 1024", true));
  expectWithinBound(field, ans);
  expectWithinBound(field, zigzag);
  EXPECT_EQ(ans.bytes().size(), zigzag.bytes().size());
  EXPECT_LT(ans.bytes().size(), huffman.bytes().size());
}

TEST(BlockAnsPipelines, DifferencesOfBinsOfAnySizeStayWithinTheBound) {
  const Field field = smoothField(DataType::FLOAT32, {120, 90, 40});
  const std::string toml = kQuantize + coder("type = \"BlockANS\"\ninput_type = \"int32\"", false);
  const Frame frame = frameOf(field, toml);
  expectWithinBound(field, frame);
  EXPECT_LT(frame.bytes().size(), field.bytes.size() / 3);
}

TEST(BlockAnsPipelines, FramesAreTheSameForAnyNumberOfThreads) {
  const Field field = smoothField(DataType::FLOAT32, {200, 150, 30});
  for (const char* tables : {"counted", "fixed"}) {
    const std::string toml =
        kQuantize + coder(std::string("type = \"BlockANS\"\ninput_type = \"int32\"\ntables = \"") +
                              tables + "\"",
                          false);
    const Frame one = frameOf(field, toml, 1);
    for (const std::size_t threads : {2, 3, 7}) {
      const Frame other = frameOf(field, toml, threads);
      EXPECT_TRUE(Bytes(one.bytes().begin(), one.bytes().end()) ==
                  Bytes(other.bytes().begin(), other.bytes().end()))
          << threads;
    }
  }
}

}  // namespace
}  // namespace fz::test
