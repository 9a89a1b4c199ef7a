#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/require.h"

namespace fz::c_api {

/// Copies what the caller's struct and ours have in common. A struct of a newer version may be
/// longer: what we do not know there must be zero, which means the default.
template <class T>
T readVersioned(const T& given, std::size_t first_bytes, const char* name) {
  const std::size_t n_bytes = given.struct_size;
  FZ_REQUIRE(n_bytes >= first_bytes, ErrorCode::kInvalidArgument,
             "{}: struct_size is {}, at least {} is needed; was it initialised?", name, n_bytes,
             first_bytes);
  T known = {};
  std::memcpy(&known, &given, std::min(n_bytes, sizeof(T)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(T); i < n_bytes; ++i) {
    FZ_REQUIRE(bytes[i] == 0, ErrorCode::kUnsupported,
               "{}: byte {} is set, which this version of the library does not know", name, i);
  }
  return known;
}

/// Fills the caller's struct, as far as it goes; what a newer version has on top becomes zero.
template <class T>
void writeVersioned(T known, T* out, std::size_t first_bytes, const char* name) {
  const std::size_t n_bytes = out->struct_size;
  FZ_REQUIRE(n_bytes >= first_bytes, ErrorCode::kInvalidArgument,
             "{}: struct_size is {}, at least {} is needed", name, n_bytes, first_bytes);
  known.struct_size = n_bytes;
  std::memcpy(out, &known, std::min(n_bytes, sizeof(T)));
  if (n_bytes > sizeof(T)) {
    std::memset(reinterpret_cast<unsigned char*>(out) + sizeof(T), 0, n_bytes - sizeof(T));
  }
}

}  // namespace fz::c_api
