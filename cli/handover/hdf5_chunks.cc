// Built only where HDF5 is found.
#include "handover/hdf5_chunks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <fmt/format.h>
#include <hdf5.h>
#include <utility>

#include "core/require.h"
#include "failure.h"
#include "format/file_io.h"
#include "fz/hdf5.h"
#include "hdf5/cd_values.h"
#include "hdf5_open.h"
#include "output_io.h"

namespace fz::cli {

namespace {

std::vector<hsize_t> slowestFirst(const AxisValues& values) {
  return {values.rbegin(), values.rend()};
}

/// Where a chunk begins, the slowest axis first.
std::vector<hsize_t> originOf(const StoredArray& about, std::uint64_t chunk) {
  return slowestFirst(about.grid.boxOf(chunk).origin);
}

hid_t fileType(DataType type) {
  switch (type) {
    case DataType::FLOAT32:
      return H5T_IEEE_F32LE;
    case DataType::FLOAT64:
      return H5T_IEEE_F64LE;
    case DataType::INT8:
      return H5T_STD_I8LE;
    case DataType::INT16:
      return H5T_STD_I16LE;
    case DataType::INT32:
      return H5T_STD_I32LE;
    case DataType::INT64:
      return H5T_STD_I64LE;
    case DataType::UINT8:
      return H5T_STD_U8LE;
    case DataType::UINT16:
      return H5T_STD_U16LE;
    case DataType::UINT32:
      return H5T_STD_U32LE;
    case DataType::UINT64:
      return H5T_STD_U64LE;
    default:
      return -1;
  }
}

DataType typeOf(const Hdf5Name& name, hid_t type) {
  for (const DataType known :
       {DataType::FLOAT32, DataType::FLOAT64, DataType::INT8, DataType::INT16, DataType::INT32,
        DataType::INT64, DataType::UINT8, DataType::UINT16, DataType::UINT32, DataType::UINT64}) {
    if (H5Tequal(type, fileType(known)) > 0) {
      return known;
    }
  }
  throw Failure(ExitCode::kUsage,
                fmt::format("'{}' holds values of a type that archives do not have", name.dataset));
}

bool hasOurFilter(const OpenDataset& open) {
  const Id properties(H5Dget_create_plist(open.dataset.get()), &H5Pclose);
  unsigned flags = 0;
  std::size_t n_words = 0;
  return H5Pget_layout(properties.get()) == H5D_CHUNKED && H5Pget_nfilters(properties.get()) == 1 &&
         H5Pget_filter2(properties.get(), 0, &flags, &n_words, nullptr, 0, nullptr, nullptr) ==
             FZ_HDF5_FILTER_ID;
}

StoredArray describe(const Hdf5Name& name, const OpenDataset& open) {
  StoredArray about;
  about.type = typeOf(name, open.type.get());
  about.integers_are_bits = true;
  const int n_axes = H5Sget_simple_extent_ndims(open.space.get());
  if (n_axes < 1 || static_cast<std::size_t>(n_axes) > kMaxAxes) {
    throw Failure(ExitCode::kUsage, fmt::format("'{}' has {} axes, an archive at most {}",
                                                name.dataset, n_axes, kMaxAxes));
  }
  std::vector<hsize_t> extents(static_cast<std::size_t>(n_axes));
  H5Sget_simple_extent_dims(open.space.get(), extents.data(), nullptr);
  std::vector<hsize_t> stored(extents.size());
  const Id properties(H5Dget_create_plist(open.dataset.get()), &H5Pclose);
  if (H5Pget_chunk(properties.get(), n_axes, stored.data()) != n_axes) {
    failRead(name, "its chunks cannot be read");
  }
  about.stored_chunk.assign(stored.rbegin(), stored.rend());
  AxisValues chunk = about.stored_chunk;
  for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
    const std::uint64_t extent = extents[chunk.size() - 1 - axis];
    chunk[axis] = std::min(chunk[axis], std::max<std::uint64_t>(1, extent));
  }
  about.grid =
      ChunkGrid(about.type, AxisValues(extents.rbegin(), extents.rend()), std::move(chunk));
  return about;
}

class Hdf5Source : public ChunkSource {
 public:
  explicit Hdf5Source(const Hdf5Name& name) : name_(name), open_(openDataset(name)) {
    if (!hasOurFilter(open_)) {
      throw Failure(ExitCode::kUsage,
                    fmt::format("the chunks of '{}' were not made by the filter of fz, so there "
                                "are no frames to copy; 'fz compress -o NAME.fzm {}:{}' makes an "
                                "archive of its values",
                                name.dataset, name.file, name.dataset));
    }
    about_ = describe(name, open_);
  }

  const StoredArray& about() const override { return about_; }

  std::uint64_t sizeOf(std::uint64_t chunk) const override {
    hsize_t n_bytes = 0;
    const std::vector<hsize_t> origin = originOf(about_, chunk);
    return H5Dget_chunk_storage_size(open_.dataset.get(), origin.data(), &n_bytes) < 0 ? 0
                                                                                       : n_bytes;
  }

  std::optional<std::vector<std::uint8_t>> read(std::uint64_t chunk,
                                                std::uint64_t max_bytes) const override {
    const std::uint64_t n_bytes = sizeOf(chunk);
    if (n_bytes == 0) {
      return std::nullopt;
    }
    std::error_code error;
    FZ_REQUIRE(n_bytes <= std::filesystem::file_size(name_.file, error) && !error,
               ErrorCode::kCorrupt, "its {} bytes are more than the file has", n_bytes);
    const std::vector<hsize_t> origin = originOf(about_, chunk);
    std::vector<std::uint8_t> bytes(n_bytes);
    std::uint32_t skipped = 0;
    FZ_REQUIRE(
        H5Dread_chunk(open_.dataset.get(), H5P_DEFAULT, origin.data(), &skipped, bytes.data()) >= 0,
        ErrorCode::kIo, "HDF5 cannot read it");
    FZ_REQUIRE(skipped == 0, ErrorCode::kCorrupt, "it was written without the filter");
    bytes.resize(std::min(n_bytes, max_bytes));
    return bytes;
  }

 private:
  Hdf5Name name_;
  OpenDataset open_;
  StoredArray about_;
};

hdf5::Settings settingsOf(const StoredArray& about) {
  hdf5::Settings settings;
  if (about.bound && isFloat(about.type)) {
    const bool is_pointwise =
        about.bound->mode == ErrorBoundMode::REL && about.bound->absolute == 0.0;
    settings.preset = FZ_HDF5_PFPL;  // which takes any values
    settings.mode = is_pointwise ? ErrorBoundMode::REL : ErrorBoundMode::ABS;
    settings.bound = is_pointwise ? about.bound->requested : about.bound->absolute;
    if (!(settings.bound > 0.0)) {
      settings = {};
    }
  }
  settings.type = about.type;
  settings.chunk_dims.assign(about.stored_chunk.rbegin(), about.stored_chunk.rend());
  if (!about.fill.empty()) {
    settings.fill_bits = about.type == DataType::FLOAT32
                             ? std::bit_cast<std::uint32_t>(static_cast<float>(about.fill.front()))
                             : std::bit_cast<std::uint64_t>(about.fill.front());
  }
  return settings;
}

/// Stands for the filter while a dataset is made: HDF5 asks that it be there, which it need not be
/// to write frames that are ready.
class FilterStandIn {
 public:
  FilterStandIn() {
    const H5Z_class2_t stand_in = {H5Z_CLASS_T_VERS, FZ_HDF5_FILTER_ID,  1, 1, "fz", nullptr,
                                   nullptr,          &FilterStandIn::run};
    H5Zregister(&stand_in);
  }
  FilterStandIn(const FilterStandIn&) = delete;
  FilterStandIn& operator=(const FilterStandIn&) = delete;
  ~FilterStandIn() { H5Zunregister(FZ_HDF5_FILTER_ID); }

 private:
  static std::size_t run(unsigned /*flags*/,
                         std::size_t /*n_words*/,
                         const unsigned* /*words*/,
                         std::size_t /*n_bytes*/,
                         std::size_t* /*buffer_bytes*/,
                         void** /*buffer*/) {
    return 0;  // fails
  }
};

class Hdf5Target : public ChunkTarget {
 public:
  Hdf5Target(const Hdf5Name& name, const StoredArray& about)
      : name_(name),
        about_(about),
        target_(behindLinks(name.file), TemporaryName::kUnique),
        file_(H5Fcreate(target_.temporaryPath().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
              &H5Fclose) {
    require(file_.isValid());
    const Id properties = makeProperties();
    const std::vector<hsize_t> extents = slowestFirst(about.grid.extents());
    const Id space(
        H5Screate_simple(static_cast<int>(extents.size()), extents.data(), extents.data()),
        &H5Sclose);
    const Id links(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
    require(H5Pset_create_intermediate_group(links.get(), 1) >= 0);
    dataset_ = Id(H5Dcreate2(file_.get(), name.dataset.c_str(), fileType(about.type), space.get(),
                             links.get(), properties.get(), H5P_DEFAULT),
                  &H5Dclose);
    require(dataset_.isValid());
    writeFill();
  }

  void put(std::uint64_t chunk, ByteView frame) override {
    const std::vector<hsize_t> origin = originOf(about_, chunk);
    require(H5Dwrite_chunk(dataset_.get(), H5P_DEFAULT, 0, origin.data(), frame.size(),
                           frame.data()) >= 0);
  }

  void commit() override {
    dataset_ = Id(-1, &H5Dclose);
    require(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL) >= 0);
    file_ = Id(-1, &H5Fclose);
    target_.commit(Existing::kKeep);
  }

 private:
  void require(bool is_done) const {
    if (!is_done) {
      throw Failure(ExitCode::kIo, fmt::format("{}:{}: cannot be written; check the path, the "
                                               "permissions and the free space",
                                               name_.file, name_.dataset));
    }
  }

  Id makeProperties() const {
    Id properties(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
    const std::vector<unsigned> words = hdf5::toValues(settingsOf(about_));
    const std::vector<hsize_t> chunk = slowestFirst(about_.stored_chunk);
    require(H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0 &&
            H5Pset_filter(properties.get(), FZ_HDF5_FILTER_ID, H5Z_FLAG_MANDATORY, words.size(),
                          words.data()) >= 0);
    if (!about_.fill.empty()) {
      require(H5Pset_fill_value(properties.get(), H5T_NATIVE_DOUBLE, about_.fill.data()) >= 0);
    }
    return properties;
  }

  /// As netCDF has it.
  void writeFill() const {
    if (about_.fill.empty()) {
      return;
    }
    const Id space(H5Screate(H5S_SCALAR), &H5Sclose);
    const Id attribute(H5Acreate2(dataset_.get(), "_FillValue", fileType(about_.type), space.get(),
                                  H5P_DEFAULT, H5P_DEFAULT),
                       &H5Aclose);
    require(H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, about_.fill.data()) >= 0);
  }

  FilterStandIn filter_;  // goes last
  Hdf5Name name_;
  StoredArray about_;
  AtomicFile target_;
  Id file_;
  Id dataset_{-1, &H5Dclose};
};

/// Why HDF5 has no chunks for such an array; empty where it has.
std::string obstacleOf(const StoredArray& about) {
  if (about.grid.axisCount() == 0) {
    return "HDF5 has no chunks for a single value";
  }
  if (about.grid.arrayBytes() == 0) {
    return "an array without values has no chunks";
  }
  if (about.grid.chunkBytes() > UINT32_MAX) {
    return fmt::format("chunks of {} bytes, and those of HDF5 have less than 4 GiB",
                       about.grid.chunkBytes());
  }
  return fileType(about.type) < 0 ? "HDF5 has no such type" : "";
}

}  // namespace

bool isFilteredHdf5(const Hdf5Name& name) {
  return hasOurFilter(openDataset(name));
}

std::unique_ptr<ChunkSource> openHdf5Chunks(const Hdf5Name& name) {
  return std::make_unique<Hdf5Source>(name);
}

std::unique_ptr<ChunkTarget> createHdf5Chunks(const Hdf5Name& name, const StoredArray& about) {
  prepareHdf5();
  if (const std::string obstacle = obstacleOf(about); !obstacle.empty()) {
    throw Failure(
        ExitCode::kUsage,
        fmt::format("the chunks cannot be copied: {}; --decode writes plain values", obstacle));
  }
  return std::make_unique<Hdf5Target>(name, about);
}

}  // namespace fz::cli
