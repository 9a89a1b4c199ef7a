// Who owns a decoded array: the pipeline (default), the caller, or the caller's own buffer.
#include "example_support.h"

int main() try {
  const std::vector<float> values = example::loadOrMakeField(nullptr);
  const std::size_t n_bytes = values.size() * sizeof(float);
  fz::Pipeline p;
  auto* quantizer = p.addStage<fz::LorenzoQuantStage<float, std::uint16_t>>();
  quantizer->setErrorBound(1e-3);
  p.finalize();
  const example::BackendArray input(p, values);
  const fz::CompressedView frame = p.compress(input.data(), n_bytes);

  // 1. The pipeline's memory: valid until its next decompress(), never freed by the caller.
  void* owned_by_pipeline = nullptr;
  std::size_t n_out = 0;
  p.decompress(frame.data, frame.n_bytes, &owned_by_pipeline, &n_out);
  std::printf("pipeline-owned: %zu bytes\n", n_out);

  // 2. The caller's: freed with cudaFree on a device, with std::free on the CPU.
  p.setPoolManagedDecompOutput(false);
  void* owned_by_caller = nullptr;
  p.decompress(frame.data, frame.n_bytes, &owned_by_caller, &n_out);
  std::printf("caller-owned:   %zu bytes\n", n_out);
#if FZ_HAVE_CUDA
  if (p.getBackend() == fz::Backend::CUDA) {
    FZ_CUDA_CHECK(cudaFree(owned_by_caller));
    owned_by_caller = nullptr;
  }
#endif
  std::free(owned_by_caller);

  // 3. A buffer that is there already: nothing is allocated.
  const example::BackendArray target(p, std::vector<float>(values.size()));
  p.decompress(frame.data, frame.n_bytes, const_cast<void*>(target.data()), target.bytes(), &n_out);
  std::printf("own buffer:     %zu bytes\n", n_out);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "ownership_example: %s\n", e.what());
  return 1;
}
