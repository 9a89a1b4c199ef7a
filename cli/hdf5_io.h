#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/span.h"

/// Datasets of HDF5 files, netCDF-4 included. A build without the library has the same functions;
/// those that need it fail with a message that says so.
namespace fz::cli {

class Progress;

/// A dataset on the command line: file.h5:/group/name.
struct Hdf5Name {
  std::string file;
  std::string dataset;
};

/// Nothing for names of any other kind, and for files that are called like that.
std::optional<Hdf5Name> hdf5Name(std::string_view path);
/// Refuses a name that lacks only the slash: file.h5:name or file.h5: where no file has that name.
void checkHdf5Slash(std::string_view path);
/// Refuses the name of an HDF5 file without a dataset for a result of plain bytes.
void checkHdf5Output(std::string_view path);
/// What a result of this dataset is called when nothing is said: file.h5.group.name
std::string flatName(const Hdf5Name& name);
bool hasHdf5Signature(ByteView bytes);
bool isHdf5Built();
/// Throws Failure(kUsage); only in builds without the library.
[[noreturn]] void failNotBuilt(const Hdf5Name& name);
/// "; it has /a, /b" or what is missing to say so.
std::string hdf5Advice(const std::string& file);

/// The values, little-endian whatever the file has, and what the file says about them.
struct Hdf5Dataset {
  DataType type = DataType::UNKNOWN;
  std::vector<std::size_t> shape;  ///< the last axis is the fastest
  bool is_swapped = false;         ///< big-endian in the file
  std::vector<double> fill;        ///< values that mean "missing"
  std::string fill_source;         ///< where they stand
  std::vector<std::uint8_t> bytes;
};

/// Throws Failure: kIo for a file or dataset that cannot be read, kUsage for types that fz does not
/// take and for builds without HDF5.
Hdf5Dataset readHdf5(const Hdf5Name& name, Progress* progress);
/// Bytes that the values take in memory, without reading them. Throws as readHdf5() does.
std::uint64_t hdf5DatasetBytes(const Hdf5Name& name);

/// A dataset that is read by parts, in one thread at a time.
class Hdf5Reader {
 public:
  /// Throws as readHdf5() does.
  explicit Hdf5Reader(const Hdf5Name& name);
  ~Hdf5Reader();

  /// All but the values.
  const Hdf5Dataset& about() const { return about_; }
  /// A part with one index and one extent for each axis, the last the fastest.
  void read(const std::vector<std::size_t>& start,
            const std::vector<std::size_t>& count,
            MutableByteView out) const;

 private:
  struct Open;
  Hdf5Name name_;
  std::unique_ptr<Open> open_;
  Hdf5Dataset about_;
};
/// Writes a new file with this one dataset, complete under its name or not at all. Groups are made
/// as needed. The first of `fill` becomes its _FillValue. Existing files are never changed. Throws
/// Failure.
void writeHdf5(const Hdf5Name& name,
               DataType type,
               const std::vector<std::size_t>& shape,
               ByteView bytes,
               std::span<const double> fill);

}  // namespace fz::cli
