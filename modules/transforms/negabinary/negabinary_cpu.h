#pragma once

#include <cstddef>

namespace fz::negabinary {

/// Maps n_values integers of value_bytes bytes each, with the widest vectors of this machine.
void encodeValues(const void* in, std::size_t n_values, std::size_t value_bytes, void* out);
void decodeValues(const void* in, std::size_t n_values, std::size_t value_bytes, void* out);

}  // namespace fz::negabinary
