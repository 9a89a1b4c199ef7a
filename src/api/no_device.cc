#include "api/device_copy.h"
#include "core/require.h"

namespace fz {

Frame compressByDevice(Pipeline& /*pipeline*/,
                       ByteView /*bytes*/,
                       const CompressOptions& /*options*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}

std::vector<std::uint8_t> takeFromDevice(void* /*memory*/, std::size_t /*n_bytes*/) {
  detail::throwError(ErrorCode::kNoDevice, "this build has no CUDA");
}

}  // namespace fz
