#include "hdf5_open.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <vector>

#include "failure.h"
#include "file_kind.h"
#include "fz/hdf5.h"
#include "hdf5_info.h"
#include "input_bytes.h"
#include "suggest.h"

namespace fz::cli {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> datasetsOf(hid_t file) {
  std::vector<std::string> names;
  const auto visit = [](hid_t /*id*/, const char* name, const H5O_info_t* info, void* into) {
    if (info->type == H5O_TYPE_DATASET) {
      static_cast<std::vector<std::string>*>(into)->push_back(fmt::format("/{}", name));
    }
    return herr_t{0};
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit, &names, H5O_INFO_BASIC);
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMax = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMax, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kMax ? text + ", ..." : text;
}

/// A group in place of a dataset: what could have been meant.
std::string groupText(const Hdf5Name& name, hid_t group) {
  std::vector<std::string> names = datasetsOf(group);
  std::string path = name.dataset;
  while (path.ends_with('/')) {
    path.pop_back();
  }
  for (std::string& inside : names) {
    inside.insert(0, path);
  }
  return names.empty() ? "is a group without datasets; name a dataset"
                       : "is a group; name a dataset in it: " + listed(names);
}

Id openFile(const std::string& path) {
  // Errors are told in words of ours.
  prepareHdf5();
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), &H5Fclose};
}

}  // namespace

void prepareHdf5() {
  static_cast<void>(H5dont_atexit());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void failRead(const Hdf5Name& name, const std::string& why) {
  throw Failure(ExitCode::kIo, fmt::format("'{}': {}", name.dataset, why));
}

void failValues(const Hdf5Name& name, const OpenDataset& open) {
  const Id properties(H5Dget_create_plist(open.dataset.get()), &H5Pclose);
  unsigned flags = 0;
  std::size_t n_words = 0;
  const bool has_filter = H5Pget_filter_by_id2(properties.get(), FZ_HDF5_FILTER_ID, &flags,
                                               &n_words, nullptr, 0, nullptr, nullptr) >= 0;
  failRead(name, has_filter && H5Zfilter_avail(FZ_HDF5_FILTER_ID) <= 0
                     ? fmt::format("HDF5 does not see the filter of fz, which its chunks need; set "
                                   "HDF5_PLUGIN_PATH to {}",
                                   pluginFolderAdvice())
                     : "cannot be read; its chunks are damaged or need a filter that is not there");
}

OpenDataset openDataset(const Hdf5Name& name) {
  Id file = openFile(name.file);
  if (!file.isValid()) {
    std::error_code ignored;
    if (fs::is_regular_file(name.file, ignored)) {
      if (const auto kind = knownFileKind(InputBytes::map(name.file))) {
        failRead(name, fmt::format("its file is {}; {}", kind->name, kind->advice));
      }
    }
    failRead(name, fs::exists(name.file, ignored)
                       ? "not a readable HDF5 file; check it with h5dump"
                       : "there is no file " + name.file + "; check the path");
  }
  Id dataset(H5Dopen2(file.get(), name.dataset.c_str(), H5P_DEFAULT), &H5Dclose);
  if (!dataset.isValid()) {
    const Id group(H5Gopen2(file.get(), name.dataset.c_str(), H5P_DEFAULT), &H5Gclose);
    if (group.isValid()) {
      failRead(name, groupText(name, group.get()));
    }
    const std::vector<std::string> names = datasetsOf(file.get());
    const std::string hint = didYouMean(name.dataset, names);
    failRead(name,
             fmt::format("no such dataset{}{} there {} {}", hint, afterHint(hint),
                         names.size() == 1 ? "is" : "are", names.empty() ? "none" : listed(names)));
  }
  Id type(H5Dget_type(dataset.get()), &H5Tclose);
  Id space(H5Dget_space(dataset.get()), &H5Sclose);
  return {std::move(file), std::move(dataset), std::move(type), std::move(space)};
}

std::string hdf5Advice(const std::string& file) {
  const Id id = openFile(file);
  const std::vector<std::string> names =
      id.isValid() ? datasetsOf(id.get()) : std::vector<std::string>();
  return names.empty() ? "" : "; it has " + listed(names);
}

}  // namespace fz::cli
