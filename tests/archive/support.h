#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "archive/chunk_grid.h"
#include "fz/archive.h"

namespace fz::test {

/// Bytes in memory as a sink; can be told to fail.
class MemorySink : public ByteSink {
 public:
  void write(ByteView bytes) override {
    if (bytes_.size() + bytes.size() > n_most) {
      throw Error(ErrorCode::kIo, "full");
    }
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  std::size_t n_most = SIZE_MAX;

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Smooth along all axes, and different everywhere.
inline std::vector<float> waves(const AxisValues& extents) {
  std::vector<float> values(valueCount(extents));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t rest = i;
    double sum = 0.0;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      sum += std::sin(0.05 * static_cast<double>((axis + 1) * (rest % extents[axis])));
      rest /= extents[axis];
    }
    values[i] = static_cast<float>(sum);
  }
  return values;
}

inline ByteView bytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float)};
}

inline ArchiveOptions optionsWith(const AxisValues& extents,
                                  const AxisValues& chunk,
                                  double bound = 1e-3) {
  ArchiveOptions options;
  options.extents = extents;
  options.chunk = chunk;
  options.compress.error_bound = bound;
  options.compress.mode = ErrorBoundMode::ABS;
  options.compress.threads = 1;
  options.compress.backend = Backend::CPU;
  return options;
}

inline std::vector<std::uint8_t> archiveOf(const std::vector<float>& values,
                                           const ArchiveOptions& options) {
  MemorySink sink;
  ArchiveWriter writer(DataType::FLOAT32, options, sink);
  writer.append(bytesOf(values));
  writer.finish();
  return sink.bytes();
}

inline Box wholeOf(const AxisValues& extents) {
  return {AxisValues(extents.size(), 0), extents};
}

inline DecompressOptions onCpu() {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = 1;
  return options;
}

inline std::vector<float> readBox(const ArchiveReader& reader, const Box& box) {
  std::vector<float> values(valueCount(box.extents));
  reader.read(box, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(float)},
              onCpu());
  return values;
}

/// The values of a box, picked from the whole array one by one.
inline std::vector<float> pick(const std::vector<float>& values,
                               const AxisValues& extents,
                               const Box& box) {
  std::vector<float> picked;
  const std::uint64_t n = valueCount(box.extents);
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t rest = i;
    std::uint64_t index = 0;
    std::uint64_t step = 1;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      index += (box.origin[axis] + rest % box.extents[axis]) * step;
      rest /= box.extents[axis];
      step *= extents[axis];
    }
    picked.push_back(values[index]);
  }
  return picked;
}

inline double largestError(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

}  // namespace fz::test
