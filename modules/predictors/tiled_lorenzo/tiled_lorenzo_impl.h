#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "predictors/tiled_lorenzo/tiled_lorenzo_codec.h"

namespace fz::tiled_lorenzo {

inline Grid gridOf(const std::array<std::size_t, 3>& dims, const std::array<std::size_t, 3>& tile) {
  return {dims[0],
          dims[1],
          dims[2],
          {static_cast<std::uint32_t>(tile[0]), static_cast<std::uint32_t>(tile[1]),
           static_cast<std::uint32_t>(tile[2])}};
}

}  // namespace fz::tiled_lorenzo
