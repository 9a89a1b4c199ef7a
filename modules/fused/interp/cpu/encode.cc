// Tiles of a level, to codes.
#include "fused/interp/cpu/args.h"
#include "shared/fp.h"

// Compiled once per vector target; the plain loops are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/encode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "fused/interp/cpu/simd_rows.h"
#include "fused/interp/cpu/walk.h"

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

/// Codes the rows of a tile; T is the type of the source.
template <class T, class TCode>
class RowEncoder {
 public:
  using Code = TCode;
  using Walk = TileWalk<RowEncoder>;
  static constexpr bool kPredictsHalo = true;

  explicit RowEncoder(const LevelArgs& args) : a_(args) {}

  void beginRow(const Walk& walk, Axes odd, const RowAt& at) {
    const bool has_x = has(a_.axes, 0);
    const Source& s = a_.source;
    const T* const in = static_cast<const T*>(s.data) + at.z * s.plane + at.y * s.row +
                        std::size_t{walk.firstCell()} * (has_x ? 2 : 1);
    const std::size_t n_even = walk.points(0);
    const std::size_t n_odd = walk.points(kX);
    if (s.scale != nullptr && (odd != 0 || has_x)) {
      // Rows are short and far apart, so the hardware does not see the next one coming. Lattices
      // are small, and were written just before.
      prefetchRow(in, (has(a_.axes, 1) ? 4 : 2) * s.row, n_even + n_odd);
    }
    if (!has_x) {
      if (odd != 0) {
        fixValues<1>(in, n_even, s.has_gaps, s.scale, walk.coderRow(0));
      }
    } else if (odd == 0) {
      fixValues<2>(in + 1, n_odd, s.has_gaps, s.scale, walk.coderRow(1));
    } else {
      splitValues(in, n_even, n_odd, s.has_gaps, s.scale, walk.coderRow(0), walk.coderRow(1));
    }
  }

  void code(const Walk& walk,
            Axes odd,
            const RowAt& at,
            const std::int32_t* p,
            Code* codes,
            bool is_halo) {
    const bool is_odd_x = has(odd, 0);
    const std::int32_t* const x = walk.coderRow(is_odd_x ? 1 : 0);
    std::int32_t* const r = walk.coderRow(is_odd_x ? 3 : 2);
    const bool is_clamped =
        quantizeRow(x, p, walk.points(odd), a_.source.has_gaps, a_.bin, codes, r);
    if (is_halo) {
      return;
    }
    if (is_clamped) {
      markClamped(walk, odd, at, x, p);
    }
    if (a_.check != nullptr) {
      checkRow(*a_.check, placesOf(walk, odd, at), x, r, walk.ownPoints(odd), a_.outliers);
    }
    const CodeArray& array = a_.classes[odd];
    Code* const out = static_cast<Code*>(a_.codes) + a_.starts[odd] +
                      array.rowStart(at.cell_y, at.cell_z) +
                      std::size_t{walk.firstCell() >> array.log2[0]} * kBlockCodes;
    scatterRow(codes, walk.ownPoints(odd), array.log2[0], out);
  }

  void skip(const Walk& /*walk*/, Axes /*odd*/, const RowAt& /*at*/, Code* /*codes*/) {}

  void endRow(const Walk& walk, Axes odd, const RowAt& at, const std::int32_t* base) {
    if (a_.result.data == nullptr) {
      return;
    }
    const bool has_x = has(a_.axes, 0);
    std::int32_t* const out = static_cast<std::int32_t*>(a_.result.data) + at.z * a_.result.plane +
                              at.y * a_.result.row +
                              std::size_t{walk.firstCell()} * (has_x ? 2 : 1);
    const std::int32_t* const even = odd == 0 ? base : walk.coderRow(2);
    if (has_x) {
      joinRow(even, walk.coderRow(3), walk.ownPoints(0), walk.ownPoints(kX), a_.result.scale, out);
    } else {
      storeRow(even, walk.ownPoints(0), a_.result.scale, out);
    }
  }

 private:
  /// n values from `ahead` values behind `row` on, which may lie outside the field.
  static void prefetchRow(const T* row, std::size_t ahead, std::size_t n) {
    constexpr std::size_t kLineBytes = 64;
    const auto first = reinterpret_cast<std::uintptr_t>(row) + ahead * sizeof(T);
    for (std::size_t i = 0; i < n * sizeof(T); i += kLineBytes) {
      __builtin_prefetch(reinterpret_cast<const void*>(first + i));  // NOLINT
    }
  }

  /// Of the points of a class in a row.
  Places placesOf(const Walk& walk, Axes odd, const RowAt& at) const {
    const std::uint64_t stride = has(a_.axes, 0) ? 2 : 1;
    const std::uint64_t x = walk.firstCell() * stride + (has(odd, 0) ? 1 : 0);
    return {a_.places.at(x, at.y, at.z), {a_.places.step[0] * stride, 0, 0}};
  }

  void markClamped(const Walk& walk,
                   Axes odd,
                   const RowAt& at,
                   const std::int32_t* x,
                   const std::int32_t* p) const {
    const Places places = placesOf(walk, odd, at);
    for (std::size_t i = 0; i < walk.ownPoints(odd); ++i) {
      const std::int32_t wanted = codeOf(bits::wrapSub(x[i], p[i]), a_.bin);
      if (x[i] != kNoValue && wanted != clampCode<Code>(wanted)) {
        a_.outliers.mark(places.at(i, 0, 0));
      }
    }
  }

  const LevelArgs& a_;
};

template <class T, class TCode>
void encodeTileOf(const LevelArgs& args, std::size_t tile, std::int32_t* memory) {
  RowEncoder<T, TCode> coder(args);
  TileWalk<RowEncoder<T, TCode>>(args, tile, memory, coder).run();
}

void encodeTileHere(const LevelArgs& args, std::size_t tile, std::int32_t* memory) {
  withValueType(args.source.type, [&]<class T>() {
    withCodeType(args.code_type,
                 [&]<class TCode>() { encodeTileOf<T, TCode>(args, tile, memory); });
  });
}

std::size_t tileValuesHere(const LevelArgs& args) {
  return TileWalk<RowEncoder<float, std::int32_t>>::memoryValues(args);
}

template <class T>
void fixRowOf(const RowArgs& args, std::size_t n, std::int32_t* out) {
  const T* const in = static_cast<const T*>(args.in);
  if (args.step == 2) {
    fixValues<2>(in, n, args.has_gaps, args.scale, out);
  } else {
    fixValues<1>(in, n, args.has_gaps, args.scale, out);
  }
}

void fixRowHere(const RowArgs& args, std::size_t n, std::int32_t* out) {
  withValueType(args.type, [&]<class T>() { fixRowOf<T>(args, n, out); });
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(encodeTileHere);
HWY_EXPORT(tileValuesHere);
HWY_EXPORT(fixRowHere);

void encodeTile(const LevelArgs& args, std::size_t tile, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(encodeTileHere)(args, tile, memory);
}
std::size_t tileValues(const LevelArgs& args) {
  return HWY_DYNAMIC_DISPATCH(tileValuesHere)(args);
}
void fixRow(const RowArgs& args, std::size_t n, std::int32_t* out) {
  HWY_DYNAMIC_DISPATCH(fixRowHere)(args, n, out);
}

}  // namespace fz::interp
#endif
