// The cuSZp family as pipelines: every mode, with buffers planned ahead (PREALLOCATE) and, on a
// GPU, replayed as a CUDA graph. Prints ratio, speed and the number of values beyond the bound.
//
//   cuszp_variants [file.f32 [absolute_bound]]
#include <chrono>
#include <functional>

#include "example_support.h"

namespace {

struct Variant {
  const char* name;
  std::function<void(fz::Pipeline&, double)> build;
};

fz::Stage* addQuantizer(fz::Pipeline& p, double bound) {
  auto* quantizer = p.addStage<fz::QuantizerStage<float, std::uint32_t>>();
  quantizer->setErrorBound(bound);
  quantizer->setErrorBoundMode(fz::ErrorBoundMode::ABS);
  quantizer->setLinearMode(true);  // signed codes, no outliers
  quantizer->setLinearPolicy(fz::LinearPolicy::Guarantee);
  return quantizer;
}

void addCoder(fz::Pipeline& p, fz::Stage* before, int block_size, bool outliers) {
  auto* coder = p.addStage<fz::AdaptiveBitpackStage<std::int32_t>>();
  coder->setBlockSize(block_size);
  coder->setOutlierSelection(outliers);
  p.connect(coder, before);
}

/// 1-D deltas inside blocks of 32 values, then a bit width per block.
void buildBlocks(fz::Pipeline& p, double bound, bool outliers) {
  fz::Stage* quantizer = addQuantizer(p, bound);
  auto* delta = p.addStage<fz::LorenzoStage<std::int32_t>>();
  delta->setBlockSize(32);
  p.connect(delta, quantizer, "codes");
  addCoder(p, delta, 32, outliers);
}

/// Deltas inside small tiles.
void buildTiles(fz::Pipeline& p, double bound, bool outliers) {
  fz::Stage* quantizer = addQuantizer(p, bound);
  auto* delta = p.addStage<fz::TiledLorenzoStage<std::int32_t>>();
  p.connect(delta, quantizer, "codes");
  addCoder(p, delta, 64, outliers);
}

/// No prediction at all: the lightest.
void buildFixed(fz::Pipeline& p, double bound) {
  addCoder(p, addQuantizer(p, bound), 32, false);
}

/// Seconds per call: the best of a few.
template <class F>
double bestSeconds(F f) {
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

void run(const Variant& variant, const std::vector<float>& values, double bound, bool graph) {
  const std::size_t n_bytes = values.size() * sizeof(float);
  fz::Pipeline p(n_bytes, fz::MemoryStrategy::PREALLOCATE);
  variant.build(p, bound);
  p.enableGraphMode(graph);
  p.finalize();
  const example::Stream stream(p);
  if (graph) {
    p.warmup(stream.get());
    p.captureGraph(stream.get());
  }
  const example::BackendArray input(p, values);
  fz::CompressedView frame;
  const double compress_s =
      bestSeconds([&] { frame = p.compress(input.data(), n_bytes, stream.get()); });
  void* out = nullptr;
  std::size_t n_out = 0;
  const double decompress_s =
      bestSeconds([&] { p.decompress(frame.data, frame.n_bytes, &out, &n_out, stream.get()); });
  const double gigabytes = static_cast<double>(n_bytes) * 1e-9;
  std::printf("%-22s %-12s ratio %6.2f  compress %8.2f GB/s  decompress %8.2f GB/s  misses %zu\n",
              variant.name, graph ? "GRAPH" : "PREALLOCATE",
              static_cast<double>(n_bytes) / static_cast<double>(frame.n_bytes),
              gigabytes / compress_s, gigabytes / decompress_s,
              example::countMisses(values, example::toHost(out, n_out), bound));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<float> values = example::loadOrMakeField(argc > 1 ? argv[1] : nullptr);
  const double bound = argc > 2 ? std::strtod(argv[2], nullptr) : 1e-3;
  const Variant variants[] = {
      {"cuSZp2 plain", [](auto& p, double eb) { buildBlocks(p, eb, false); }},
      {"cuSZp2 outlier", [](auto& p, double eb) { buildBlocks(p, eb, true); }},
      {"cuSZp3 plain", [](auto& p, double eb) { buildTiles(p, eb, false); }},
      {"cuSZp3 outlier", [](auto& p, double eb) { buildTiles(p, eb, true); }},
      {"cuSZp3 fixed", [](auto& p, double eb) { buildFixed(p, eb); }},
  };
  for (const Variant& variant : variants) {
    run(variant, values, bound, false);
    run(variant, values, bound, true);
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cuszp_variants: %s\n", e.what());
  return 1;
}
