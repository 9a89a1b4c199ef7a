#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fz {

/// Memory of the host for a result; never null. Throws Error(kOutOfMemory).
std::shared_ptr<std::uint8_t> makeResultMemory(std::size_t n_bytes);

}  // namespace fz
