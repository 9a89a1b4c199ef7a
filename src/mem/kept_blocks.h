#pragma once

#include <cstddef>

/// Long blocks of host memory that one call leaves to the next. The system clears every page that
/// it hands out, which takes about as long as decoding what is then written to it; a block that was
/// used before has its pages already.
///
/// Blocks in use and kept ones together are never longer than those in use at some moment before.
/// A block may be twice as long as what it serves, so that is at most about twice of what was asked
/// for at once; no memory limit counts kept blocks. The system may take their pages back when it
/// runs short.
namespace fz {

/// As allocateOnHost(), for giveBlock(); null when there is no memory. What was in the block before
/// may still be there.
void* takeBlock(std::size_t n_bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept;

/// Takes a block of takeBlock() back, which was asked for with n_bytes. Null is allowed.
void giveBlock(void* block, std::size_t n_bytes) noexcept;

/// Bytes that are kept at the moment.
std::size_t keptBlockBytes() noexcept;

}  // namespace fz
