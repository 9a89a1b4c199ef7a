#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fz::cli {

/// A Zarr array on the command line: big.zarr, big.zarr.zip, or with an array inside of a group
/// big.zarr:/group/name.
struct ZarrName {
  std::string path;
  std::string array;  ///< without its first slash; empty: the store is the array
  bool is_zip = false;

  /// The key of a file of the array.
  std::string key(std::string_view file) const {
    return array.empty() ? std::string(file) : array + "/" + std::string(file);
  }
};

/// Nothing for names of any other kind. Throws Failure(kUsage) for arrays that cannot be called so.
std::optional<ZarrName> zarrName(std::string_view path);

}  // namespace fz::cli
