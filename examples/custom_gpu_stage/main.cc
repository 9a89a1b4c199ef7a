// A stage outside the library, on the CPU or the GPU: registered, named in a configuration, fused
// with its neighbour, and decoded again.
//
//   custom_gpu_stage [cpu|cuda]
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "fz/host_api.h"
#include "fz/stage_descriptor.h"
#include "offset_stage.h"
#include "pipeline/compressor.h"

namespace {

const char* const kWithoutOffset = R"(
[[stage]]
name = "coder"
type = "AdaptiveBitpack"
input_type = "int32"
)";

const char* const kWithOffset = R"(
[[stage]]
name = "offset"
type = "Offset"
offset = 100000

[[stage]]
name = "coder"
type = "AdaptiveBitpack"
input_type = "int32"
inputs = [{ from = "offset" }]
)";

std::vector<std::int32_t> makeField() {
  std::vector<std::int32_t> values(1'000'003);
  std::uint32_t state = 1;
  for (std::int32_t& value : values) {
    state = state * 1664525u + 1013904223u;
    value = 100'000 + static_cast<std::int32_t>(state >> 27) - 16;
  }
  return values;
}

int run(fz::Backend backend) {
  const std::vector<std::int32_t> field = makeField();
  const fz::ByteView bytes(reinterpret_cast<const std::uint8_t*>(field.data()),
                           field.size() * sizeof(field[0]));
  const fz::CompressOptions with = {.config_toml = kWithOffset, .backend = backend};
  const fz::CompressOptions without = {.config_toml = kWithoutOffset, .backend = backend};
  fz::Pipeline pipeline;
  fz::configure(pipeline, fz::DataType::INT32, with);
  std::printf("%s\n", pipeline.explain().c_str());

  const fz::Frame frame = fz::compress(fz::DataType::INT32, bytes, with);
  std::printf("%zu bytes, %zu with Offset, %zu without\n", bytes.size(), frame.size(),
              fz::compress(fz::DataType::INT32, bytes, without).size());
  const fz::Array back = fz::decompress(frame, {.backend = backend});
  const auto values = back.as<std::int32_t>();
  const bool is_same = std::equal(field.begin(), field.end(), values.begin(), values.end());
  const fz::CompressOptions on_cpu = {.config_toml = kWithOffset, .backend = fz::Backend::CPU};
  const fz::Frame other = fz::compress(fz::DataType::INT32, bytes, on_cpu);
  const bool has_same_bytes = std::equal(frame.bytes().begin(), frame.bytes().end(),
                                         other.bytes().begin(), other.bytes().end());
  std::printf("values %s, bytes %s those of the CPU\n", is_same ? "restored" : "LOST",
              has_same_bytes ? "are" : "ARE NOT");
  return is_same && has_same_bytes ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  fz::registerStage(example::OffsetStage().descriptor());
  const bool on_gpu = argc > 1 && std::string(argv[1]) == "cuda";
  if (on_gpu && !fz::isBackendAvailable(fz::Backend::CUDA)) {
    std::printf("skipped: no CUDA device\n");
    return 0;
  }
  return run(on_gpu ? fz::Backend::CUDA : fz::Backend::CPU);
} catch (const std::exception& e) {
  std::fprintf(stderr, "custom_gpu_stage: %s\n", e.what());
  return 1;
}
