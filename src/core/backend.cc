#include "fz/backend.h"

#if FZ_HAVE_CUDA
#include "backends/cuda/device_guard.h"
#endif

namespace fz {

bool isBackendAvailable(Backend backend) noexcept {
#if FZ_HAVE_CUDA
  return backend != Backend::CUDA || cuda::deviceCount() > 0;
#else
  return backend != Backend::CUDA;
#endif
}

const char* backendName(Backend backend) noexcept {
  switch (backend) {
    case Backend::Auto:
      return "auto";
    case Backend::CPU:
      return "cpu";
    case Backend::CUDA:
      return "cuda";
  }
  return "unknown";
}

}  // namespace fz
