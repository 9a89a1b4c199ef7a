#include "hdf5/hdf5_support.h"

#include <cmath>
#include <cstdlib>

#include "cd_values.h"

namespace fz::hdf5::test {

std::string errorText() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned /*n*/, const H5E_error2_t* entry, void* into) {
        *static_cast<std::string*>(into) += std::string(entry->desc) + "\n";
        return herr_t{0};
      },
      &text);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

std::vector<unsigned> valuesOf(const std::string& preset,
                               const std::string& bound,
                               unsigned flags) {
  return toValues(settingsFromText(preset, bound, flags));
}

std::string pluginDir() {
  const char* elsewhere = std::getenv("FZ_TEST_PLUGIN_DIR");
  return elsewhere != nullptr ? elsewhere : FZ_PLUGIN_DIR;
}

void Hdf5Test::SetUp() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  unsigned n_paths = 0;
  H5PLsize(&n_paths);
  char first[4096] = {};
  if (n_paths == 0 || H5PLget(0, first, sizeof(first)) < 0 || first != pluginDir()) {
    H5PLprepend(pluginDir().c_str());
  }
  const hid_t plist = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(plist, 1 << 20, false);
  file_ = H5Fcreate("fz_hdf5_test.h5", H5F_ACC_TRUNC, H5P_DEFAULT, plist);
  H5Pclose(plist);
  ASSERT_GE(file_, 0);
}

void Hdf5Test::TearDown() {
  H5Fclose(file_);
}

hid_t Hdf5Test::make(const Dataset& dataset, const char* name) {
  const hid_t space =
      H5Screate_simple(static_cast<int>(dataset.dims.size()), dataset.dims.data(), nullptr);
  const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(plist, static_cast<int>(dataset.chunk.size()), dataset.chunk.data());
  H5Pset_filter(plist, 62074, H5Z_FLAG_MANDATORY, dataset.values.size(), dataset.values.data());
  if (dataset.fill != nullptr) {
    H5Pset_fill_value(plist, dataset.memory_type, dataset.fill);
  }
  const hid_t id = H5Dcreate2(file_, name, dataset.type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  error_ = errorText();
  H5Pclose(plist);
  H5Sclose(space);
  return id;
}

template <class T>
std::vector<T> field(std::size_t n_values) {
  std::vector<T> values(n_values);
  for (std::size_t i = 0; i < n_values; ++i) {
    const double x = static_cast<double>(i);
    values[i] =
        static_cast<T>(60 + 40 * std::sin(x * 0.01) + 0.01 * static_cast<double>(i * 7919 % 97));
  }
  return values;
}

template std::vector<float> field(std::size_t);
template std::vector<double> field(std::size_t);
template std::vector<std::int8_t> field(std::size_t);
template std::vector<std::uint8_t> field(std::size_t);
template std::vector<std::int16_t> field(std::size_t);
template std::vector<std::uint16_t> field(std::size_t);
template std::vector<std::int32_t> field(std::size_t);
template std::vector<std::uint64_t> field(std::size_t);

}  // namespace fz::hdf5::test
