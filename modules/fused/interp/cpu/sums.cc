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
  const auto word = [](std::int32_t v) HWY_ATTR { return static_cast<std::uint32_t>(v); };
  if (has_y && has_z) {
    const std::int32_t* const u = here - up;
    const std::int32_t* const b = here - back;
    const std::int32_t* const ub = here - up - back;
    for (std::size_t i = 0; i < part.n; ++i) {
      out[i] = static_cast<std::int32_t>(word(here[i]) - word(u[i]) - word(b[i]) + word(ub[i]));
    }
  } else if (has_y || has_z) {
    const std::int32_t* const before = here - up - back;
    for (std::size_t i = 0; i < part.n; ++i) {
      out[i] = static_cast<std::int32_t>(word(here[i]) - word(before[i]));
    }
  } else {
    std::memcpy(out, here, part.n * sizeof(*out));
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
void sumLineOf(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  TCode* const codes = reinterpret_cast<TCode*>(memory);
  const TCode* const in = static_cast<const TCode*>(args.codes) +
                          args.array.rowStart(part.y, part.z) +
                          std::size_t{part.x >> args.array.log2[0]} * kBlockCodes;
  gatherRow(in, part.n, args.array.log2[0], codes);
  std::int32_t* const out = args.bins.at(part.y, part.z) + part.x;
  const bool has_y = has(args.axes, 1) && part.y > 0;
  if (has(args.axes, 0)) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < part.n; ++i) {
      sum = bits::wrapAdd(sum, static_cast<std::int32_t>(codes[i]));
      out[i] = sum;
    }
  } else {
    for (std::size_t i = 0; i < part.n; ++i) {
      out[i] = codes[i];
    }
  }
  if (has_y) {
    const std::int32_t* const up = out - args.bins.row;
    for (std::size_t i = 0; i < part.n; ++i) {
      out[i] = bits::wrapAdd(out[i], up[i]);
    }
  }
}

void sumLineHere(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  withCodeType(args.code_type, [&]<class TCode>() { sumLineOf<TCode>(args, part, memory); });
}

template <class T>
void finishColumnOf(const LorenzoArgs& args,
                    const LinePart& part,
                    std::int32_t before,
                    std::int32_t* memory) {
  std::int32_t* HWY_RESTRICT const sums = memory;
  std::int32_t* HWY_RESTRICT const r = memory + part.n;
  std::fill_n(sums, part.n, before);
  for (std::size_t z = 0; z < args.n[2]; ++z) {
    if (z > 0 && !has(args.axes, 2)) {
      std::fill_n(sums, part.n, 0);
    }
    const std::int32_t* const in = args.bins.at(part.y, z) + part.x;
    for (std::size_t i = 0; i < part.n; ++i) {
      sums[i] = bits::wrapAdd(sums[i], in[i]);
      r[i] = wrapMul(sums[i], args.bin.units);
    }
    T* const out =
        static_cast<T*>(args.result.data) + z * args.result.plane + part.y * args.result.row;
    storeRow(r, part.n, args.result.scale, out + part.x);
  }
}

void finishColumnHere(const LorenzoArgs& args,
                      const LinePart& part,
                      std::int32_t before,
                      std::int32_t* memory) {
  withValueType(args.result.type,
                [&]<class T>() { finishColumnOf<T>(args, part, before, memory); });
}

}  // namespace fz::interp::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::interp {

HWY_EXPORT(binLineHere);
HWY_EXPORT(codeLineHere);
HWY_EXPORT(sumLineHere);
HWY_EXPORT(finishColumnHere);

void binLine(const LorenzoArgs& args, const LinePart& part) {
  HWY_DYNAMIC_DISPATCH(binLineHere)(args, part);
}
bool codeLine(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  return HWY_DYNAMIC_DISPATCH(codeLineHere)(args, part, memory);
}
void sumLine(const LorenzoArgs& args, const LinePart& part, std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(sumLineHere)(args, part, memory);
}
void finishColumn(const LorenzoArgs& args,
                  const LinePart& part,
                  std::int32_t before,
                  std::int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(finishColumnHere)(args, part, before, memory);
}

}  // namespace fz::interp
#endif
