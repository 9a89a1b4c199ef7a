#include "fz/backend.h"

#include "backends/cuda/device_guard.h"

namespace fz {

bool isBackendAvailable(Backend backend) noexcept {
  return backend != Backend::CUDA || cuda::deviceCount() > 0;
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
