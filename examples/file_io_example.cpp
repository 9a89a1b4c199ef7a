// Compress to a file, look into it, and decode it with nothing but the file.
//
//   file_io_example [file.f32 [output.fzm]]
#include "example_support.h"

int main(int argc, char** argv) try {
  const std::vector<float> values = example::loadOrMakeField(argc > 1 ? argv[1] : nullptr);
  const std::string path = argc > 2 ? argv[2] : "example.fzm";
  const double bound = 1e-3;
  {
    fz::Pipeline p;
    auto* quantizer = p.addStage<fz::LorenzoQuantStage<float, std::uint16_t>>(
        fz::LorenzoQuantStage<float, std::uint16_t>::Config(bound, 512));
    quantizer->setZigzagCodes(true);
    auto* huffman = p.addStage<fz::HuffmanStage<std::uint16_t>>();
    p.connect(huffman, quantizer, "codes");  // the outlier ports are stored as they are
    p.finalize();
    const example::BackendArray input(p, values);
    p.compress(input.data(), input.bytes());
    p.writeToFile(path);
  }
  const fz::FrameInfo info = fz::inspectFile(path);
  std::printf("%s: %zu values, ratio %.2f, stages:", path.c_str(), info.dims[0], info.ratio());
  for (const fz::FrameStageInfo& stage : info.stages) {
    std::printf(" %s", stage.name.c_str());
  }
  std::printf("\n");
  const fz::Frame frame = fz::Frame::readFromFile(path);
  const fz::Array decoded = fz::decompress(frame);
  const auto back = decoded.as<float>();
  std::printf("values beyond the bound: %zu\n",
              example::countMisses(values, {back.begin(), back.end()}, bound));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "file_io_example: %s\n", e.what());
  return 1;
}
