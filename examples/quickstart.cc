// A pipeline built by hand, its frame decoded, and the bound checked.
#include <cmath>
#include <cstdio>
#include <vector>

#include "fzgpumodules.h"

int main() {
  std::vector<float> field(1'000'000);
  for (std::size_t i = 0; i < field.size(); ++i) {
    field[i] = std::sin(0.001f * static_cast<float>(i));
  }
  fz::Pipeline p;
  p.setBackend(fz::Backend::CPU);  // the default, Auto, takes a GPU and device pointers
  auto* quant = p.addStage<fz::QuantizerStage<float, std::uint32_t>>();
  quant->setErrorBound(1e-3);
  quant->setLinearMode(true);
  quant->setLinearPolicy(fz::LinearPolicy::Guarantee);
  auto* delta = p.addStage<fz::LorenzoStage<std::int32_t>>();
  delta->setBlockSize(32);
  auto* coder = p.addStage<fz::AdaptiveBitpackStage<std::int32_t>>();
  p.connect(delta, quant, "codes");
  p.connect(coder, delta);
  p.finalize();

  const fz::CompressedView frame = p.compress(field.data(), field.size() * sizeof(float));
  const fz::Array back =
      fz::decompress({static_cast<const std::uint8_t*>(frame.data), frame.n_bytes});
  const auto stats = fz::calculateStatistics(field.data(), back.as<float>().data(), field.size());
  std::printf(
      "%zu bytes -> %zu bytes, ratio %.1f, largest error %.3g\n", field.size() * 4, frame.n_bytes,
      static_cast<double>(field.size() * 4) / static_cast<double>(frame.n_bytes), stats.max_error);
  return fz::countBoundViolations(field.data(), back.as<float>().data(), field.size(), 1e-3) == 0
             ? 0
             : 1;
}
