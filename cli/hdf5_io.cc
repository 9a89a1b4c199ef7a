// Values in and out of HDF5 files; built only where the library is found.
#include "hdf5_io.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <hdf5.h>

#include "failure.h"
#include "format/file_io.h"
#include "hdf5_open.h"
#include "output_io.h"
#include "progress.h"

namespace fz::cli {

namespace {

DataType typeOf(const Hdf5Name& name, hid_t type) {
  const std::size_t n_bytes = H5Tget_size(type);
  if (H5Tget_class(type) != H5T_FLOAT || (n_bytes != 4 && n_bytes != 8)) {
    const bool is_int = H5Tget_class(type) == H5T_INTEGER;
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' holds {}, fz takes 4- and 8-byte floating point; convert it "
                              "first",
                              name.dataset,
                              is_int ? fmt::format("{}-byte integers", n_bytes)
                                     : std::string("values of another kind")));
  }
  return n_bytes == 4 ? DataType::FLOAT32 : DataType::FLOAT64;
}

std::vector<std::size_t> shapeIn(const Hdf5Name& name, hid_t space) {
  const int n_axes = H5Sget_simple_extent_ndims(space);
  if (n_axes < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) {
    failRead(name, "has no values");
  }
  std::vector<hsize_t> extents(static_cast<std::size_t>(n_axes));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return {extents.begin(), extents.end()};
}

std::uint64_t bytesOf(const Hdf5Name& name, DataType type, const std::vector<std::size_t>& shape) {
  std::uint64_t n_bytes = getDataTypeSize(type);
  for (const std::size_t extent : shape) {
    if (__builtin_mul_overflow(n_bytes, extent, &n_bytes)) {
      failRead(name, "more values than memory can address");
    }
  }
  return n_bytes;
}

hid_t memoryType(DataType type) {
  return type == DataType::FLOAT32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
}

/// The whole dataset, along its slowest axis in parts so that progress can be told.
void readValues(const Hdf5Name& name,
                const OpenDataset& open,
                Hdf5Dataset& into,
                Progress* progress) {
  constexpr std::size_t kPartBytes = std::size_t{32} << 20;
  if (progress != nullptr) {
    progress->beginBytes("reading", into.bytes.size());
  }
  const hid_t type = memoryType(into.type);
  std::vector<hsize_t> count(into.shape.begin(), into.shape.end());
  const bool is_scalar = count.empty();
  const std::size_t n_rows = is_scalar ? 1 : into.shape.front();
  const std::size_t row_bytes = n_rows == 0 ? 0 : into.bytes.size() / n_rows;
  const std::size_t n_at_once =
      std::max<std::size_t>(1, kPartBytes / std::max<std::size_t>(1, row_bytes));
  std::vector<hsize_t> start(count.size(), 0);
  for (std::size_t row = 0; row < n_rows && row_bytes > 0; row += n_at_once) {
    const std::size_t n_now = std::min(n_at_once, n_rows - row);
    Id memory(H5Scopy(open.space.get()), &H5Sclose);
    if (!is_scalar) {
      start.front() = row;
      count.front() = n_now;
      H5Sselect_hyperslab(open.space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr);
      memory =
          Id(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), &H5Sclose);
    }
    if (H5Dread(open.dataset.get(), type, memory.get(), open.space.get(), H5P_DEFAULT,
                into.bytes.data() + row * row_bytes) < 0) {
      failValues(name, open);
    }
    if (progress != nullptr) {
      progress->add(n_now * row_bytes);
    }
  }
}

/// The numbers of an attribute; nothing for one that is not there or holds none.
std::vector<double> numbersOf(hid_t dataset, const char* attribute) {
  if (H5Aexists(dataset, attribute) <= 0) {
    return {};
  }
  const Id id(H5Aopen(dataset, attribute, H5P_DEFAULT), &H5Aclose);
  const Id space(H5Aget_space(id.get()), &H5Sclose);
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  constexpr hssize_t kMost = 64;  // more are no fill values
  if (n_values < 1 || n_values > kMost) {
    return {};
  }
  std::vector<double> values(static_cast<std::size_t>(n_values));
  return H5Aread(id.get(), H5T_NATIVE_DOUBLE, values.data()) >= 0 ? values : std::vector<double>{};
}

/// netCDF has attributes for it, HDF5 a property of the dataset.
void readFill(const OpenDataset& open, Hdf5Dataset& into) {
  const auto add = [&](const std::vector<double>& values, const char* source) {
    for (const double value : values) {
      const bool is_new = std::find(into.fill.begin(), into.fill.end(), value) == into.fill.end();
      if (std::isfinite(value) && is_new) {
        into.fill.push_back(value);
        into.fill_source = source;
      }
    }
  };
  for (const char* attribute : {"_FillValue", "missing_value"}) {
    add(numbersOf(open.dataset.get(), attribute), attribute);
  }
  if (!into.fill.empty()) {
    return;
  }
  const Id properties(H5Dget_create_plist(open.dataset.get()), &H5Pclose);
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  double value = 0.0;
  if (H5Pfill_value_defined(properties.get(), &defined) >= 0 &&
      defined == H5D_FILL_VALUE_USER_DEFINED &&
      H5Pget_fill_value(properties.get(), H5T_NATIVE_DOUBLE, &value) >= 0) {
    add({value}, "fill value of the dataset");
  }
}

/// All but the values.
Hdf5Dataset describe(const Hdf5Name& name, const OpenDataset& open) {
  Hdf5Dataset result;
  result.type = typeOf(name, open.type.get());
  result.shape = shapeIn(name, open.space.get());
  result.is_swapped = H5Tget_order(open.type.get()) == H5T_ORDER_BE;
  readFill(open, result);
  return result;
}

template <class Require>
void writeDataset(hid_t file,
                  const Hdf5Name& name,
                  DataType type,
                  const std::vector<std::size_t>& shape,
                  ByteView bytes,
                  std::span<const double> fill,
                  Require require) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                 &H5Sclose);
  const Id links(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
  require(H5Pset_create_intermediate_group(links.get(), 1) >= 0);
  const hid_t stored = memoryType(type);
  const Id properties(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  require(fill.empty() || H5Pset_fill_value(properties.get(), H5T_NATIVE_DOUBLE, fill.data()) >= 0);
  const Id dataset(H5Dcreate2(file, name.dataset.c_str(), stored, space.get(), links.get(),
                              properties.get(), H5P_DEFAULT),
                   &H5Dclose);
  require(dataset.isValid());
  if (!fill.empty()) {
    const Id scalar(H5Screate(H5S_SCALAR), &H5Sclose);
    const Id attribute(
        H5Acreate2(dataset.get(), "_FillValue", stored, scalar.get(), H5P_DEFAULT, H5P_DEFAULT),
        &H5Aclose);
    require(H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, fill.data()) >= 0);
  }
  require(bytes.empty() ||
          H5Dwrite(dataset.get(), stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0);
}

}  // namespace

bool isHdf5Built() {
  return true;
}

std::uint64_t hdf5DatasetBytes(const Hdf5Name& name) {
  const OpenDataset open = openDataset(name);
  return bytesOf(name, typeOf(name, open.type.get()), shapeIn(name, open.space.get()));
}

struct Hdf5Reader::Open {
  OpenDataset dataset;
};

Hdf5Reader::Hdf5Reader(const Hdf5Name& name)
    : name_(name), open_(new Open{openDataset(name)}), about_(describe(name, open_->dataset)) {
}
Hdf5Reader::~Hdf5Reader() = default;

void Hdf5Reader::read(const std::vector<std::size_t>& start,
                      const std::vector<std::size_t>& count,
                      MutableByteView out) const {
  const std::vector<hsize_t> first(start.begin(), start.end());
  const std::vector<hsize_t> extents(count.begin(), count.end());
  const Id file_space(H5Scopy(open_->dataset.space.get()), &H5Sclose);
  Id memory(H5Scopy(open_->dataset.space.get()), &H5Sclose);
  if (!extents.empty()) {
    H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, first.data(), nullptr, extents.data(),
                        nullptr);
    memory =
        Id(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), &H5Sclose);
  }
  if (H5Dread(open_->dataset.dataset.get(), memoryType(about_.type), memory.get(), file_space.get(),
              H5P_DEFAULT, out.data()) < 0) {
    failValues(name_, open_->dataset);
  }
}

Hdf5Dataset readHdf5(const Hdf5Name& name, Progress* progress) {
  const OpenDataset open = openDataset(name);
  Hdf5Dataset result = describe(name, open);
  result.bytes.resize(bytesOf(name, result.type, result.shape));
  readValues(name, open, result, progress);
  return result;
}

void writeHdf5(const Hdf5Name& name,
               DataType type,
               const std::vector<std::size_t>& shape,
               ByteView bytes,
               std::span<const double> fill) {
  prepareHdf5();
  const auto require = [&](bool is_done) {
    if (!is_done) {
      throw Failure(ExitCode::kIo, fmt::format("{}:{}: cannot be written; check the path, the "
                                               "permissions and the free space",
                                               name.file, name.dataset));
    }
  };
  AtomicFile target(behindLinks(name.file), TemporaryName::kUnique);
  {
    const Id file(
        H5Fcreate(target.temporaryPath().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
        &H5Fclose);
    require(file.isValid());
    writeDataset(file.get(), name, type, shape, bytes, fill, require);
    require(H5Fflush(file.get(), H5F_SCOPE_GLOBAL) >= 0);
  }
  target.commit(Existing::kKeep);
}

}  // namespace fz::cli
