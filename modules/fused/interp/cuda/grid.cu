// Lattices: even points, ghosts, differences of nested levels.
#include "backends/cuda/launch.h"
#include "fused/interp/cuda/policy.h"
#include "fused/interp/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::interp::device {

namespace {

std::uint64_t countOf(const Points& n) {
  return std::uint64_t{n[0]} * n[1] * n[2];
}

__global__ void __launch_bounds__(kThreads) pickKernel(const __grid_constant__ PickJob job) {
  const Setup& setup = *job.setup;
  std::int32_t* const out = static_cast<std::int32_t*>(job.out.data);
  forPoints(
      job.n,
      [&](const Points& p) {
        return fixedAt(
            job.source,
            placeIn(job.source, std::int64_t{p[0]} * job.stride[0],
                    std::int64_t{p[1]} * job.stride[1], std::int64_t{p[2]} * job.stride[2]),
            setup);
      },
      [&](const Points& p, std::int32_t x) { out[placeIn(job.out, p[0], p[1], p[2])] = x; });
}

/// A ghost, or a point, as a sum of up to three points of its line.
struct Terms {
  std::uint32_t at[3];
  std::int32_t weight[3];
};
__device__ __forceinline__ Terms termsOf(std::int64_t i, std::uint32_t n, bool is_fine_odd) {
  Terms t = {{0, 0, 0}, {1, 0, 0}};
  if (i >= 0 && i < n) {
    t.at[0] = static_cast<std::uint32_t>(i);
    return t;
  }
  if (n == 1) {
    return t;
  }
  if (i < 0) {
    t.at[1] = 1;
    t.at[2] = n == 2 ? 0 : 2;
    t.weight[0] = n == 2 ? 2 : 3;
    t.weight[1] = n == 2 ? -1 : -3;
    t.weight[2] = n == 2 ? 0 : 1;
    return t;
  }
  const bool is_far = i > n;  // the second one behind the end: linear from the first
  const bool is_linear = n == 2 || !is_fine_odd;
  t.at[0] = n - 1;
  t.at[1] = n - 2;
  t.at[2] = is_linear ? 0 : n - 3;
  t.weight[0] = is_linear ? (is_far ? 3 : 2) : (is_far ? 5 : 3);
  t.weight[1] = is_linear ? (is_far ? -2 : -1) : (is_far ? -6 : -3);
  t.weight[2] = is_linear ? 0 : (is_far ? 2 : 1);
  return t;
}

/// Axis after axis on the CPU; since it is a sum of products in integers, all at once is the same.
__global__ void __launch_bounds__(kThreads) ghostKernel(const __grid_constant__ GhostJob job,
                                                        std::uint64_t n_x,
                                                        std::uint64_t n_y,
                                                        std::uint64_t n_z) {
  std::int32_t* const data = static_cast<std::int32_t*>(job.base.data);
  // Three shells: ghosts along x, of all y and z; along y, of inner x; along z, of inner x and y.
  const auto outer = [&](unsigned axis) { return job.n[axis] + 3 * job.has_axis[axis]; };
  const auto ghost = [&](unsigned axis, std::uint32_t i) {
    return i == 0 ? std::int64_t{-1} : std::int64_t{job.n[axis]} + i - 1;
  };
  for (std::uint64_t i = threadIndex(); i < n_x + n_y + n_z; i += threadCount()) {
    std::int64_t at[3];
    if (i < n_x) {
      const Points p = pointOf(i, {{3, outer(1), outer(2)}});
      at[0] = ghost(0, p[0]);
      at[1] = std::int64_t{p[1]} - job.has_axis[1];
      at[2] = std::int64_t{p[2]} - job.has_axis[2];
    } else if (i < n_x + n_y) {
      const Points p = pointOf(i - n_x, {{job.n[0], 3, outer(2)}});
      at[0] = p[0];
      at[1] = ghost(1, p[1]);
      at[2] = std::int64_t{p[2]} - job.has_axis[2];
    } else {
      const Points p = pointOf(i - n_x - n_y, {{job.n[0], job.n[1], 3}});
      at[0] = p[0];
      at[1] = p[1];
      at[2] = ghost(2, p[2]);
    }
    Terms terms[3];
#pragma unroll
    for (unsigned axis = 0; axis < 3; ++axis) {
      terms[axis] = termsOf(at[axis], job.n[axis], job.is_fine_odd[axis] != 0);
    }
    std::uint32_t sum = 0;
    for (unsigned z = 0; z < 3; ++z) {
      for (unsigned y = 0; y < 3 && terms[2].weight[z] != 0; ++y) {
        const std::int32_t weight = terms[2].weight[z] * terms[1].weight[y];
        for (unsigned x = 0; x < 3 && weight != 0; ++x) {
          const std::int32_t value =
              data[placeIn(job.base, terms[0].at[x], terms[1].at[y], terms[2].at[z])];
          sum += static_cast<std::uint32_t>(value) *
                 static_cast<std::uint32_t>(weight * terms[0].weight[x]);
        }
      }
    }
    data[placeIn(job.base, at[0], at[1], at[2])] = static_cast<std::int32_t>(sum);
  }
}

/// What a nested level predicts for an odd point.
__device__ __forceinline__ std::int32_t predicted(const NestedJob& job, const Points& p) {
  const std::int32_t* const at =
      static_cast<const std::int32_t*>(job.base.data) + placeIn(job.base, p[0], p[1], p[2]);
  const std::int64_t step = job.base.step[job.axis];
  return between(bendOf(job.kernel), at[-step], at[0], at[step], at[2 * step]);
}

/// Of an odd point, in the fine lattice.
__device__ __forceinline__ std::int64_t finePlace(const NestedJob& job,
                                                  const Grid& grid,
                                                  const Points& p,
                                                  std::uint32_t odd) {
  const auto fine = [&](unsigned axis) {
    return axis == job.axis ? 2 * std::int64_t{p[axis]} + odd : std::int64_t{p[axis]};
  };
  return placeIn(grid, fine(0), fine(1), fine(2));
}

__global__ void __launch_bounds__(kThreads) differKernel(const __grid_constant__ NestedJob job) {
  const Setup& setup = *job.setup;
  std::int32_t* const out = static_cast<std::int32_t*>(job.difference.data);
  forPoints(
      job.n_odd,
      [&](const Points& p) {
        const std::int32_t x = fixedAt(job.source, finePlace(job, job.source, p, 1), setup);
        return x == kNoValue ? kNoValue : bits::wrapSub(x, predicted(job, p));
      },
      [&](const Points& p, std::int32_t d) { out[placeIn(job.difference, p[0], p[1], p[2])] = d; });
}

/// An even point and the odd one behind it.
struct EvenOdd {
  std::int32_t even, odd;
};

__device__ __forceinline__ void test(const NestedJob& job,
                                     const Setup& setup,
                                     const Points& p,
                                     std::int32_t r) {
  if (fixedAt(job.source, finePlace(job, job.source, p, 1), setup) != kNoValue) {
    const std::uint64_t place = fieldPlace(job.marks.places, p[0], p[1], p[2]);
    if (missesBound(job.marks, place, r, setup)) {
      markOutlier(job.marks.words, place);
    }
  }
}

__global__ void __launch_bounds__(kThreads) mergeKernel(const __grid_constant__ NestedJob job) {
  const Setup& setup = *job.setup;
  if (setup.is_ok == 0) {
    return;
  }
  const bool is_stored = job.result.exists && (!job.result.is_for_tests || setup.is_tested != 0);
  const bool is_tested = job.marks.may_test && setup.is_tested != 0;
  if (!is_stored && !is_tested) {
    return;
  }
  const Scale scale = setup.scale;
  Points n_even = job.n;
  n_even[job.axis] -= job.n_odd[job.axis];
  const auto isOdd = [&](const Points& p) { return p[job.axis] < job.n_odd[job.axis]; };
  forPoints(
      n_even,
      [&](const Points& p) {
        const auto* const base = static_cast<const std::int32_t*>(job.base.data);
        const auto* const difference = static_cast<const std::int32_t*>(job.difference.data);
        EvenOdd r = {base[placeIn(job.base, p[0], p[1], p[2])], 0};
        if (isOdd(p)) {
          r.odd = bits::wrapAdd(predicted(job, p),
                                difference[placeIn(job.difference, p[0], p[1], p[2])]);
        }
        return r;
      },
      [&](const Points& p, const EvenOdd& r) {
        if (is_stored) {
          storeAt(job.result, finePlace(job, job.result, p, 0), r.even, scale);
        }
        if (isOdd(p)) {
          if (is_stored) {
            storeAt(job.result, finePlace(job, job.result, p, 1), r.odd, scale);
          }
          if (is_tested) {
            test(job, setup, p, r.odd);
          }
        }
      });
}

template <class Job>
void launchPoints(const char* name,
                  void (*kernel)(Job),
                  std::uint64_t n,
                  const Job& job,
                  const cuda::Call& call) {
  if (n != 0) {
    call.launch(name, kernel, strideBlocks(n, cuda::multiprocessorCount()), kThreads, 0, job);
  }
}

}  // namespace

void launchPick(const PickJob& job, const cuda::Call& call) {
  launchPoints("interp even points", pickKernel, countOf(job.n), job, call);
}

void launchGhosts(const GhostJob& job, const cuda::Call& call) {
  const auto outer = [&](unsigned axis) { return job.n[axis] + 3 * job.has_axis[axis]; };
  const std::uint64_t n_x =
      job.has_axis[0] != 0 ? std::uint64_t{3} * outer(1) * outer(2) : std::uint64_t{0};
  const std::uint64_t n_y =
      job.has_axis[1] != 0 ? std::uint64_t{3} * job.n[0] * outer(2) : std::uint64_t{0};
  const std::uint64_t n_z =
      job.has_axis[2] != 0 ? std::uint64_t{3} * job.n[0] * job.n[1] : std::uint64_t{0};
  if (countOf(job.n) != 0) {
    call.launch("interp ghosts", ghostKernel,
                strideBlocks(n_x + n_y + n_z, cuda::multiprocessorCount()), kThreads, 0, job, n_x,
                n_y, n_z);
  }
}

void launchDiffer(const NestedJob& job, const cuda::Call& call) {
  launchPoints("interp differences", differKernel, countOf(job.n_odd), job, call);
}

void launchMerge(const NestedJob& job, const cuda::Call& call) {
  launchPoints("interp merge", mergeKernel, countOf(job.n), job, call);
}

}  // namespace fz::interp::device
