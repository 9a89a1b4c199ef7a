#pragma once

#include <cstdint>

/// The CUDA calls of the library that take memory or other resources of the device, made to fail.
/// They are wrapped when the program is linked (fz_failing_cuda in CMake), so that none is missed:
/// blocks on the device, pinned blocks, pools, streams, events, graphs, their launches, and the
/// launches of kernels, whose code and local memory are taken when they are first needed.
namespace fz::test::failing_cuda {

/// Calls count and fail only while one of these lives: those of a test beside the library's do not.
class Watch {
 public:
  Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();
};

/// The n-th call that is watched from now on fails, counted from 0, and with `and_all_later` every
/// one after it as well. Until the next stop().
void failAt(std::uint64_t n, bool and_all_later);
void stop();
/// Calls that were watched since failAt().
std::uint64_t callCount();
/// Name of the first call that failed since failAt(); empty when none did.
const char* failedCall();
/// Blocks, pools, streams, events and graphs that were made and are still there.
std::int64_t heldCount();

}  // namespace fz::test::failing_cuda
