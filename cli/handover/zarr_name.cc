#include "handover/zarr_name.h"

#include <fmt/format.h>

#include "failure.h"

namespace fz::cli {

namespace {

constexpr std::string_view kFolderSuffix = ".zarr";
constexpr std::string_view kZipSuffix = ".zarr.zip";

/// The specification of Zarr keeps these names to itself, or for folders.
void checkArray(std::string_view path, std::string_view array) {
  for (std::size_t at = 0; at <= array.size();) {
    const std::size_t end = std::min(array.find('/', at), array.size());
    const std::string_view part = array.substr(at, end - at);
    if (part.empty() || part.starts_with("__") || part.find_first_not_of('.') == part.npos) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("'{}': no Zarr array can be called '/{}'; name it as in "
                                "big.zarr:/group/name",
                                path, array));
    }
    at = end + 1;
  }
}

}  // namespace

std::optional<ZarrName> zarrName(std::string_view path) {
  std::string_view store = path;
  std::string_view array;
  for (const std::string_view suffix : {kZipSuffix, kFolderSuffix}) {
    const std::size_t at = path.find(std::string(suffix) + ":/");
    if (at != path.npos) {
      store = path.substr(0, at + suffix.size());
      array = path.substr(store.size() + 2);
      checkArray(path, array);
      break;
    }
  }
  while (store.size() > 1 && store.ends_with('/')) {
    store.remove_suffix(1);
  }
  const bool is_zip = store.ends_with(kZipSuffix);
  if (!is_zip && !store.ends_with(kFolderSuffix)) {
    return std::nullopt;
  }
  return ZarrName{std::string(store), std::string(array), is_zip};
}

}  // namespace fz::cli
