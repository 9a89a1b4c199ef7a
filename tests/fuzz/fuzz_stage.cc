// Every stage's decoder on any config and any streams: first byte chooses the stage, then come the
// config and the streams, each with its length in front. No checksum stands in the way here.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fz/error.h"
#include "fz/stage_descriptor.h"
#include "stage/stage_factory.h"

namespace {

constexpr std::size_t kMaxOutputBytes = 16u << 20;

std::vector<std::uint8_t> take(const std::uint8_t*& data, std::size_t& n_left, std::size_t n) {
  const std::size_t n_taken = n < n_left ? n : n_left;
  std::vector<std::uint8_t> bytes(data, data + n_taken);
  data += n_taken;
  n_left -= n_taken;
  return bytes;
}

std::size_t takeLength(const std::uint8_t*& data, std::size_t& n_left) {
  const std::vector<std::uint8_t> bytes = take(data, n_left, 2);
  return bytes.size() < 2 ? 0 : bytes[0] + 256u * bytes[1];
}

void decode(const std::uint8_t* data, std::size_t n_left) {
  const auto stages = fz::allStages();
  const std::size_t which = take(data, n_left, 1)[0] % stages.size();
  const std::vector<std::uint8_t> config = take(data, n_left, takeLength(data, n_left) % 129);
  const auto stage = fz::makeStage(stages[which]->id, config.data(), config.size(), 2);
  stage->setInverse(true);
  std::vector<std::vector<std::uint8_t>> streams;
  std::vector<std::size_t> sizes;
  std::vector<void*> inputs;
  for (std::size_t i = 0; i < stage->getNumInputs(); ++i) {
    streams.push_back(take(data, n_left, takeLength(data, n_left)));
  }
  for (auto& stream : streams) {
    sizes.push_back(stream.size());
    inputs.push_back(stream.empty() ? nullptr : stream.data());
  }
  std::vector<std::size_t> capacities = stage->estimateOutputSizes(sizes);
  for (int attempt = 0; attempt < 4 && capacities[0] <= kMaxOutputBytes; ++attempt) {
    std::vector<std::uint8_t> out(capacities[0]);
    stage->setOutputCapacities(capacities);
    stage->execute(nullptr, nullptr, inputs, {out.empty() ? nullptr : out.data()}, sizes);
    if (stage->neededOutputSizes().empty()) {
      return;
    }
    capacities = stage->neededOutputSizes();
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  if (n_bytes == 0) {
    return 0;
  }
  try {
    decode(data, n_bytes);
  } catch (const fz::Error&) {
  }
  return 0;
}
