// The same two stages driven by hand and by a pipeline: what a pipeline does for you.
#include "example_support.h"

int main() try {
  std::vector<float> values = example::loadOrMakeField(nullptr);
  values.resize(1 << 20);
  const std::size_t n_bytes = values.size() * sizeof(float);

  // By hand, on the CPU: outputs sized by the stage, sizes passed on, the inverse in reverse order.
  fz::LorenzoQuantStage<float, std::uint16_t> quantizer;
  quantizer.setErrorBound(1e-3);
  const std::vector<std::size_t> sizes = quantizer.estimateOutputSizes({n_bytes});
  std::vector<std::vector<std::uint8_t>> ports;
  ports.reserve(sizes.size());
  std::vector<void*> outputs;
  outputs.reserve(sizes.size());
  for (const std::size_t n : sizes) {
    ports.emplace_back(n);
  }
  for (auto& port : ports) {
    outputs.push_back(port.data());
  }
  quantizer.execute(nullptr, nullptr, {values.data()}, outputs, {n_bytes});
  std::size_t by_hand = 0;
  for (const auto& [name, n] : quantizer.getActualOutputSizesByName()) {
    std::printf("port %-16s %zu bytes\n", name.c_str(), n);
    by_hand += n;
  }

  // By a pipeline: one call, and a frame that any process can decode.
  fz::Pipeline p;
  p.addStage<fz::LorenzoQuantStage<float, std::uint16_t>>()->setErrorBound(1e-3);
  p.finalize();
  const example::BackendArray input(p, values);
  const fz::CompressedView frame = p.compress(input.data(), n_bytes);
  std::printf("by hand %zu bytes without a header, by the pipeline %zu with one\n", by_hand,
              frame.n_bytes);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "manual_pipeline: %s\n", e.what());
  return 1;
}
