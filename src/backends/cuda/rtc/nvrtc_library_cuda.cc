#include <cstdlib>
#include <dlfcn.h>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/rtc/nvrtc_library.h"

namespace fz::cuda::rtc {

namespace {

template <class F>
void find(void* library, const char* name, F& function, std::string& missing) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) {
    missing = std::string("the run-time compiler has no ") + name;
  }
}

NvrtcLibrary load() {
  NvrtcLibrary nvrtc;
  std::vector<std::string> names;
  const char* wish = std::getenv("FZ_NVRTC");
  if (wish != nullptr && std::string(wish).find('/') != std::string::npos) {
    names = {wish};
  } else {
    // The toolkit's own version first, then what a machine may have instead.
    names = {"libnvrtc.so." + std::to_string(CUDART_VERSION / 1000), "libnvrtc.so"};
  }
  void* library = nullptr;
  for (const std::string& name : names) {
    library = library == nullptr ? dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) : library;
  }
  if (library == nullptr) {
    nvrtc.missing = "no run-time compiler (" + names.front() + ") on this machine";
    return nvrtc;
  }
  find(library, "nvrtcVersion", nvrtc.version, nvrtc.missing);
  find(library, "nvrtcCreateProgram", nvrtc.create, nvrtc.missing);
  find(library, "nvrtcDestroyProgram", nvrtc.destroy, nvrtc.missing);
  find(library, "nvrtcCompileProgram", nvrtc.compile, nvrtc.missing);
  find(library, "nvrtcGetProgramLogSize", nvrtc.logSize, nvrtc.missing);
  find(library, "nvrtcGetProgramLog", nvrtc.log, nvrtc.missing);
  find(library, "nvrtcGetCUBINSize", nvrtc.cubinSize, nvrtc.missing);
  find(library, "nvrtcGetCUBIN", nvrtc.cubin, nvrtc.missing);
  return nvrtc;
}

}  // namespace

const NvrtcLibrary& NvrtcLibrary::get() {
  static const NvrtcLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace fz::cuda::rtc
