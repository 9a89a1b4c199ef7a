#pragma once

#include <string>

#include "fz/span.h"

namespace fz::report {

/// SHA-256 (FIPS 180-4) in hexadecimal: names an archive for good.
std::string sha256Hex(ByteView bytes);

}  // namespace fz::report
