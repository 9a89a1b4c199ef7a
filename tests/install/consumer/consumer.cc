// Uses the installed library through its headers alone; succeeds when a stage round-trips.
#include <cstdint>
#include <vector>

#include "fz/all_stages.h"
#include "fz/stage_descriptor.h"
#include "transforms/zigzag/zigzag_stage.h"

int main() {
  if (fz::allStages().empty() || fz::findStage("Zigzag") == nullptr) {
    return 1;
  }
  const std::vector<std::int32_t> values = {0, -1, 1, -2, 2147483647, -2147483647 - 1};
  const std::vector<std::size_t> n_bytes = {values.size() * sizeof(std::int32_t)};
  std::vector<std::int32_t> input = values;
  std::vector<std::uint32_t> codes(values.size());
  std::vector<std::int32_t> decoded(values.size());
  fz::ZigzagStage<std::int32_t> stage;
  stage.execute(nullptr, nullptr, {input.data()}, {codes.data()}, n_bytes);
  stage.setInverse(true);
  stage.execute(nullptr, nullptr, {codes.data()}, {decoded.data()}, n_bytes);
  return codes[1] == 1 && decoded == values ? 0 : 1;
}
