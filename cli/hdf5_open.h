#pragma once

#include <hdf5.h>
#include <string>
#include <utility>

#include "hdf5_io.h"

/// HDF5 through its C library; built only where that is found.
namespace fz::cli {

/// Before any other call. After a write that failed, what the library does at the end of the
/// process crashes in some versions; here every file is closed by its owner, so it has nothing to
/// do then.
void prepareHdf5();

/// An object of the library that closes itself.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  ~Id() {
    if (id_ >= 0) {
      close_(id_);
    }
  }
  hid_t get() const { return id_; }
  bool isValid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

struct OpenDataset {
  Id file;
  Id dataset;
  Id type;
  Id space;
};

/// Throws Failure(kIo) with what there is, for a file or dataset that is not.
OpenDataset openDataset(const Hdf5Name& name);

/// "'/dataset': why", as Failure(kIo).
[[noreturn]] void failRead(const Hdf5Name& name, const std::string& why);
/// The same where HDF5 does not give the values: whether it lacks the filter of fz.
[[noreturn]] void failValues(const Hdf5Name& name, const OpenDataset& open);

}  // namespace fz::cli
