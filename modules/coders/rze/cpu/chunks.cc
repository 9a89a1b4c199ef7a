#include "coders/rze/cpu/chunks.h"

#include <algorithm>
#include <cstring>

#include "fz/byte_io.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/rze/cpu/chunks.cc"  // NOLINT
// Compress and expand by a mask of 64 bytes. NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_WANT_AVX3_DL 1
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "coders/rze/cpu/simd.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::rze::HWY_NAMESPACE {  // NOLINT

void planChunk(const ChunkFormat& format,
               const std::uint8_t* in,
               std::uint32_t n_bytes,
               ChunkPlan* plan) {
  const ChunkShape shape = shapeOf(n_bytes, format.levels);
  std::uint8_t* bitmap = plan->bitmaps + ChunkPlan::kBitmapAt[1];
  plan->kept[0] = markBytes<false>(in, n_bytes, bitmap);
  for (std::uint32_t level = 2; level <= shape.levels; ++level) {
    const std::uint8_t* below = bitmap;
    bitmap = plan->bitmaps + ChunkPlan::kBitmapAt[level];
    plan->bitmaps[ChunkPlan::kBitmapAt[level - 1] - 1] = 0;
    plan->kept[level - 1] = markBytes<true>(below, shape.n_bytes[level - 1], bitmap);
  }
  plan->entry = entryOf(format, shape, plan->kept);
}

void writeChunk(const ChunkFormat& format,
                const std::uint8_t* in,
                std::uint32_t n_bytes,
                const ChunkPlan& plan,
                std::uint8_t* out) {
  if ((plan.entry & kRawFlag) != 0) {
    copyBytes(in, n_bytes, out);
    return;
  }
  const ChunkShape shape = shapeOf(n_bytes, format.levels);
  std::uint8_t* tag = out + plan.entry - kTagBytes;
  if (plan.kept[0] != 0) {
    const std::uint8_t* level_bytes = in;
    const std::uint8_t* bitmap = nullptr;
    for (std::uint32_t level = 1; level <= shape.levels; ++level) {
      bitmap = plan.bitmaps + ChunkPlan::kBitmapAt[level];
      out = compressBytes(level_bytes, shape.n_bytes[level - 1], bitmap, out, tag);
      level_bytes = bitmap;
    }
    std::memcpy(out, bitmap, lastBitmapBytes(shape));  // words are filled up with zeros
  }
  storeLe(tag, static_cast<std::uint16_t>(n_bytes));
}

void plan(const ChunkFormat& format,
          ByteView in,
          std::size_t first,
          std::size_t n_plans,
          ChunkPlan* plans) {
  for (std::size_t i = 0; i < n_plans; ++i) {
    const std::size_t chunk = first + i;
    planChunk(format, in.data() + chunk * format.chunk_bytes, chunkLength(format, in.size(), chunk),
              plans + i);
  }
}

void write(const ChunkFormat& format,
           ByteView in,
           std::size_t first,
           std::size_t n_plans,
           const ChunkPlan* plans,
           std::uint8_t* out) {
  for (std::size_t i = 0; i < n_plans; ++i) {
    const std::size_t chunk = first + i;
    writeChunk(format, in.data() + chunk * format.chunk_bytes,
               chunkLength(format, in.size(), chunk), plans[i], out + plans[i].offset);
  }
}

bool readPacked(const ChunkShape& shape,
                const std::uint8_t* stored,
                std::uint32_t n_stored,
                const std::uint8_t* stream_end,
                std::uint8_t* out) {
  const std::uint32_t n_last = lastBitmapBytes(shape);
  if (n_stored < n_last + kTagBytes) {
    return false;
  }
  // Two halves: a level is rebuilt in one from the bitmap in the other.
  alignas(64) std::uint8_t maps[2][kMaxChunkBytes / 8 + 64];
  std::uint8_t* bitmap = maps[0];
  std::uint32_t at = n_stored - kTagBytes - n_last;
  std::memcpy(bitmap, stored + at, n_last);
  std::memset(bitmap + n_last, 0, 64);
  for (std::uint32_t level = shape.levels;; --level) {
    const std::uint32_t n_marked = shape.n_bytes[level - 1];
    const auto last_word = loadLe<std::uint64_t>(bitmap + (n_marked - 1) / 64 * 8);
    if (n_marked % 64 != 0 && last_word >> (n_marked % 64) != 0) {
      return false;  // a mark behind the end
    }
    const std::uint32_t n_kept = countBits(bitmap, n_marked);
    if (n_kept > at) {
      return false;
    }
    at -= n_kept;
    if (level == 1) {
      if (at != 0) {
        return false;
      }
      expandBytes(bitmap, stored, stream_end, n_marked, out);
      return true;
    }
    std::uint8_t* below = bitmap == maps[0] ? maps[1] : maps[0];
    expandRepeats(bitmap, stored + at, stream_end, n_marked, below);
    bitmap = below;
  }
}

}  // namespace fz::rze::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::rze {

HWY_EXPORT(plan);
HWY_EXPORT(write);
HWY_EXPORT(readPacked);

std::uint32_t chunkLength(const ChunkFormat& format, std::size_t n_bytes, std::size_t chunk) {
  const std::size_t begin = chunk * format.chunk_bytes;
  return static_cast<std::uint32_t>(
      std::min(n_bytes - begin, static_cast<std::size_t>(format.chunk_bytes)));
}

void planChunks(const ChunkFormat& format,
                ByteView in,
                std::size_t first,
                std::size_t n_plans,
                ChunkPlan* plans) {
  HWY_DYNAMIC_DISPATCH(plan)(format, in, first, n_plans, plans);
}

void writeChunks(const ChunkFormat& format,
                 ByteView in,
                 std::size_t first,
                 std::size_t n_plans,
                 const ChunkPlan* plans,
                 std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(write)(format, in, first, n_plans, plans, out);
}

bool readChunk(const ChunkFormat& format,
               std::uint32_t entry,
               const std::uint8_t* stored,
               const std::uint8_t* stream_end,
               MutableByteView out) {
  const std::uint32_t n_stored = entry & ~kRawFlag;
  if ((entry & kRawFlag) != 0) {
    if (n_stored != out.size()) {
      return false;
    }
    std::memcpy(out.data(), stored, n_stored);
    return true;
  }
  if (n_stored == kZeroChunkBytes) {
    std::memset(out.data(), 0, out.size());
    return true;
  }
  const ChunkShape shape = shapeOf(static_cast<std::uint32_t>(out.size()), format.levels);
  return HWY_DYNAMIC_DISPATCH(readPacked)(shape, stored, n_stored, stream_end, out.data());
}

}  // namespace fz::rze
#endif
