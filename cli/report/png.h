#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fz/span.h"
#include "report/colour_map.h"

namespace fz::report {

/// A picture of palette indices, the top row first.
struct IndexedImage {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<Rgb> palette;  ///< at most 256
  int transparent = -1;      ///< index that shows what lies behind; -1: none
};

/// A PNG file. Throws Error(kOutOfMemory).
std::vector<std::uint8_t> encodePng(const IndexedImage& image);

std::string base64(ByteView bytes);

}  // namespace fz::report
