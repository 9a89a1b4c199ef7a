#include "fused/interp/cpu/search_lines.h"

#include <array>

#include "fused/interp/cpu/search_level.h"

namespace fz::interp {

std::size_t axisOf(Axes one) {
  return one == kX ? 0 : one == kY ? 1 : 2;
}

NestedArgs nestedArgs(const LevelStep& step) {
  NestedArgs args;
  args.axis = axisOf(step.level.axes);
  args.kernel = step.level.kernels[args.axis];
  args.base = step.base;
  return args;
}

OddPart oddPart(const Extents& n, Axes axes, std::size_t n_values) {
  OddPart part;
  part.n = pointsOf(n, axes, axes);
  part.axis = axisOf(axes);
  std::uint32_t& extent = part.n[part.axis];
  part.n_all = extent;
  part.group = extent;
  const std::uint32_t block = 1u << makeCodeArray(part.n).log2[part.axis];
  const std::size_t n_wanted = n_values / (countOf(part.n) / extent) + 1;
  const std::size_t n_lines = bits::roundUp<std::size_t>(n_wanted, block);
  if (n_lines * 4 < std::size_t{extent} * 3) {
    extent = static_cast<std::uint32_t>(n_lines);
    part.group = block;
  }
  return part;
}

std::int32_t* differencesOf(const LevelStep& step,
                            const Source& source,
                            const OddPart& part,
                            Worker& worker) {
  NestedArgs args = nestedArgs(step);
  args.source = source;
  std::int32_t* const values = worker.stack.values(nullptr, countOf(part.n));
  const Lattice all = latticeOf(values, part.n);
  const std::array<std::size_t, 3> steps = {1, all.row, all.plane};
  std::array<std::uint32_t, 3> n = part.n;
  n[part.axis] = part.group;
  const std::size_t n_rows = std::size_t{n[1]} * n[2];
  const std::size_t n_groups = part.n[part.axis] / part.group;
  forEachWithMemory(
      worker.core(countOf(part.n) / 2), {n_groups * n_rows, rowsAtOnce(n[0])}, n[0] + 64,
      [&](std::size_t item, std::int32_t* memory) {
        const auto i = static_cast<std::uint32_t>(item / n_rows);
        std::array<std::uint32_t, 3> first = {};
        first[part.axis] = part.group == part.n_all ? 0 : part.firstOf(i);
        // Where the group stands in the field, its part of the memory pretends to stand.
        NestedArgs group = args;
        group.difference = all;
        group.difference.data +=
            (std::ptrdiff_t{i} * part.group - std::ptrdiff_t{first[part.axis]}) *
            static_cast<std::ptrdiff_t>(steps[part.axis]);
        const auto row = static_cast<std::uint32_t>(item % n_rows);
        differLine(group, {first[0], first[1] + row % n[1], first[2] + row / n[1], n[0]}, memory);
      });
  return values;
}

}  // namespace fz::interp
