// Tiles of a level, from codes.
#include "fused/interp/cpu/args.h"

// Compiled once per vector target; the plain loops are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/decode.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "fused/interp/cpu/simd_rows.h"
#include "fused/interp/cpu/walk.h"

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

/// Reconstructs the rows of a tile; T is the type of the result.
template <class T, class TCode>
class RowDecoder {
 public:
  using Code = TCode;
  using Walk = TileWalk<RowDecoder>;
  static constexpr bool kPredictsHalo = false;

  explicit RowDecoder(const LevelArgs& args) : a_(args) {}

  void beginRow(const Walk& /*walk*/, Axes /*odd*/, const RowAt& /*at*/) {}

  void skip(const Walk& walk, Axes odd, const RowAt& at, Code* codes) {
    const CodeArray& array = a_.classes[odd];
    const Code* const in = static_cast<const Code*>(a_.codes) + a_.starts[odd] +
                           array.rowStart(at.cell_y, at.cell_z) +
                           std::size_t{walk.firstCell() >> array.log2[0]} * kBlockCodes;
    gatherRow(in, walk.points(odd), array.log2[0], codes);
  }

  void code(const Walk& walk,
            Axes odd,
            const RowAt& at,
            const std::int32_t* p,
            Code* codes,
            bool /*is_halo*/) {
    skip(walk, odd, at, codes);
    reconstructRow(p, codes, walk.ownPoints(odd), a_.bin.units, walk.coderRow(has(odd, 0) ? 1 : 0));
  }

  void endRow(const Walk& walk, Axes odd, const RowAt& at, const std::int32_t* base) {
    const bool has_x = has(a_.axes, 0);
    T* const out = static_cast<T*>(a_.result.data) + at.z * a_.result.plane + at.y * a_.result.row +
                   std::size_t{walk.firstCell()} * (has_x ? 2 : 1);
    const std::int32_t* const even = odd == 0 ? base : walk.coderRow(0);
    if (has_x) {
      joinRow(even, walk.coderRow(1), walk.ownPoints(0), walk.ownPoints(kX), a_.result.scale, out);
    } else {
      storeRow(even, walk.ownPoints(0), a_.result.scale, out);
    }
  }

 private:
  const LevelArgs& a_;
};

template <class T, class TCode>
void decodeTileOf(const LevelArgs& args, std::size_t tile, std::int32_t* memory) {
  RowDecoder<T, TCode> coder(args);
  TileWalk<RowDecoder<T, TCode>>(args, tile, memory, coder).run();
}

void decodeTileHere(const LevelArgs& args, std::size_t tile, std::int32_t* memory) {
  withValueType(args.result.type, [&]<class T>() {
    withCodeType(args.code_type,
                 [&]<class TCode>() { decodeTileOf<T, TCode>(args, tile, memory); });
  });
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(decodeTileHere);

void decodeTile(const LevelArgs& args, std::size_t tile, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(decodeTileHere)(args, tile, memory);
}

}  // namespace fz::interp
#endif
