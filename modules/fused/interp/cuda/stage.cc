#include "fz/stage_descriptor.h"

namespace fz::interp {

/// The stage has no kernels yet: on a device it runs on the host, with copies and waits.
MakeCudaPart cudaPartMaker() {
  return nullptr;
}

}  // namespace fz::interp
