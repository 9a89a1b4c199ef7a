#include "api/result_memory.h"

#include <cstdlib>

#include "core/require.h"
#include "mem/host_memory.h"

namespace fz {

std::shared_ptr<std::uint8_t> makeResultMemory(std::size_t n_bytes) {
  void* const memory = allocateOnHost(n_bytes);
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "cannot allocate {} bytes for the result",
             n_bytes);
  return {static_cast<std::uint8_t*>(memory), &std::free};
}

}  // namespace fz
