#include "hdf5_calls.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fz::hdf5 {

namespace {

constexpr const char* kKnownByThis = "H5Pmodify_filter";

template <class Pointer>
void lookUp(void* library, const char* name, Pointer& into) {
  into = reinterpret_cast<Pointer>(dlsym(library, name));
}

Calls callsIn(void* library) {
  Calls calls = {};
  lookUp(library, "H5allocate_memory", calls.allocate);
  lookUp(library, "H5free_memory", calls.free);
  lookUp(library, "H5Pget_filter_by_id2", calls.get_filter_by_id);
  lookUp(library, "H5Pget_nfilters", calls.get_n_filters);
  lookUp(library, "H5Pget_filter2", calls.get_filter);
  lookUp(library, "H5Pmodify_filter", calls.modify_filter);
  lookUp(library, "H5Pget_chunk", calls.get_chunk);
  lookUp(library, "H5Pfill_value_defined", calls.fill_defined);
  lookUp(library, "H5Pget_fill_value", calls.get_fill);
  lookUp(library, "H5Tget_class", calls.get_class);
  lookUp(library, "H5Tget_size", calls.get_size);
  lookUp(library, "H5Tget_order", calls.get_order);
  lookUp(library, "H5get_libversion", calls.get_version);
  lookUp(library, "H5Epush2", calls.push_error);
  lookUp(library, "H5E_ERR_CLS_g", calls.error_class);
  lookUp(library, "H5E_PLINE_g", calls.error_major);
  lookUp(library, "H5E_CANTFILTER_g", calls.error_minor);
  return calls;
}

bool hasHdf5(void* library) {
  return library != nullptr && dlsym(library, kKnownByThis) != nullptr;
}

void* openMapped(const char* path) {
  return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

/// Any mapped file that is called like HDF5: for callers whose own file tells nothing.
void* findByName() {
  void* found = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t /*size*/, void* into) {
        if (std::strstr(info->dlpi_name, "libhdf5") == nullptr) {
          return 0;
        }
        void* library = openMapped(info->dlpi_name);
        if (!hasHdf5(library)) {
          return 0;
        }
        *static_cast<void**>(into) = library;
        return 1;
      },
      &found);
  return found;
}

/// The file with the caller, else the program itself (HDF5 linked in statically), else by name.
void* libraryOf(const Dl_info& caller) {
  for (const char* path : {caller.dli_fname, static_cast<const char*>(nullptr)}) {
    void* library = openMapped(path);
    if (hasHdf5(library)) {
      return library;
    }
  }
  return findByName();
}

}  // namespace

bool Calls::canDescribeDatasets() const {
  return get_filter_by_id != nullptr && get_n_filters != nullptr && get_filter != nullptr &&
         modify_filter != nullptr && get_chunk != nullptr && fill_defined != nullptr &&
         get_fill != nullptr && get_class != nullptr && get_size != nullptr && get_order != nullptr;
}

void* Calls::takeMemory(std::size_t n_bytes) const {
  return allocate != nullptr ? allocate(n_bytes, false) : std::malloc(n_bytes);
}

void Calls::giveMemory(void* memory) const {
  if (free != nullptr) {
    free(memory);
  } else {
    std::free(memory);
  }
}

void Calls::pushError(const char* function, const char* message) const {
  if (push_error != nullptr && error_class != nullptr && error_major != nullptr &&
      error_minor != nullptr) {
    push_error(0, "fz", function, 0, *error_class, *error_major, *error_minor, "fz: %s", message);
  } else {
    std::fprintf(stderr, "fz: %s\n", message);
  }
}

const Calls& callsOf(const void* code_address) {
  // Never freed: a late call while the process ends must still find it.
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<const void*, std::unique_ptr<const Calls>>;
  Dl_info caller = {};
  if (dladdr(code_address, &caller) == 0) {
    caller = {};
  }
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Calls>& calls = known[caller.dli_fbase];
  if (calls == nullptr) {
    void* library = libraryOf(caller);
    calls = std::make_unique<const Calls>(library != nullptr ? callsIn(library) : Calls{});
  }
  return *calls;
}

}  // namespace fz::hdf5
