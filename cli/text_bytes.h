#pragma once

#include <cstdint>
#include <string_view>

#include "fz/span.h"

namespace fz::cli {

inline ByteView bytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace fz::cli
