// Any legal chain of stages, compiled at run time where the library has no kernel for it: the same
// frames and values as stage by stage.
#include <gtest/gtest.h>

#include "backends/cuda/rtc/compiler.h"
#include "gpu/device_pipeline.h"
#include "pipeline/dag.h"

namespace fz::test {
namespace {

struct Composition {
  std::string name;
  std::string toml;
  std::size_t n_fused = 0;  ///< stages in groups, both ways
};

/// Builds the text of a chain and names it after its parts.
class ChainText {
 public:
  ChainText& add(const std::string& name, const std::string& type, const std::string& settings) {
    name_ += (name_.empty() ? "" : "_") + name;
    const std::string id = "s" + std::to_string(n_stages_);
    text_ += "[[stage]]\nname = \"" + id + "\"\ntype = \"" + type + "\"\n" + settings;
    if (n_stages_ > 0) {
      text_ += "inputs = [{ from = \"s" + std::to_string(n_stages_ - 1) + "\"" +
               (n_stages_ == 1 ? ", port = \"codes\"" : "") + " }]\n";
    }
    ++n_stages_;
    return *this;
  }
  std::string name() const { return name_; }
  std::string text() const { return text_; }
  std::size_t size() const { return n_stages_; }

 private:
  std::string name_;
  std::string text_;
  std::size_t n_stages_ = 0;
};

std::string quantizerSettings(int bits, const std::string& rest) {
  return "input_type = \"float32\"\ncode_type = \"uint" + std::to_string(bits) +
         "\"\nerror_bound = 0.01\n" + rest;
}
std::string typed(const char* key, int bits) {
  return std::string(key) + " = \"int" + std::to_string(bits) + "\"\n";
}

/// What may stand at a place of a chain; bits is the size of the codes.
using Part = void (*)(ChainText&, int bits);

void none(ChainText& /*chain*/, int /*bits*/) {
}
void linear(ChainText& chain, int bits) {
  chain.add("linear", "Quantizer",
            quantizerSettings(bits,
                              "error_bound_mode = \"ABS\"\nlinear_mode = true\n"
                              "linear_policy = \"Wrap\"\n"));
}
void lists(ChainText& chain, int bits) {
  chain.add("lists", "Quantizer",
            quantizerSettings(bits,
                              "error_bound_mode = \"NOA\"\nquant_radius = 200\n"
                              "outlier_capacity = 1.0\n"));
}
void rel(ChainText& chain, int bits) {
  chain.add("rel", "Quantizer",
            quantizerSettings(bits,
                              "error_bound_mode = \"REL\"\nquant_radius = 20000\n"
                              "outlier_capacity = 1.0\n"));
}
template <int kBlock>
void lorenzo(ChainText& chain, int bits) {
  chain.add("lorenzo" + std::to_string(kBlock), "Lorenzo",
            typed("data_type", bits) + "block_size = " + std::to_string(kBlock) + "\n");
}
void tiles(ChainText& chain, int bits) {
  chain.add("tiles", "TiledLorenzo", typed("data_type", bits));
}
void difference(ChainText& chain, int bits) {
  chain.add("difference", "Difference",
            typed("input_type", bits) + "output_type = \"uint" + std::to_string(bits) +
                "\"\nchunk_size = 4096\n");
}
void zigzag(ChainText& chain, int bits) {
  chain.add("zigzag", "Zigzag",
            typed("input_type", bits) + "output_type = \"uint" + std::to_string(bits) + "\"\n");
}
void negabinary(ChainText& chain, int bits) {
  chain.add("negabinary", "Negabinary",
            typed("input_type", bits) + "output_type = \"uint" + std::to_string(bits) + "\"\n");
}
template <int kBlock>
void bitpack(ChainText& chain, int bits) {
  chain.add("bitpack" + std::to_string(kBlock), "AdaptiveBitpack",
            typed("input_type", bits) + "block_size = " + std::to_string(kBlock) + "\n");
}
template <int kChunk>
void planes(ChainText& chain, int bits) {
  chain.add("planes", "Bitshuffle",
            "element_width = " + std::to_string(bits / 8) + "\nblock_size = 4096\n");
  chain.add("rze" + std::to_string(kChunk), "RZE", "chunk_size = " + std::to_string(kChunk) + "\n");
}
void rze(ChainText& chain, int /*bits*/) {
  chain.add("rze", "RZE", "chunk_size = 8192\nlevels = 2\n");
}
void bitplaneRze(ChainText& chain, int /*bits*/) {
  chain.add("bitplane", "BitplaneRZE", "");
}

Composition compose(int bits, std::initializer_list<Part> parts, std::size_t n_fused = 0) {
  ChainText chain;
  for (const Part part : parts) {
    part(chain, bits);
  }
  return {chain.name() + "_" + std::to_string(bits), chain.text(),
          n_fused != 0 ? n_fused : chain.size()};
}

std::vector<Composition> compositions() {
  std::vector<Composition> all;
  for (const Part quantizer : {&linear, &lists, &rel}) {
    for (const int bits : {16, 32}) {
      for (const Part middle : {&none, &zigzag, &difference, &negabinary}) {
        all.push_back(compose(bits, {quantizer, middle, &planes<4096>}));
        all.push_back(compose(bits, {quantizer, middle, &rze}));
      }
      all.push_back(compose(bits, {quantizer, &difference, &zigzag, &planes<16384>}));
      all.push_back(compose(bits, {quantizer, &lorenzo<64>, &zigzag, &planes<16384>}));
      all.push_back(compose(bits, {quantizer, &lorenzo<8>, &negabinary, &planes<8192>}));
      all.push_back(compose(bits, {quantizer, &lorenzo<512>, &planes<4096>}));
      all.push_back(compose(bits, {quantizer, &lorenzo<32>, &bitpack<256>}));
      all.push_back(compose(bits, {quantizer, &difference, &bitpack<32>}, 2));
      all.push_back(compose(bits, {quantizer, &tiles, &bitpack<128>}));
      all.push_back(compose(bits, {quantizer, &lorenzo<16>, &zigzag}));
    }
    all.push_back(compose(16, {quantizer, &lorenzo<1024>, &bitplaneRze}));
    all.push_back(compose(16, {quantizer, &lorenzo<16>, &zigzag, &bitplaneRze}));
    all.push_back(compose(16, {quantizer, &difference, &bitplaneRze}));
    all.push_back(compose(16, {quantizer, &tiles, &planes<8192>}));
  }
  return all;
}

class DeviceCompositions : public OnDevice<testing::TestWithParam<Composition>> {
 protected:
  static void build(Pipeline& pipeline, const Field& field, Fusion fusion) {
    pipeline.setBackend(Backend::CUDA);
    pipeline.setFusion(fusion);
    ConfigOverrides overrides;
    overrides.input_type = field.type;
    overrides.dims = field.dims;
    pipeline.loadConfigText(GetParam().toml, GetParam().name, overrides, false);
    pipeline.finalize();
  }
};

TEST_P(DeviceCompositions, EqualTheStages) {
  std::vector<Field> fields;
  fields.push_back(smoothField(DataType::FLOAT32, {70001, 1, 1}));
  if (!isSmallRun()) {
    fields.push_back(smoothField(DataType::FLOAT32, {16384, 1, 1}));
    fields.push_back(smoothField(DataType::FLOAT32, {33, 1, 1}));
    fields.push_back(smoothField(DataType::FLOAT32, {301, 70, 1}));
  }
  for (const Field& field : fields) {
    SCOPED_TRACE(std::to_string(field.dims[0]) + " x " + std::to_string(field.dims[1]));
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    Pipeline staged(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    build(staged, field, Fusion::Off);
    Pipeline fused(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    build(fused, field, Fusion::Auto);
    const FrameBytes expected = frameOnDevice(staged, input, field.bytes.size());
    const FrameBytes frame = frameOnDevice(fused, input, field.bytes.size());
    ASSERT_TRUE(frame == expected) << fused.explain();
    if (!cuda::rtc::compilerVersion().empty()) {
      std::size_t n_fused = 0;
      for (const FusedGroup& group : fused.getFusedGroups()) {
        n_fused += group.stages.size();
      }
      EXPECT_EQ(n_fused, GetParam().n_fused) << fused.explain();
    }
    const DeviceBytesBuffer stored{ByteView(expected)};
    std::vector<std::uint8_t> values[2];
    Pipeline* pipelines[2] = {&staged, &fused};
    for (int side = 0; side < 2; ++side) {
      const DeviceBytesBuffer out(field.bytes.size());
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE - side, out.size()));
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      std::size_t n_bytes = 0;
      pipelines[side]->decompress(stored.data(), stored.size(), out.data(), out.size(), &n_bytes);
      ASSERT_EQ(n_bytes, out.size());
      values[side] = out.get(n_bytes);
    }
    ASSERT_TRUE(values[0] == values[1]) << fused.explain();
  }
}

INSTANTIATE_TEST_SUITE_P(Chains,
                         DeviceCompositions,
                         testing::ValuesIn(compositions()),
                         [](const auto& chain) { return chain.param.name; });

}  // namespace
}  // namespace fz::test
