#include <fmt/format.h>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/rtc/compiler.h"
#include "backends/cuda/rtc/device_sources.h"
#include "backends/cuda/rtc/kernel_cache.h"
#include "backends/cuda/rtc/loaded_kernel.h"
#include "cuda_check.h"

namespace fz::cuda::rtc {

namespace {

int currentArchitecture() {
  int device = 0;
  int major = 0;
  int minor = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&device));
  FZ_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  FZ_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

std::optional<GroupKernel> loadKernel(const std::vector<char>& code) {
  cudaLibrary_t library = nullptr;
  if (cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) !=
      cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  cudaKernel_t function = nullptr;
  void* shape_on_device = nullptr;
  std::size_t shape_bytes = 0;
  GroupKernel kernel;
  const bool found = cudaLibraryGetKernel(&function, library, "fz_group") == cudaSuccess &&
                     cudaLibraryGetGlobal(&shape_on_device, &shape_bytes, library,
                                          "fz_group_shape") == cudaSuccess &&
                     shape_bytes == sizeof(GroupShape) &&
                     cudaMemcpy(&kernel.shape, shape_on_device, shape_bytes,
                                cudaMemcpyDeviceToHost) == cudaSuccess;
  if (!found) {
    cudaGetLastError();
    cudaLibraryUnload(library);
    return std::nullopt;
  }
  kernel.function = function;
  return kernel;
}

}  // namespace

std::optional<GroupKernel> makeGroupKernel(const GroupChain& chain, std::string& why) {
  static const KernelCache kCache;
  const int architecture = currentArchitecture();
  const std::string key =
      fmt::format("{} sm_{} sources {:016x}", chain.key(), architecture, deviceSourcesHash());
  std::vector<char> code = kCache.load(key);
  if (!code.empty()) {
    if (auto kernel = loadKernel(code)) {
      return kernel;
    }
  }
  code = compile(sourceOf(chain), architecture, why);
  if (code.empty()) {
    return std::nullopt;
  }
  const auto kernel = loadKernel(code);
  if (!kernel) {
    why = "the code that was compiled at run time cannot be loaded";
    return std::nullopt;
  }
  kCache.store(key, code);
  return kernel;
}

}  // namespace fz::cuda::rtc
