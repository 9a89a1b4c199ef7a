#include "report/spectrum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "report/fft.h"

namespace fz::report {

namespace {

/// Longest part of an axis for fields of one, two and three axes: bounds time and memory.
constexpr std::array<std::size_t, 3> kMaxExtent = {4096, 512, 128};
constexpr std::size_t kMinExtent = 8;
constexpr std::size_t kMaxSegments = 256;

using Extents = std::array<std::size_t, 3>;

/// The part of the field that is transformed at a time.
struct Block {
  Extents start;
  Extents extents;
};

/// Values of the block and where they stand.
struct Part {
  std::vector<double> original;
  std::vector<double> decoded;
  std::vector<bool> is_valid;
};

Part readPart(const FieldView& original,
              const FieldView& decoded,
              const Summary& summary,
              const Block& block) {
  Part part;
  // A common scale keeps squares of large and small doubles in range; only ratios are shown.
  int exponent = 0;
  std::frexp(std::max(std::fabs(summary.original.min), std::fabs(summary.original.max)), &exponent);
  for (std::size_t z = 0; z < block.extents[2]; ++z) {
    for (std::size_t y = 0; y < block.extents[1]; ++y) {
      const std::size_t row =
          ((block.start[2] + z) * original.dims[1] + block.start[1] + y) * original.dims[0] +
          block.start[0];
      for (std::size_t x = 0; x < block.extents[0]; ++x) {
        const double value = original.at(row + x);
        const double other = decoded.at(row + x);
        const bool is_valid =
            contentOf(value, summary.fill) == Content::kValue && std::isfinite(other);
        part.is_valid.push_back(is_valid);
        part.original.push_back(is_valid ? std::ldexp(value, -exponent) : 0.0);
        part.decoded.push_back(is_valid ? std::ldexp(other, -exponent) : 0.0);
      }
    }
  }
  return part;
}

double window(std::size_t i, std::size_t n) {
  if (n == 1) {
    return 1.0;
  }
  return 0.5 -
         0.5 * std::cos(2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
}

std::vector<Complex> transformed(const std::vector<double>& values,
                                 const std::vector<bool>& is_valid,
                                 const Extents& extents) {
  double sum = 0.0;
  std::size_t n_valid = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += is_valid[i] ? values[i] : 0.0;
    n_valid += is_valid[i] ? 1 : 0;
  }
  const double mean = n_valid > 0 ? sum / static_cast<double>(n_valid) : 0.0;
  std::vector<Complex> work(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t x = i % extents[0];
    const std::size_t y = i / extents[0] % extents[1];
    const std::size_t z = i / extents[0] / extents[1];
    const double weight = window(x, extents[0]) * window(y, extents[1]) * window(z, extents[2]);
    work[i] = is_valid[i] ? (values[i] - mean) * weight : 0.0;
  }
  transform(work, extents);
  return work;
}

/// Adds the mean power of every shell to `shells`; returns the sum over all modes.
double addShells(const std::vector<Complex>& modes,
                 const Extents& extents,
                 std::vector<double>& shells) {
  const std::size_t longest = *std::max_element(extents.begin(), extents.end());
  std::vector<double> sums(shells.size(), 0.0);
  std::vector<std::size_t> counts(shells.size(), 0);
  double total = 0.0;
  const auto frequency = [](std::size_t i, std::size_t n) {
    return static_cast<double>(std::min(i, n - i)) / static_cast<double>(n);
  };
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const double power = std::norm(modes[i]);
    total += power;
    const double fx = frequency(i % extents[0], extents[0]);
    const double fy = frequency(i / extents[0] % extents[1], extents[1]);
    const double fz = frequency(i / extents[0] / extents[1], extents[2]);
    const double radius = std::sqrt(fx * fx + fy * fy + fz * fz);
    const auto shell =
        static_cast<std::size_t>(std::floor(radius * static_cast<double>(longest) + 0.5));
    // The mean has no frequency, and the corners beyond 1/2 are not whole shells.
    if (shell >= 1 && shell <= shells.size()) {
      sums[shell - 1] += power;
      ++counts[shell - 1];
    }
  }
  for (std::size_t k = 0; k < shells.size(); ++k) {
    shells[k] += counts[k] > 0 ? sums[k] / static_cast<double>(counts[k]) : 0.0;
  }
  return total;
}

/// One block for grids; for a series segments that overlap by half, or fewer, evenly spread.
std::vector<Block> planBlocks(const FieldView& field, Spectrum& spectrum) {
  Extents& extents = spectrum.extents;
  const auto n_axes = static_cast<std::size_t>(
      std::count_if(field.dims.begin(), field.dims.end(), [](auto n) { return n >= kMinExtent; }));
  for (std::size_t axis = 0; axis < 3 && n_axes > 0; ++axis) {
    const bool is_used = field.dims[axis] >= kMinExtent;
    extents[axis] =
        is_used ? std::min(std::bit_floor(field.dims[axis]), kMaxExtent[n_axes - 1]) : 1;
    spectrum.start[axis] = (field.dims[axis] - extents[axis]) / 2;
  }
  spectrum.ndim = static_cast<int>(n_axes);
  if (n_axes != 1) {
    return {{spectrum.start, extents}};
  }
  const auto axis =
      static_cast<std::size_t>(std::max_element(extents.begin(), extents.end()) - extents.begin());
  const std::size_t room = field.dims[axis] - extents[axis];
  const std::size_t n_whole = room / (extents[axis] / 2) + 1;
  const std::size_t n_segments = std::min(n_whole, kMaxSegments);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < n_segments; ++i) {
    Block block{spectrum.start, extents};
    block.start[axis] =
        n_whole <= kMaxSegments ? i * (extents[axis] / 2) : room / (n_segments - 1) * i;
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

Spectrum measureSpectrum(const FieldView& original,
                         const FieldView& decoded,
                         const Summary& summary) {
  Spectrum spectrum;
  if (summary.n_valid == 0 || summary.original.deviation == 0.0) {
    return spectrum;
  }
  const std::vector<Block> blocks = planBlocks(original, spectrum);
  if (spectrum.ndim == 0) {
    return spectrum;
  }
  spectrum.n_segments = blocks.size();
  const std::size_t longest = *std::max_element(spectrum.extents.begin(), spectrum.extents.end());
  for (std::vector<double>* shells : {&spectrum.original, &spectrum.decoded, &spectrum.error}) {
    shells->assign(longest / 2, 0.0);
  }
  double total = 0.0;
  for (const Block& block : blocks) {
    Part part = readPart(original, decoded, summary, block);
    spectrum.n_missing +=
        static_cast<std::size_t>(std::count(part.is_valid.begin(), part.is_valid.end(), false));
    total += addShells(transformed(part.original, part.is_valid, block.extents), block.extents,
                       spectrum.original);
    addShells(transformed(part.decoded, part.is_valid, block.extents), block.extents,
              spectrum.decoded);
    for (std::size_t i = 0; i < part.original.size(); ++i) {
      part.original[i] -= part.decoded[i];
    }
    addShells(transformed(part.original, part.is_valid, block.extents), block.extents,
              spectrum.error);
  }
  if (!(total > 0.0)) {
    spectrum.ndim = 0;
    return spectrum;
  }
  for (std::size_t k = 0; k < longest / 2; ++k) {
    spectrum.frequency.push_back(static_cast<double>(k + 1) / static_cast<double>(longest));
    for (std::vector<double>* shells : {&spectrum.original, &spectrum.decoded, &spectrum.error}) {
      (*shells)[k] /= total;
    }
  }
  return spectrum;
}

}  // namespace fz::report
