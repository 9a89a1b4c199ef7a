// Any text given as a configuration loads or ends in a typed error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fz/error.h"
#include "pipeline/compressor.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes) {
  try {
    fz::Pipeline pipeline;
    pipeline.setThreads(1);
    pipeline.loadConfigText(std::string(reinterpret_cast<const char*>(data), n_bytes), "fuzz");
  } catch (const fz::Error&) {
  } catch (const fz::InvalidArgument&) {
  }
  return 0;
}
