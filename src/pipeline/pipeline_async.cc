// The calls that do not wait; only the CUDA backend has them.
#include <new>

#include "core/require.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

#if FZ_HAVE_CUDA
#include "pipeline/cuda_runner.h"
#endif

namespace fz {

void Pipeline::compressAsync([[maybe_unused]] const void* d_in,
                             [[maybe_unused]] std::size_t n_bytes,
                             [[maybe_unused]] void* d_frame,
                             [[maybe_unused]] std::size_t capacity_bytes,
                             [[maybe_unused]] std::uint64_t* d_frame_bytes,
                             [[maybe_unused]] cudaStream_t stream) try {
  impl_->requireFinalized("compressAsync");
  FZ_REQUIRE(
      !impl_->lossless_fallback, ErrorCode::kInvalidState,
      "Pipeline::compressAsync: with setLosslessFallback(true), which has to wait for a size");
#if FZ_HAVE_CUDA
  if (impl_->cuda != nullptr) {
    FZ_REQUIRE(impl_->hint_bytes == 0 || n_bytes <= impl_->hint_bytes, ErrorCode::kBadSize,
               "Pipeline::compressAsync: input of {} bytes, the pipeline was made for at most {}",
               n_bytes, impl_->hint_bytes);
    impl_->requireDims(n_bytes, "Pipeline::compressAsync");
    impl_->cuda->compressAsync(d_in, n_bytes, d_frame, capacity_bytes, d_frame_bytes, stream);
    return;
  }
#endif
  detail::throwError(ErrorCode::kUnsupported, "Pipeline::compressAsync: needs the CUDA backend");
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::decompressAsync([[maybe_unused]] const void* d_frame,
                               [[maybe_unused]] std::size_t capacity_bytes,
                               [[maybe_unused]] void* d_out,
                               [[maybe_unused]] std::size_t original_bytes,
                               [[maybe_unused]] std::uint64_t* d_out_bytes,
                               [[maybe_unused]] cudaStream_t stream) try {
#if FZ_HAVE_CUDA
  if (impl_->cuda != nullptr) {
    impl_->cuda->decompressAsync(d_frame, capacity_bytes, d_out, original_bytes, d_out_bytes,
                                 stream);
    return;
  }
#endif
  detail::throwError(ErrorCode::kUnsupported, "Pipeline::decompressAsync: needs the CUDA backend");
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t Pipeline::finishAsync([[maybe_unused]] cudaStream_t stream) try {
#if FZ_HAVE_CUDA
  if (impl_->cuda != nullptr) {
    return impl_->cuda->finishAsync(stream);
  }
#endif
  detail::throwError(ErrorCode::kUnsupported, "Pipeline::finishAsync: needs the CUDA backend");
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
