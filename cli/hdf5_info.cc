#include "hdf5_info.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "fz/hdf5.h"

namespace fz::cli {

namespace {

constexpr const char* kPluginFile = "libh5fz.so";

// The names of HDF5 1.10, 1.12, 1.14 and 2.0, as released and as Debian calls the serial one.
constexpr const char* kLibraries[] = {
    "libhdf5_serial.so.103", "libhdf5_serial.so.200", "libhdf5_serial.so.310",
    "libhdf5.so.103",        "libhdf5.so.200",        "libhdf5.so.310",
    "libhdf5.so.320",        "libhdf5_serial.so",     "libhdf5.so",
};

/// The functions of HDF5 that the question needs.
struct Hdf5 {
  int (*version)(unsigned*, unsigned*, unsigned*) = nullptr;
  int (*has_filter)(int) = nullptr;
  int (*n_paths)(unsigned*) = nullptr;
  long (*path)(unsigned, char*, std::size_t) = nullptr;
  int (*silence)(std::int64_t, void*, void*) = nullptr;
  std::string file;
};

template <class Pointer>
bool lookUp(void* library, const char* name, Pointer& into) {
  into = reinterpret_cast<Pointer>(dlsym(library, name));
  return into != nullptr;
}

bool openIn(void* library, Hdf5& hdf5) {
  if (!lookUp(library, "H5get_libversion", hdf5.version) ||
      !lookUp(library, "H5Zfilter_avail", hdf5.has_filter) ||
      !lookUp(library, "H5PLsize", hdf5.n_paths) || !lookUp(library, "H5PLget", hdf5.path) ||
      !lookUp(library, "H5Eset_auto2", hdf5.silence)) {
    return false;
  }
  Dl_info where = {};
  if (dladdr(reinterpret_cast<void*>(hdf5.version), &where) != 0) {
    hdf5.file = where.dli_fname;
  }
  return true;
}

/// The HDF5 of this program, else the one that a program would be given.
bool findHdf5(Hdf5& hdf5) {
  if (openIn(RTLD_DEFAULT, hdf5)) {
    return true;
  }
  for (const char* name : kLibraries) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && openIn(library, hdf5)) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> pluginPaths(const Hdf5& hdf5) {
  std::vector<std::string> paths;
  unsigned count = 0;
  hdf5.n_paths(&count);
  for (unsigned i = 0; i < count; ++i) {
    std::array<char, 4096> text = {};
    if (hdf5.path(i, text.data(), text.size()) > 0) {
      paths.emplace_back(text.data());
    }
  }
  return paths;
}

void line(const char* label, const std::string& text) {
  fmt::print("{:<12}{}\n", label, text);
}

}  // namespace

ExitCode printHdf5Info() {
  line("filter id:", std::to_string(FZ_HDF5_FILTER_ID));
  Hdf5 hdf5;
  if (!findHdf5(hdf5)) {
    line("library:", "none found (1.10 or newer is needed)");
    line("filter:", "not visible: there is no HDF5");
    return ExitCode::kIo;
  }
  hdf5.silence(0, nullptr, nullptr);
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  hdf5.version(&major, &minor, &release);
  line("library:", fmt::format("{} (HDF5 {}.{}.{})", hdf5.file, major, minor, release));
  bool is_found = false;
  for (const std::string& path : pluginPaths(hdf5)) {
    std::error_code ignored;
    const bool has_plugin =
        std::filesystem::exists(std::filesystem::path(path) / kPluginFile, ignored);
    is_found = is_found || has_plugin;
    line("looks in:",
         fmt::format("{}{}", path, has_plugin ? fmt::format(" (has {})", kPluginFile) : ""));
  }
  if (hdf5.has_filter(FZ_HDF5_FILTER_ID) > 0) {
    line("filter:", "visible");
    return ExitCode::kOk;
  }
  line("filter:", is_found
                      ? fmt::format("not visible: {} is there and cannot be loaded; 'ldd' on it "
                                    "shows what it lacks",
                                    kPluginFile)
                      : fmt::format("not visible: set HDF5_PLUGIN_PATH to {}, or import fz.hdf5 "
                                    "in Python",
                                    pluginFolderAdvice()));
  return ExitCode::kIo;
}

bool lacksHdf5Filter() {
  Hdf5 hdf5;
  if (!findHdf5(hdf5)) {
    return false;
  }
  hdf5.silence(0, nullptr, nullptr);
  return hdf5.has_filter(FZ_HDF5_FILTER_ID) <= 0;
}

std::string pluginFolderAdvice() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path().parent_path() / FZ_HDF5_PLUGIN_FOLDER;
  return !program.empty() && fs::exists(folder / kPluginFile, error)
             ? folder.string()
             : fmt::format("the folder of {}", kPluginFile);
}

}  // namespace fz::cli
