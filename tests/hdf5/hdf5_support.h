#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <string>
#include <vector>

/// A file in memory with datasets of one kind, through the serial HDF5 and the plugin.
namespace fz::hdf5::test {

struct Dataset {
  hid_t type = H5T_IEEE_F32LE;  ///< in the file
  hid_t memory_type = H5T_NATIVE_FLOAT;
  std::vector<hsize_t> dims = {100};
  std::vector<hsize_t> chunk = {32};
  std::vector<unsigned> values = {};  ///< cd_values as a user gives them
  const void* fill = nullptr;         ///< one value of memory_type
};

/// Everything that HDF5 has on its error stack, as text; empties it.
std::string errorText();

/// Folder of the plugin: where it was built, or FZ_TEST_PLUGIN_DIR for a test that was moved.
std::string pluginDir();

/// cd_values from "pfpl", "abs:1e-3".
std::vector<unsigned> valuesOf(const std::string& preset,
                               const std::string& bound = "",
                               unsigned flags = 0);

class Hdf5Test : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Negative when HDF5 refuses; error_ then has its words, which any later call would erase.
  hid_t make(const Dataset& dataset, const char* name = "d");
  template <class T>
  std::vector<T> roundTrip(const Dataset& dataset, const std::vector<T>& values) {
    const hid_t id = make(dataset);
    EXPECT_GE(id, 0) << error_;
    EXPECT_GE(H5Dwrite(id, dataset.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
        << errorText();
    stored_bytes_ = H5Dget_storage_size(id);
    // A chunk in the cache of HDF5 would not pass the filter again.
    H5Dclose(id);
    const hid_t again = H5Dopen2(file_, "d", H5P_DEFAULT);
    std::vector<T> back(values.size());
    EXPECT_GE(H5Dread(again, dataset.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0)
        << errorText();
    H5Dclose(again);
    H5Ldelete(file_, "d", H5P_DEFAULT);
    return back;
  }

  hid_t file_ = -1;
  std::string error_;
  hsize_t stored_bytes_ = 0;
};

/// A smooth field with some noise.
template <class T>
std::vector<T> field(std::size_t n_values);

}  // namespace fz::hdf5::test
