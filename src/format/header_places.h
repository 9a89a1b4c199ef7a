#pragma once

#include <cstddef>
#include <vector>

#include "format/frame_header.h"

namespace fz {

/// Where the bytes of a header stand that are filled in or compared one by one: on a device, and by
/// tests that damage them.
struct HeaderPlaces {
  struct Record {
    std::size_t version = 0;
    std::size_t config = 0;
  };
  struct Segment {
    std::vector<std::size_t> sizes;   ///< all say the same
    std::vector<std::size_t> offset;  ///< where the payload's offset is stored: one place or none
    std::vector<Record> producer;     ///< its stage's version and config once more, or none
  };

  std::size_t absolute_bound = 0;
  std::vector<Record> stages;
  std::vector<Segment> segments;
};

/// For a header as writeHeader() writes it, or as readHeader() has read it.
HeaderPlaces placesIn(const FrameHeader& header);

}  // namespace fz
