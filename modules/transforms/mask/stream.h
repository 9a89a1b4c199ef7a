#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/parallel_for.h"
#include "fz/span.h"
#include "mem/scratch.h"
#include "transforms/mask/codec.h"

/// The port "mask": patterns, then layers of bits; SPEC.md has the layout.
namespace fz::mask {

/// With more patterns than this the missing values stand in the stream one by one.
inline constexpr std::size_t kMaxPatterns = 256;

/// Layers behind the first one, which tell n patterns apart.
std::uint32_t indexLayers(std::size_t n_patterns);
/// What no mask of this shape exceeds.
std::size_t maxStreamBytes(const Grid& grid, std::size_t value_bytes);

/// Appends bytes up to a capacity, and counts all.
class StreamWriter {
 public:
  explicit StreamWriter(MutableByteView out) : out_(out) {}
  void bytes(const void* data, std::size_t n_bytes);
  void u8(std::uint8_t value) { bytes(&value, 1); }
  void le(std::uint64_t value, std::size_t n_bytes);
  std::size_t size() const { return n_bytes_; }
  bool fits() const { return n_bytes_ <= out_.size(); }

 private:
  MutableByteView out_;
  std::size_t n_bytes_ = 0;
};

/// Working memory of a layer that is written.
struct LayerScratch {
  Scratch kinds;
  Scratch sizes;
  Scratch slots;
};

/// Writes the bits of a layer, which may bring chances of its own.
void writeLayer(const Grid& grid,
                bool may_have_chances,
                std::span<const std::uint64_t> words,
                const CpuExecutor& executor,
                MemoryPool* pool,
                LayerScratch& scratch,
                StreamWriter& out);

/// Reads a layer from the front of `in`, which it shortens, into words. Throws Error(kCorrupt).
void readLayer(const Grid& grid,
               ByteView& in,
               const CpuExecutor& executor,
               std::span<std::uint64_t> words);

/// Ones among the bits.
std::uint64_t countOnes(std::span<const std::uint64_t> words, const CpuExecutor& executor);

}  // namespace fz::mask
