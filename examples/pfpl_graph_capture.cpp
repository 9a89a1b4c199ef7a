// One pipeline (PFPL: quantise, difference, bit shuffle, zero elimination) in three ways: buffers
// as needed (MINIMAL), planned ahead (PREALLOCATE), and replayed as a CUDA graph. All give the same
// bytes; on the CPU the third is the second.
//
//   pfpl_graph_capture [file.f32 [absolute_bound]]
#include <chrono>

#include "example_support.h"

namespace {

void build(fz::Pipeline& p, double bound) {
  auto* quantizer = p.addStage<fz::QuantizerStage<float, std::uint32_t>>();
  quantizer->setErrorBound(bound);
  quantizer->setQuantRadius(1 << 20);
  auto* difference = p.addStage<fz::DifferenceStage<std::int32_t, std::uint32_t>>();
  difference->setChunkSize(16384);
  auto* shuffle = p.addStage<fz::BitshuffleStage>();
  shuffle->setBlockSize(16384);
  shuffle->setElementWidth(4);
  auto* rze = p.addStage<fz::RZEStage>();
  p.connect(difference, quantizer, "codes");
  p.connect(shuffle, difference);
  p.connect(rze, shuffle);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<float> values = example::loadOrMakeField(argc > 1 ? argv[1] : nullptr);
  const double bound = argc > 2 ? std::strtod(argv[2], nullptr) : 1e-3;
  const std::size_t n_bytes = values.size() * sizeof(float);
  for (const char* way : {"MINIMAL", "PREALLOCATE", "GRAPH"}) {
    const bool graph = std::string(way) == "GRAPH";
    fz::Pipeline p(n_bytes, std::string(way) == "MINIMAL" ? fz::MemoryStrategy::MINIMAL
                                                          : fz::MemoryStrategy::PREALLOCATE);
    build(p, bound);
    p.enableGraphMode(graph);
    p.finalize();
    const example::Stream stream(p);
    if (graph) {
      p.warmup(stream.get());        // takes all memory
      p.captureGraph(stream.get());  // records the launches
    }
    const example::BackendArray input(p, values);
    fz::CompressedView frame = p.compress(input.data(), n_bytes, stream.get());
    const int repeats = 20;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
      frame = p.compress(input.data(), n_bytes, stream.get());
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::printf("%-12s %10zu bytes, %8.3f ms per call, peak memory %zu MiB\n", way, frame.n_bytes,
                1e3 * taken.count() / repeats, p.getPeakMemoryUsage() >> 20);
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "pfpl_graph_capture: %s\n", e.what());
  return 1;
}
