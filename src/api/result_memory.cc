#include "api/result_memory.h"

#include "core/require.h"
#include "mem/kept_blocks.h"

namespace fz {

std::shared_ptr<std::uint8_t> makeResultMemory(std::size_t n_bytes) {
  void* const memory = takeBlock(n_bytes);
  FZ_REQUIRE(memory != nullptr, ErrorCode::kOutOfMemory, "cannot allocate {} bytes for the result",
             n_bytes);
  return {static_cast<std::uint8_t*>(memory),
          [n_bytes](std::uint8_t* block) { giveBlock(block, n_bytes); }};
}

}  // namespace fz
