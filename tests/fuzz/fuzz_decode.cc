// Any bytes given to the decoder end in a result or a typed error, within limits.
#include <cstddef>
#include <cstdint>

#include "fz/error.h"
#include "fz/host_api.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  fz::DecompressOptions options;
  options.threads = 1;
  options.limits = {.max_output_bytes = 16u << 20, .max_memory_bytes = 64u << 20};
  try {
    static_cast<void>(fz::decompress({data, n_bytes}, options));
  } catch (const fz::Error&) {
  }
  return 0;
}
