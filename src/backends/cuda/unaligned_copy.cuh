#pragma once

// Bytes between shared memory and any byte address of global memory, with whole words in between.
// A team of threads (a warp or a block) does it together. Device code only.

#include <cstddef>
#include <cstdint>

namespace fz::cuda {

/// One of n threads that work together.
struct Worker {
  unsigned index;
  unsigned n;
};

/// Writes n_bytes of `staged` to `out`. The words at both ends belong to neighbours too, so their
/// bytes are written one by one. `staged` must have one readable word behind its last byte. kWords:
/// `out` is mostly aligned, so that words are copied as they are; others take longer then.
template <bool kWords = false>
__device__ __forceinline__ void copyFromStaging(Worker worker,
                                                const std::uint32_t* staged,
                                                std::uint32_t n_bytes,
                                                std::uint8_t* out) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(staged);
  const auto to_word = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(out) & 3u);
  const std::uint32_t head = to_word < n_bytes ? to_word : n_bytes;
  const std::uint32_t n_words = (n_bytes - head) / 4;
  auto* words = reinterpret_cast<std::uint32_t*>(out + head);
  if (worker.index < head) {
    out[worker.index] = bytes[worker.index];
  }
  if (kWords && head == 0) {
#pragma unroll 4
    for (std::uint32_t i = worker.index; i < n_words; i += worker.n) {
      __stcs(words + i, staged[i]);
    }
  } else {
    const std::uint32_t shift = 8 * head;
#pragma unroll(kWords ? 1 : 4)
    for (std::uint32_t i = worker.index; i < n_words; i += worker.n) {
      __stcs(words + i, __funnelshift_r(staged[i], staged[i + 1], shift));
    }
  }
  const std::uint32_t tail_at = head + 4 * n_words;
  if (tail_at + worker.index < n_bytes) {
    out[tail_at + worker.index] = bytes[tail_at + worker.index];
  }
}

/// Bytes [begin, begin + n_bytes) of `in` as copyToStaging finds them: `in` is 16-byte aligned,
/// has in_bytes bytes, and begin + n_bytes <= in_bytes.
struct StagedRange {
  const std::uint8_t* in;
  std::uint64_t in_bytes;
  std::uint64_t begin;
  std::uint32_t n_bytes;

  /// Where byte `begin` comes to stand in the staging memory.
  __device__ __forceinline__ std::uint32_t skew() const {
    return static_cast<std::uint32_t>(begin & 15u);
  }
};

/// Staging bytes for a range of at most n_bytes, with a readable word behind the last byte.
__host__ __device__ constexpr std::uint32_t stagingBytes(std::uint32_t n_bytes) {
  return (n_bytes + 15 + 4 + 15) / 16 * 16;
}

/// Reads the range in pieces of 16 bytes, and what is left of the last piece of `in` byte by byte.
/// `staged` is 16-byte aligned and has stagingBytes(n_bytes) bytes.
__device__ __forceinline__ void copyToStaging(Worker worker,
                                              const StagedRange& range,
                                              void* staged) {
  if (range.n_bytes == 0) {
    return;
  }
  const std::uint64_t from = range.begin - range.skew();
  const std::uint32_t n_pieces = (range.skew() + range.n_bytes + 15) / 16;
  const std::uint64_t n_whole_left = (range.in_bytes - from) / 16;
  const std::uint32_t n_whole =
      n_whole_left < n_pieces ? static_cast<std::uint32_t>(n_whole_left) : n_pieces;
  const auto* pieces = reinterpret_cast<const uint4*>(range.in + from);
  auto* to = static_cast<uint4*>(staged);
#pragma unroll 4
  for (std::uint32_t i = worker.index; i < n_whole; i += worker.n) {
    to[i] = __ldcs(pieces + i);
  }
  if (n_whole < n_pieces && worker.index < 16) {
    const std::uint64_t at = from + 16u * n_whole + worker.index;
    if (at < range.in_bytes) {
      static_cast<std::uint8_t*>(staged)[16u * n_whole + worker.index] = range.in[at];
    }
  }
}

}  // namespace fz::cuda
