#include "shufflers/bitshuffle/cpu/blocks.h"

#include <cstring>

#include "shufflers/bitshuffle/codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "shufflers/bitshuffle/cpu/blocks.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

// A tile is 8 elements for each byte lane of a vector, so each plane gets one whole vector of
// bytes. Let k be the plane byte (8 elements each), j the element within it and b the byte within
// the element. Memory runs k, j, b. Interleaving vectors brings k innermost: one vector per (b, j)
// that holds byte b of elements 8k + j for consecutive k. Transposing 8 x 8 bits across the eight
// vectors of a byte b then gives eight planes. Decoding walks back. Reversed words (SPEC.md, wide
// elements) cost nothing: they only rename vectors j and rows k.

HWY_BEFORE_NAMESPACE();
namespace fz::bitshuffle::HWY_NAMESPACE {  // NOLINT

constexpr std::size_t kLineBytes = 64;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

// The baseline of the platform through the compiler's own vectors (SSE2 on x86-64).
constexpr std::size_t kLanes = 16;
using Vector = std::uint8_t __attribute__((vector_size(16)));
using Wide = std::uint64_t __attribute__((vector_size(16)));

HWY_INLINE Vector load(const std::uint8_t* p) {
  Vector v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
HWY_INLINE void store(Vector v, std::uint8_t* p) {
  std::memcpy(p, &v, sizeof(v));
}
HWY_INLINE void stream(Vector v, std::uint8_t* p) {
  store(v, p);
}
HWY_INLINE Vector loadBlocks(const std::uint8_t* p, std::size_t /*stride*/) {
  return load(p);
}
HWY_INLINE void storeBlocks(Vector v, std::uint8_t* p, std::size_t /*stride*/) {
  store(v, p);
}
HWY_INLINE Vector interleaveLower(Vector a, Vector b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
HWY_INLINE Vector interleaveUpper(Vector a, Vector b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
template <int kShift>
HWY_INLINE void swapBits(Vector& low, Vector& high, std::uint8_t mask) {
  const Vector moved = ((Vector)((Wide)low >> kShift) ^ high) & mask;
  high ^= moved;
  low ^= (Vector)((Wide)moved << kShift);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<std::uint8_t>;
using Vector = hn::Vec<Tag>;
constexpr std::size_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kBlockLanes = 16;  // interleaving works within blocks of 16 bytes

HWY_INLINE Vector load(const std::uint8_t* p) {
  return hn::LoadU(Tag(), p);
}
HWY_INLINE void store(Vector v, std::uint8_t* p) {
  hn::StoreU(v, Tag(), p);
}
HWY_INLINE void stream(Vector v, std::uint8_t* p) {
  hn::Stream(v, Tag(), p);
}

/// One 16-byte block from each of p, p + stride, ...
template <class D = Tag>
HWY_INLINE hn::Vec<D> loadBlocks(const std::uint8_t* p, std::size_t stride) {
  const D d;
  if constexpr (hn::MaxLanes(D()) <= kBlockLanes) {
    return hn::LoadU(d, p);
  } else {
    using Half = hn::Half<D>;
    const std::size_t upper = hn::MaxLanes(Half()) / kBlockLanes * stride;
    return hn::Combine(d, loadBlocks<Half>(p + upper, stride), loadBlocks<Half>(p, stride));
  }
}

template <class D = Tag>
HWY_INLINE void storeBlocks(hn::Vec<D> v, std::uint8_t* p, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) <= kBlockLanes) {
    hn::StoreU(v, D(), p);
  } else {
    const hn::Half<D> half;
    const std::size_t upper = hn::MaxLanes(half) / kBlockLanes * stride;
    storeBlocks<hn::Half<D>>(hn::LowerHalf(half, v), p, stride);
    storeBlocks<hn::Half<D>>(hn::UpperHalf(half, v), p + upper, stride);
  }
}

HWY_INLINE Vector interleaveLower(Vector a, Vector b) {
  return hn::InterleaveLower(Tag(), a, b);
}
HWY_INLINE Vector interleaveUpper(Vector a, Vector b) {
  return hn::InterleaveUpper(Tag(), a, b);
}
template <int kShift>
HWY_INLINE void swapBits(Vector& low, Vector& high, std::uint8_t mask) {
  const Tag d;
  const hn::Repartition<std::uint64_t, Tag> wide;
  const Vector shifted = hn::BitCast(d, hn::ShiftRight<kShift>(hn::BitCast(wide, low)));
  const Vector moved = hn::And(hn::Xor(shifted, high), hn::Set(d, mask));
  high = hn::Xor(high, moved);
  low = hn::Xor(low, hn::BitCast(d, hn::ShiftLeft<kShift>(hn::BitCast(wide, moved))));
}

#endif

/// Each step moves the top bit of the vector index into the lane index, from below, and the top
/// bit of the lane index out to the vector index, likewise from below.
template <int kVectors, int kSteps>
HWY_INLINE void interleave(Vector (&x)[kVectors]) {
  for (int step = 0; step < kSteps; ++step) {
    Vector y[kVectors];
    for (int i = 0; i < kVectors / 2; ++i) {
      y[2 * i] = interleaveLower(x[i], x[i + kVectors / 2]);
      y[2 * i + 1] = interleaveUpper(x[i], x[i + kVectors / 2]);
    }
    for (int i = 0; i < kVectors; ++i) {
      x[i] = y[i];
    }
  }
}

/// In every lane: bit q of y[j] becomes bit j of y[q].
HWY_INLINE void transposeBits(Vector (&y)[8]) {
  for (int j = 0; j < 4; ++j) {
    swapBits<4>(y[j], y[j + 4], 0x0F);
  }
  for (const int j : {0, 1, 4, 5}) {
    swapBits<2>(y[j], y[j + 2], 0x33);
  }
  for (const int j : {0, 2, 4, 6}) {
    swapBits<1>(y[j], y[j + 1], 0x55);
  }
}

template <int kBytes>
struct Tile {
  static constexpr std::size_t kRowBytes = 8 * kBytes;      // the elements of one plane byte
  static constexpr std::size_t kBlockBytes = 128 * kBytes;  // input of one 16-byte block of a plane
  static constexpr bool kReversed = kBytes >= 4;
  static constexpr std::size_t kRowFlip = kReversed ? kBytes - 1 : 0;  // bytes of a plane word

  static constexpr int vectorOf(int j) { return kReversed ? 7 - j : j; }
  /// Offset of the plane of bit q of byte b; the highest bit comes first.
  static constexpr std::size_t plane(int b, int q) {
    return static_cast<std::size_t>(8 * (kBytes - 1 - b) + 7 - q);
  }
};

/// A plane's bytes of a tile. Streaming pays only where one vector is a whole cache line.
template <bool kStream>
HWY_INLINE void storePlane(Vector v, std::uint8_t* p) {
  if constexpr (kStream && kLanes == kLineBytes) {
    stream(v, p);
  } else {
    store(v, p);
  }
}

template <bool kStream>
HWY_INLINE void encodeByteTile(const std::uint8_t* in, std::uint8_t* out, std::size_t plane_bytes) {
  Vector x[8];
  for (std::size_t r = 0; r < 8; ++r) {
    x[r] = loadBlocks(in + 16 * r, Tile<1>::kBlockBytes);
  }
  interleave<8, 4>(x);
  transposeBits(x);
  for (int q = 0; q < 8; ++q) {
    storePlane<kStream>(x[q], out + Tile<1>::plane(0, q) * plane_bytes);
  }
}

HWY_INLINE void decodeByteTile(const std::uint8_t* in, std::size_t plane_bytes, std::uint8_t* out) {
  Vector x[8];
  for (int q = 0; q < 8; ++q) {
    x[q] = load(in + Tile<1>::plane(0, q) * plane_bytes);
  }
  transposeBits(x);
  interleave<8, 3>(x);
  for (std::size_t r = 0; r < 8; ++r) {
    storeBlocks(x[r], out + 16 * r, Tile<1>::kBlockBytes);
  }
}

template <int kBytes, bool kStream>
HWY_INLINE void encodeTile(const std::uint8_t* in, std::uint8_t* out, std::size_t plane_bytes) {
  using T = Tile<kBytes>;
  constexpr int kElements = 16 / kBytes;  // elements in 16 bytes
  Vector by_element[kBytes][8];
  for (int part = 0; part < kBytes / 2; ++part) {
    Vector x[16];
    for (std::size_t r = 0; r < 16; ++r) {
      x[r] = loadBlocks(in + (r ^ T::kRowFlip) * T::kRowBytes + 16 * part, T::kBlockBytes);
    }
    interleave<16, 4>(x);
    for (int i = 0; i < 16; ++i) {
      by_element[i % kBytes][T::vectorOf(part * kElements + i / kBytes)] = x[i];
    }
  }
  for (int b = 0; b < kBytes; ++b) {
    transposeBits(by_element[b]);
    for (int q = 0; q < 8; ++q) {
      storePlane<kStream>(by_element[b][q], out + T::plane(b, q) * plane_bytes);
    }
  }
}

template <int kBytes>
HWY_INLINE void decodeTile(const std::uint8_t* in, std::size_t plane_bytes, std::uint8_t* out) {
  using T = Tile<kBytes>;
  constexpr int kElements = 16 / kBytes;
  Vector by_element[kBytes][8];
  for (int b = 0; b < kBytes; ++b) {
    for (int q = 0; q < 8; ++q) {
      by_element[b][q] = load(in + T::plane(b, q) * plane_bytes);
    }
    transposeBits(by_element[b]);
  }
  for (int part = 0; part < kBytes / 2; ++part) {
    Vector x[16];
    for (int i = 0; i < 16; ++i) {
      x[i] = by_element[i % kBytes][T::vectorOf(part * kElements + i / kBytes)];
    }
    interleave<16, 4>(x);
    for (std::size_t r = 0; r < 16; ++r) {
      storeBlocks(x[r], out + (r ^ T::kRowFlip) * T::kRowBytes + 16 * part, T::kBlockBytes);
    }
  }
}

/// Asks for memory that the hardware does not foresee: a tile reads its lines in odd order.
HWY_INLINE void prefetch(const std::uint8_t* in, std::size_t n_bytes) {
  for (std::size_t i = 0; i < n_bytes; i += kLineBytes) {
    __builtin_prefetch(in + i, 0,
                       2);  // into the second level: a block and its output fill the first
  }
}

/// f(elements of a tile, first plane byte of a tile) for every tile of units [begin, end), both
/// as byte offsets. Prefetches the input `ahead` bytes further on.
template <class F>
HWY_INLINE void forEachTile(const UnitRange& range, std::size_t ahead, F f) {
  constexpr std::size_t kUnitPlaneBytes = kUnitElements / 8;
  const BlockLayout& layout = range.layout;
  const std::size_t unit_bytes = layout.unitBytes();
  const std::size_t block_units = layout.block_bytes / unit_bytes;
  const std::size_t tile_bytes = 8 * layout.element_bytes * kLanes;
  for (std::size_t unit = range.begin; unit < range.end; ++unit) {
    const std::size_t planes =
        unit / block_units * layout.block_bytes + unit % block_units * kUnitPlaneBytes;
    for (std::size_t k = 0; k < kUnitPlaneBytes; k += kLanes) {
      const std::size_t elements = unit * unit_bytes + k * 8 * layout.element_bytes;
      if (elements + ahead + tile_bytes <= range.end * unit_bytes) {
        prefetch(range.in + elements + ahead, tile_bytes);
      }
      f(elements, planes + k);
    }
  }
}

template <int kBytes, bool kStream>
HWY_INLINE void encodeWidth(const UnitRange& range) {
  constexpr std::size_t kAhead = 4096;
  const std::uint8_t* in = range.in;
  std::uint8_t* out = range.out;
  const std::size_t plane_bytes = range.layout.planeBytes();
  forEachTile(range, kAhead, [=](std::size_t elements, std::size_t planes) HWY_ATTR {
    if constexpr (kBytes == 1) {
      encodeByteTile<kStream>(in + elements, out + planes, plane_bytes);
    } else {
      encodeTile<kBytes, kStream>(in + elements, out + planes, plane_bytes);
    }
  });
}

template <int kBytes>
HWY_INLINE void decodeTileOf(const std::uint8_t* in, std::size_t plane_bytes, std::uint8_t* out) {
  if constexpr (kBytes == 1) {
    decodeByteTile(in, plane_bytes, out);
  } else {
    decodeTile<kBytes>(in, plane_bytes, out);
  }
}

template <int kBytes, bool kStream>
HWY_INLINE void decodeWidth(const UnitRange& range) {
  const std::uint8_t* in = range.in;
  std::uint8_t* out = range.out;
  const std::size_t plane_bytes = range.layout.planeBytes();
  // The planes of a tile are all over the block, so the next block is what comes in order.
  forEachTile(range, range.layout.block_bytes,
              [=](std::size_t elements, std::size_t planes) HWY_ATTR {
                if constexpr (kStream) {
                  alignas(64) std::uint8_t tile[8 * kBytes * kLanes];
                  decodeTileOf<kBytes>(in + planes, plane_bytes, tile);
                  for (std::size_t i = 0; i < sizeof(tile); i += kLanes) {
                    stream(load(tile + i), out + elements + i);
                  }
                } else {
                  decodeTileOf<kBytes>(in + planes, plane_bytes, out + elements);
                }
              });
}

template <bool kStream>
void encodeRange(const UnitRange& range) {
  switch (range.layout.element_bytes) {
    case 1:
      return encodeWidth<1, kStream>(range);
    case 2:
      return encodeWidth<2, kStream>(range);
    case 4:
      return encodeWidth<4, kStream>(range);
    default:
      return encodeWidth<8, kStream>(range);
  }
}

template <bool kStream>
void decodeRange(const UnitRange& range) {
  switch (range.layout.element_bytes) {
    case 1:
      return decodeWidth<1, kStream>(range);
    case 2:
      return decodeWidth<2, kStream>(range);
    case 4:
      return decodeWidth<4, kStream>(range);
    default:
      return decodeWidth<8, kStream>(range);
  }
}

void encode(const UnitRange& range) {
  range.streams ? encodeRange<true>(range) : encodeRange<false>(range);
}

void decode(const UnitRange& range) {
  range.streams ? decodeRange<true>(range) : decodeRange<false>(range);
}

}  // namespace fz::bitshuffle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::bitshuffle {

HWY_EXPORT(encode);
HWY_EXPORT(decode);

void encodeUnits(const UnitRange& range) {
  HWY_DYNAMIC_DISPATCH(encode)(range);
  hwy::FlushStream();
}
void decodeUnits(const UnitRange& range) {
  HWY_DYNAMIC_DISPATCH(decode)(range);
  hwy::FlushStream();
}

}  // namespace fz::bitshuffle
#endif
