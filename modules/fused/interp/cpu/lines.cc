// Rows of nested levels: differences from the prediction along one axis, and the way back.
#include "fused/interp/cpu/args.h"

// Compiled once per vector target; the plain loops are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/lines.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "fused/interp/cpu/simd_rows.h"

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

/// Prediction of a row of odd points.
void predictLine(const NestedArgs& args, const LinePart& part, std::int32_t* out) {
  const auto base = [&](std::int64_t y, std::int64_t z) {
    return args.base.data + z * static_cast<std::ptrdiff_t>(args.base.plane) +
           y * static_cast<std::ptrdiff_t>(args.base.row) + part.x;
  };
  const std::int64_t y = part.y;
  const std::int64_t z = part.z;
  if (args.axis == 0) {
    betweenX(args.kernel, base(y, z), part.n, out);
  } else if (args.axis == 1) {
    const std::int32_t* const rows[4] = {base(y - 1, z), base(y, z), base(y + 1, z),
                                         base(y + 2, z)};
    betweenRows(args.kernel, rows, part.n, out);
  } else {
    const std::int32_t* const rows[4] = {base(y, z - 1), base(y, z), base(y, z + 1),
                                         base(y, z + 2)};
    betweenRows(args.kernel, rows, part.n, out);
  }
}

/// No difference looks like a missing one: predictions are halves of 32-bit numbers, and values are
/// below 2^29.
void subtractLine(const std::int32_t* HWY_RESTRICT p, std::size_t n, std::int32_t* HWY_RESTRICT d) {
  for (std::size_t i = 0; i < n; ++i) {
    d[i] = d[i] == kNoValue ? kNoValue : bits::wrapSub(d[i], p[i]);
  }
}

template <class T>
void fixLine(const NestedArgs& args, const LinePart& part, std::int32_t* out) {
  const Source& s = args.source;
  const std::size_t y = args.axis == 1 ? 2 * std::size_t{part.y} + 1 : part.y;
  const std::size_t z = args.axis == 2 ? 2 * std::size_t{part.z} + 1 : part.z;
  const T* const in = static_cast<const T*>(s.data) + z * s.plane + y * s.row;
  if (args.axis == 0) {
    fixValues<2>(in + 2 * std::size_t{part.x} + 1, part.n, s.has_gaps, s.scale, out);
  } else {
    fixValues<1>(in + part.x, part.n, s.has_gaps, s.scale, out);
  }
}

void differLineHere(const NestedArgs& args, const LinePart& part, std::int32_t* memory) {
  std::int32_t* const d = args.difference.at(part.y, part.z) + part.x;
  withValueType(args.source.type, [&]<class T>() { fixLine<T>(args, part, d); });
  predictLine(args, part, memory);
  subtractLine(memory, part.n, d);
}

template <class T>
void storeLine(const NestedArgs& args, const LinePart& part, const std::int32_t* odd) {
  const Result& out = args.result;
  const std::size_t y = args.axis == 1 ? 2 * std::size_t{part.y} + 1 : part.y;
  const std::size_t z = args.axis == 2 ? 2 * std::size_t{part.z} + 1 : part.z;
  T* const row = static_cast<T*>(out.data) + z * out.plane + y * out.row;
  if (args.axis == 0) {
    joinRow(args.base.at(part.y, part.z) + part.x, odd, part.n, part.n, out.scale,
            row + 2 * std::size_t{part.x});
  } else {
    storeRow(odd, part.n, out.scale, row + part.x);
  }
}

void mergeLineHere(const NestedArgs& args, const LinePart& part, std::int32_t* memory) {
  const std::int32_t* const d = args.difference.at(part.y, part.z) + part.x;
  predictLine(args, part, memory);
  addRow(d, part.n, memory);
  if (args.check != nullptr) {
    std::int32_t* const x = memory + part.n;
    withValueType(args.source.type, [&]<class T>() { fixLine<T>(args, part, x); });
    const Places row = {args.places.at(part.x, part.y, part.z), {args.places.step[0], 0, 0}};
    checkRow(*args.check, row, x, memory, part.n, args.outliers);
  }
  if (args.result.data != nullptr) {
    withValueType(args.result.type, [&]<class T>() { storeLine<T>(args, part, memory); });
  }
}

template <class T>
void copyLineOf(const NestedArgs& args, const LinePart& part) {
  const Result& out = args.result;
  const std::size_t y = args.axis == 1 ? 2 * std::size_t{part.y} : part.y;
  const std::size_t z = args.axis == 2 ? 2 * std::size_t{part.z} : part.z;
  T* const row = static_cast<T*>(out.data) + z * out.plane + y * out.row;
  const std::size_t step = args.axis == 0 ? 2 : 1;
  const std::int32_t* const base = args.base.at(part.y, part.z) + part.x;
  storeRow(base, part.n, out.scale, row + part.x * step);
}

void copyLineHere(const NestedArgs& args, const LinePart& part) {
  withValueType(args.result.type, [&]<class T>() { copyLineOf<T>(args, part); });
}

void checkLineHere(const FieldCheck& check,
                   const Places& places,
                   std::span<const std::int32_t> x,
                   const std::int32_t* r,
                   const OutlierBits& outliers) {
  checkRow(check, places, x.data(), r, x.size(), outliers);
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(differLineHere);
HWY_EXPORT(mergeLineHere);
HWY_EXPORT(copyLineHere);
HWY_EXPORT(checkLineHere);

void differLine(const NestedArgs& args, const LinePart& part, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(differLineHere)(args, part, memory);
}
void mergeLine(const NestedArgs& args, const LinePart& part, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(mergeLineHere)(args, part, memory);
}
void copyLine(const NestedArgs& args, const LinePart& part) {
  HWY_DYNAMIC_DISPATCH(copyLineHere)(args, part);
}
void checkLine(const FieldCheck& check,
               const Places& places,
               std::span<const std::int32_t> x,
               const std::int32_t* r,
               const OutlierBits& outliers) {
  HWY_DYNAMIC_DISPATCH(checkLineHere)(check, places, x, r, outliers);
}

}  // namespace fz::interp
#endif
