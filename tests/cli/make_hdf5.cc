// Writes an HDF5 file with datasets of every kind that the tool must read or refuse:
// make_hdf5 FILE. Values are those of an index: 0, 1, 2, ...
#include <cstddef>
#include <cstdio>
#include <hdf5.h>
#include <numeric>
#include <vector>

namespace {

constexpr hsize_t kExtents[] = {4, 5, 6};
constexpr std::size_t kValues = 120;

bool write(hid_t file, const char* name, hid_t stored, hid_t properties) {
  std::vector<double> values(kValues);
  std::iota(values.begin(), values.end(), 0.0);
  const hid_t space = H5Screate_simple(3, kExtents, nullptr);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t dataset = H5Dcreate2(file, name, stored, space, links, properties, H5P_DEFAULT);
  const bool is_done =
      H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
  H5Dclose(dataset);
  H5Pclose(links);
  H5Sclose(space);
  return is_done;
}

/// A sea of 271 to 305 with -9999 for land, and far away in name only where it does not occur.
bool writeSea(hid_t file, const char* name, bool has_land) {
  constexpr hsize_t kShape[] = {40, 100};
  constexpr std::size_t kLandEvery = 4;
  std::vector<double> values(kShape[0] * kShape[1]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_land = has_land && i % kLandEvery == 1;
    values[i] = is_land ? -9999.0 : 271.0 + 34.0 * static_cast<double>(i % 501) / 500.0;
  }
  const hid_t space = H5Screate_simple(2, kShape, nullptr);
  const hid_t dataset =
      H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const bool is_done =
      H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
  H5Dclose(dataset);
  H5Sclose(space);
  return is_done;
}

bool addFillAttribute(hid_t file, const char* name, float value) {
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute =
      H5Acreate2(dataset, "_FillValue", H5T_IEEE_F32BE, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool is_done = H5Awrite(attribute, H5T_NATIVE_FLOAT, &value) >= 0;
  H5Aclose(attribute);
  H5Sclose(space);
  H5Dclose(dataset);
  return is_done;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: make_hdf5 FILE\n", stderr);
    return 1;
  }
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  constexpr hsize_t kChunk[] = {2, 5, 3};
  H5Pset_chunk(chunked, 3, kChunk);
  H5Pset_shuffle(chunked);
  const hid_t filled = H5Pcreate(H5P_DATASET_CREATE);
  constexpr double kFill = 7.0;
  H5Pset_fill_value(filled, H5T_NATIVE_DOUBLE, &kFill);
  const hid_t empty_space = H5Screate(H5S_NULL);
  const hid_t empty =
      H5Dcreate2(file, "empty", H5T_IEEE_F32LE, empty_space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  bool is_done = write(file, "f32le", H5T_IEEE_F32LE, H5P_DEFAULT) &&
                 write(file, "f32be", H5T_IEEE_F32BE, H5P_DEFAULT) &&
                 write(file, "deep/er/f64be", H5T_IEEE_F64BE, chunked) &&
                 write(file, "f64le", H5T_IEEE_F64LE, filled) &&
                 write(file, "i32", H5T_STD_I32LE, H5P_DEFAULT) &&
                 addFillAttribute(file, "f32be", 3.0F) && writeSea(file, "sea", true) &&
                 addFillAttribute(file, "sea", -9999.0F) && writeSea(file, "water", false) &&
                 addFillAttribute(file, "water", -9999.0F);
  H5Dclose(empty);
  H5Sclose(empty_space);
  H5Pclose(filled);
  H5Pclose(chunked);
  is_done = H5Fclose(file) >= 0 && is_done;
  return is_done ? 0 : 1;
}
