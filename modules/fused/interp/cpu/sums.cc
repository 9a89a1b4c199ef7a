// Rows of Lorenzo ends: bins, differences and sums.
#include <algorithm>

#include "fused/interp/cpu/args.h"

// Compiled once per vector target; the plain loops are vectorised by the compiler.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/interp/cpu/sums.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include "fused/interp/cpu/simd_rows.h"

HWY_BEFORE_NAMESPACE();
namespace fz::interp::HWY_NAMESPACE {  // NOLINT

template <bool kIsPowerOfTwo, bool kHasGaps>
void binLoop(std::int32_t* values, std::size_t n, const Bin& bin_in) {
  const Bin bin = bin_in;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t code = codeOf<kIsPowerOfTwo>(values[i], bin);
    values[i] = kHasGaps && values[i] == kNoValue ? kNoValue : code;
  }
}

template <class T>
void binLineOf(const LorenzoArgs& args, const LinePart& part) {
  const Source& s = args.source;
  const T* const in = static_cast<const T*>(s.data) + part.z * s.plane + part.y * s.row + part.x;
  std::int32_t* const out = args.bins.at(part.y, part.z) + part.x;
  fixValues<1>(in, part.n, s.has_gaps, s.scale, out);
  if (args.bin.factor == 0) {
    s.has_gaps ? binLoop<true, true>(out, part.n, args.bin)
               : binLoop<true, false>(out, part.n, args.bin);
  } else {
    s.has_gaps ? binLoop<false, true>(out, part.n, args.bin)
               : binLoop<false, false>(out, part.n, args.bin);
  }
}

void binLineHere(const LorenzoArgs& args, const LinePart& part) {
  withValueType(args.source.type, [&]<class T>() { binLineOf<T>(args, part); });
}

/// Differences along y and z of a part of a row.
void crossDifferences(const LorenzoArgs& args,
                      const LinePart& part,
                      std::int32_t* HWY_RESTRICT out) {
  const std::int32_t* const here = args.bins.at(part.y, part.z) + part.x;
  const bool has_y = has(args.axes, 1) && part.y > 0;
  const bool has_z = has(args.axes, 2) && part.z > 0;
  const std::size_t up = has_y ? args.bins.row : 0;
  const std::size_t back = has_z ? args.bins.plane : 0;
  const std::size_t n = part.n;
  const auto word = [](std::int32_t v) HWY_ATTR { return static_cast<std::uint32_t>(v); };
  if (has_y && has_z) {
    const std::int32_t* const u = here - up;
    const std::int32_t* const b = here - back;
    const std::int32_t* const ub = here - up - back;
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = static_cast<std::int32_t>(word(here[i]) - word(u[i]) - word(b[i]) + word(ub[i]));
    }
  } else if (has_y || has_z) {
    const std::int32_t* const before = here - up - back;
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = static_cast<std::int32_t>(word(here[i]) - word(before[i]));
    }
  } else {
    std::memcpy(out, here, n * sizeof(*out));
  }
}

/// values[0] stands before the first.
template <class TCode>
bool differAlongX(std::int32_t* values, std::size_t n, bool has_x, TCode* HWY_RESTRICT codes) {
  std::uint32_t misfit = 0;
  if (has_x) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t wanted = bits::wrapSub(values[i + 1], values[i]);
      codes[i] = static_cast<TCode>(wanted);
      misfit |= static_cast<std::uint32_t>(wanted ^ static_cast<std::int32_t>(codes[i]));
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      codes[i] = static_cast<TCode>(values[i + 1]);
      misfit |= static_cast<std::uint32_t>(values[i + 1] ^ static_cast<std::int32_t>(codes[i]));
    }
  }
  return misfit == 0;
}

template <class TCode>
bool codeLineOf(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  // A value before the first one, 0 at the start of a row.
  const std::uint32_t before = part.x > 0 ? 1 : 0;
  memory[0] = 0;
  crossDifferences(args, {part.x - before, part.y, part.z, part.n + before}, memory + 1 - before);
  TCode* const codes = reinterpret_cast<TCode*>(memory + part.n + 1);
  const bool fits = differAlongX(memory, part.n, has(args.axes, 0), codes);
  TCode* const out = static_cast<TCode*>(args.codes) + args.array.rowStart(part.y, part.z) +
                     std::size_t{part.x >> args.array.log2[0]} * kBlockCodes;
  scatterRow(codes, part.n, args.array.log2[0], out);
  return fits;
}

bool codeLineHere(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  bool fits = true;
  withCodeType(args.code_type,
               [&]<class TCode>() { fits = codeLineOf<TCode>(args, part, memory); });
  return fits;
}

template <class TCode>
HWY_INLINE void gatherLine(const LorenzoArgs& args, const LinePart& part, TCode* codes) {
  const TCode* const in = static_cast<const TCode*>(args.codes) +
                          args.array.rowStart(part.y, part.z) +
                          std::size_t{part.x >> args.array.log2[0]} * kBlockCodes;
  gatherRow(in, part.n, args.array.log2[0], codes);
}

/// Sums along x, or the codes themselves.
template <class TCode>
HWY_INLINE void sumAlongX(const TCode* HWY_RESTRICT codes,
                          std::size_t n,
                          bool has_x,
                          std::int32_t before,
                          std::int32_t* HWY_RESTRICT out) {
  if (!has_x) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = codes[i];
    }
    return;
  }
  std::int32_t sum = before;
  for (std::size_t i = 0; i < n; ++i) {
    sum = bits::wrapAdd(sum, static_cast<std::int32_t>(codes[i]));
    out[i] = sum;
  }
}

template <class T>
HWY_INLINE void storeBins(const LorenzoArgs& args,
                          const LinePart& part,
                          const std::int32_t* HWY_RESTRICT bins,
                          std::int32_t* HWY_RESTRICT r) {
  const std::size_t n = part.n;
  const std::int32_t units = args.bin.units;
  for (std::size_t i = 0; i < n; ++i) {
    r[i] = wrapMul(bins[i], units);
  }
  const Result& out = args.result;
  storeRow(r, n, out.scale,
           static_cast<T*>(out.data) + part.z * out.plane + part.y * out.row + part.x);
}

template <class T, class TCode>
void decodePlanesOf(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory) {
  const std::uint32_t n = args.n[0];
  TCode* const codes = reinterpret_cast<TCode*>(memory);
  std::int32_t* const row = memory + n;  // sums along x
  std::int32_t* const rows = row + n;    // and along y
  for (std::uint32_t z = planes.first; z < planes.end; ++z) {
    std::memset(rows, 0, n * sizeof(*rows));
    for (std::uint32_t y = 0; y < args.n[1]; ++y) {
      const LinePart part = {0, y, z, n};
      std::int32_t* const sums = planes.before + std::size_t{y} * n;
      gatherLine(args, part, codes);
      sumAlongX(codes, n, has(args.axes, 0), 0, row);
      if (has(args.axes, 1)) {
        addRow(row, n, rows);
      }
      const std::int32_t* const here = has(args.axes, 1) ? rows : row;
      if (has(args.axes, 2)) {
        addRow(here, n, sums);
        storeBins<T>(args, part, sums, row == here ? rows : row);
      } else {
        storeBins<T>(args, part, here, sums);
      }
    }
  }
}

void decodePlanesHere(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory) {
  withValueType(args.result.type, [&]<class T>() {
    withCodeType(args.code_type,
                 [&]<class TCode>() { decodePlanesOf<T, TCode>(args, planes, memory); });
  });
}

template <class TCode>
void sumPlanesOf(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory) {
  const std::uint32_t n = args.n[0];
  TCode* const codes = reinterpret_cast<TCode*>(memory);
  for (std::uint32_t z = planes.first; z < planes.end; ++z) {
    for (std::uint32_t y = 0; y < args.n[1]; ++y) {
      gatherLine(args, {0, y, z, n}, codes);
      addRow(codes, n, planes.before + std::size_t{y} * n);
    }
  }
  for (std::uint32_t y = 0; y < args.n[1]; ++y) {
    std::int32_t* const row = planes.before + std::size_t{y} * n;
    if (has(args.axes, 0)) {
      std::memcpy(memory, row, n * sizeof(*row));
      sumAlongX(memory, n, true, 0, row);
    }
    if (has(args.axes, 1) && y > 0) {
      addRow(row - n, n, row);
    }
  }
}

void sumPlanesHere(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory) {
  withCodeType(args.code_type, [&]<class TCode>() { sumPlanesOf<TCode>(args, planes, memory); });
}

template <class T, class TCode>
void decodeLineOf(const LorenzoArgs& args,
                  const LinePart& part,
                  std::int32_t before,
                  std::int32_t* memory) {
  TCode* const codes = reinterpret_cast<TCode*>(memory);
  std::int32_t* const row = memory + part.n;
  gatherLine(args, part, codes);
  sumAlongX(codes, part.n, has(args.axes, 0), before, row);
  storeBins<T>(args, part, row, memory);
}

void decodeLineHere(const LorenzoArgs& args,
                    const LinePart& part,
                    std::int32_t before,
                    std::int32_t* memory) {
  withValueType(args.result.type, [&]<class T>() {
    withCodeType(args.code_type,
                 [&]<class TCode>() { decodeLineOf<T, TCode>(args, part, before, memory); });
  });
}

template <class TCode>
std::int32_t sumLineOf(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  TCode* const codes = reinterpret_cast<TCode*>(memory);
  gatherLine(args, part, codes);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < part.n; ++i) {
    sum += asWord(codes[i]);
  }
  return static_cast<std::int32_t>(sum);
}

std::int32_t sumLineHere(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  std::int32_t sum = 0;
  withCodeType(args.code_type, [&]<class TCode>() { sum = sumLineOf<TCode>(args, part, memory); });
  return sum;
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(binLineHere);
HWY_EXPORT(codeLineHere);
HWY_EXPORT(sumLineHere);
HWY_EXPORT(decodeLineHere);
HWY_EXPORT(sumPlanesHere);
HWY_EXPORT(decodePlanesHere);

void binLine(const LorenzoArgs& args, const LinePart& part) {
  HWY_DYNAMIC_DISPATCH(binLineHere)(args, part);
}
bool codeLine(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  return HWY_DYNAMIC_DISPATCH(codeLineHere)(args, part, memory);
}
std::int32_t sumLine(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  return HWY_DYNAMIC_DISPATCH(sumLineHere)(args, part, memory);
}
void decodeLine(const LorenzoArgs& args,
                const LinePart& part,
                std::int32_t before,
                std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(decodeLineHere)(args, part, before, memory);
}
void sumPlanes(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(sumPlanesHere)(args, planes, memory);
}
void decodePlanes(const LorenzoArgs& args, const PlaneRange& planes, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(decodePlanesHere)(args, planes, memory);
}

}  // namespace fz::interp
#endif
