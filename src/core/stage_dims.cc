#include "fz/stage_dims.h"

#include <algorithm>

#include "core/require.h"

namespace fz {

namespace {

std::array<std::size_t, 3> withoutZeroExtents(const std::array<std::size_t, 3>& dims) {
  return {dims[0], std::max<std::size_t>(dims[1], 1), std::max<std::size_t>(dims[2], 1)};
}

/// The product, or the largest number where it does not fit.
std::size_t saturatingProduct(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? static_cast<std::size_t>(-1) : product;
}

std::size_t countOf(const std::array<std::size_t, 3>& dims) {
  return saturatingProduct(dims[0], saturatingProduct(dims[1], dims[2]));
}

/// An open x becomes as many as n_values leave.
std::array<std::size_t, 3> withX(const std::array<std::size_t, 3>& dims, std::size_t n_values) {
  const std::size_t x = dims[0] == 0 ? n_values / saturatingProduct(dims[1], dims[2]) : dims[0];
  return {x, dims[1], dims[2]};
}

}  // namespace

void StageDims::setOwn(const std::array<std::size_t, 3>& dims) {
  dims_ = withoutZeroExtents(dims);
  own_ = true;
}

void StageDims::setFromPipeline(const std::array<std::size_t, 3>& dims) {
  if (!own_) {
    dims_ = withoutZeroExtents(dims);
  }
}

int StageDims::ndim() const {
  if (dims_[2] > 1) {
    return 3;
  }
  return dims_[1] > 1 ? 2 : 1;
}

std::optional<std::array<std::size_t, 3>> StageDims::fitted(std::size_t n_values) const {
  const std::array<std::size_t, 3> dims = withX(dims_, n_values);
  return countOf(dims) == n_values ? std::optional(dims) : std::nullopt;
}

std::array<std::size_t, 3> StageDims::resolve(std::size_t n_values,
                                              std::string_view stage,
                                              ErrorCode code) const {
  const std::array<std::size_t, 3> dims = withX(dims_, n_values);
  FZ_REQUIRE(countOf(dims) == n_values, code,
             "{}: dims {} x {} x {} hold {} values, but the input has {}", stage, dims[0], dims[1],
             dims[2], countOf(dims), n_values);
  return dims;
}

}  // namespace fz
