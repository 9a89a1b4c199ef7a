#include "archive/box_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fz {

namespace {

/// An axis of a copy.
struct CopyAxis {
  std::uint64_t n;
  std::ptrdiff_t to;
  std::ptrdiff_t from;
};

void copyRow(std::uint8_t* to, const std::uint8_t* from, const CopyAxis& x, std::size_t n_bytes) {
  for (std::uint64_t i = 0; i < x.n; ++i) {
    std::memcpy(to, from, n_bytes);
    to += x.to;
    from += x.from;
  }
}

}  // namespace

ByteSteps denseSteps(const AxisValues& extents, std::size_t value_bytes) {
  ByteSteps steps;
  auto step = static_cast<std::ptrdiff_t>(value_bytes);
  for (const std::uint64_t extent : extents) {
    steps.push_back(step);
    step *= static_cast<std::ptrdiff_t>(extent);
  }
  return steps;
}

Box overlapOf(const Box& a, const Box& b) {
  Box both;
  for (std::size_t axis = 0; axis < a.extents.size(); ++axis) {
    const std::uint64_t begin = std::max(a.origin[axis], b.origin[axis]);
    const std::uint64_t end =
        std::min(a.origin[axis] + a.extents[axis], b.origin[axis] + b.extents[axis]);
    both.origin.push_back(begin);
    both.extents.push_back(end > begin ? end - begin : 0);
  }
  return both;
}

void copyValues(std::uint8_t* to,
                const ByteSteps& to_steps,
                const std::uint8_t* from,
                const ByteSteps& from_steps,
                const AxisValues& extents,
                std::size_t value_bytes) {
  // Axes along which both sides go on without a gap become part of what is copied at once.
  std::size_t n_bytes = value_bytes;
  std::array<CopyAxis, kMaxAxes> axes;
  std::size_t n_axes = 0;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (extents[k] == 0) {
      return;
    }
    const auto run = static_cast<std::ptrdiff_t>(n_bytes);
    if (extents[k] == 1) {
      continue;
    }
    if (n_axes == 0 && to_steps[k] == run && from_steps[k] == run) {
      n_bytes *= extents[k];
    } else {
      axes[n_axes++] = {extents[k], to_steps[k], from_steps[k]};
    }
  }
  if (n_axes == 0) {
    std::memcpy(to, from, n_bytes);
    return;
  }
  std::array<std::uint64_t, kMaxAxes> at = {};
  while (true) {
    copyRow(to, from, axes[0], n_bytes);
    std::size_t k = 1;
    for (; k < n_axes; ++k) {
      to += axes[k].to;
      from += axes[k].from;
      if (++at[k] < axes[k].n) {
        break;
      }
      to -= axes[k].to * static_cast<std::ptrdiff_t>(axes[k].n);
      from -= axes[k].from * static_cast<std::ptrdiff_t>(axes[k].n);
      at[k] = 0;
    }
    if (k == n_axes) {
      return;
    }
  }
}

}  // namespace fz
