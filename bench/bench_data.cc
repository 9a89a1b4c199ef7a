#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench_common.h"

namespace fz::bench {

namespace {

/// Small and fast generator; the benchmark's data must be the same in every run.
class Random {
 public:
  double uniform() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 11) / 9007199254740992.0 - 0.5;
  }

 private:
  std::uint64_t state_ = 1;
};

template <class T>
void fillWalk(Bytes& bytes) {
  Random random;
  double walk = 0;
  T* values = reinterpret_cast<T*>(bytes.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    walk = 0.98 * walk + 10 * random.uniform();
    values[i] = static_cast<T>(std::is_floating_point_v<T> ? walk : std::floor(walk + 0.5));
  }
}

}  // namespace

double memcpyRate(std::size_t n_bytes, int runs) {
  const Bytes from(n_bytes, 1);
  Bytes to(n_bytes, 2);
  const double seconds = medianSeconds(runs, [&] { std::memcpy(to.data(), from.data(), n_bytes); });
  return static_cast<double>(n_bytes) / seconds * 1e-9;
}

Bytes makeValues(DataType type, std::size_t n_bytes) {
  Bytes bytes(n_bytes);
  switch (type) {
    case DataType::FLOAT32:
      fillWalk<float>(bytes);
      break;
    case DataType::FLOAT64:
      fillWalk<double>(bytes);
      break;
    case DataType::INT8:
    case DataType::UINT8:
      fillWalk<std::int8_t>(bytes);
      break;
    case DataType::INT16:
    case DataType::UINT16:
      fillWalk<std::int16_t>(bytes);
      break;
    case DataType::INT64:
    case DataType::UINT64:
      fillWalk<std::int64_t>(bytes);
      break;
    default:
      fillWalk<std::int32_t>(bytes);
      break;
  }
  return bytes;
}

Bytes makeField(DataType type, const std::array<std::size_t, 3>& dims) {
  const std::size_t n = dims[0] * dims[1] * dims[2];
  Bytes bytes(n * getDataTypeSize(type));
  Random random;
  std::size_t i = 0;
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      const double row = 20 * std::cos(0.013 * static_cast<double>(y)) +
                         8 * std::sin(0.05 * static_cast<double>(z));
      for (std::size_t x = 0; x < dims[0]; ++x, ++i) {
        const double v = 50 * std::sin(0.007 * static_cast<double>(x)) + row + random.uniform();
        if (type == DataType::FLOAT32) {
          reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(v);
        } else {
          reinterpret_cast<double*>(bytes.data())[i] = v;
        }
      }
    }
  }
  return bytes;
}

}  // namespace fz::bench
