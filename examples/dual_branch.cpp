// A graph that is no chain: the codes of LorenzoQuant go through difference, shuffle and zero
// elimination, its outlier indices through differences of their own.
#include <iostream>

#include "example_support.h"

int main(int argc, char** argv) try {
  const std::vector<float> values = example::loadOrMakeField(argc > 1 ? argv[1] : nullptr);
  fz::Pipeline p;
  auto* quantizer = p.addStage<fz::LorenzoQuantStage<float, std::uint16_t>>();
  quantizer->setErrorBound(1e-4);
  auto* shuffle = p.addStage<fz::BitshuffleStage>();
  shuffle->setElementWidth(2);
  auto* rze = p.addStage<fz::RZEStage>();
  auto* indices = p.addStage<fz::DifferenceStage<std::uint32_t>>();
  p.connect(shuffle, quantizer, "codes");
  p.connect(rze, shuffle);
  p.connect(indices, quantizer, "outlier_indices");
  p.enableProfiling(true);
  p.finalize();
  const example::BackendArray input(p, values);
  const fz::CompressedView frame = p.compress(input.data(), input.bytes());
  std::cout << p.explain() << "\n";
  p.getLastPerfResult().print(std::cout);
  std::printf("ratio %.2f\n",
              static_cast<double>(input.bytes()) / static_cast<double>(frame.n_bytes));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "dual_branch: %s\n", e.what());
  return 1;
}
