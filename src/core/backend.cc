#include "fz/backend.h"

namespace fz {

bool isBackendAvailable(Backend backend) noexcept {
  return backend != Backend::CUDA;
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
