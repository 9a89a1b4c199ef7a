#include "format/crc32.h"

#include <libdeflate.h>

namespace fz {

std::uint32_t crc32(ByteView bytes, std::uint32_t crc) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

}  // namespace fz
