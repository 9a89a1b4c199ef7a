#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "fz/error.h"

namespace fz {

/// At most N values, held in place: what a call returns without touching the heap.
template <class T, std::size_t N>
class SmallList {
 public:
  SmallList() = default;
  /// Throws Error(kInternal) for more than N values.
  SmallList(std::initializer_list<T> values) {  // NOLINT(google-explicit-constructor)
    for (const T& value : values) {
      push_back(value);
    }
  }

  // NOLINTBEGIN(readability-identifier-naming): as in the standard's containers
  /// Throws Error(kInternal) when N values are held already.
  void push_back(const T& value) {
    if (size_ == N) {
      throw Error(ErrorCode::kInternal, "SmallList: no room for another value");
    }
    values_[size_++] = value;
  }
  // NOLINTEND(readability-identifier-naming)

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return values_.data(); }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  /// i must be below size().
  T& operator[](std::size_t i) { return values_[i]; }
  const T& operator[](std::size_t i) const { return values_[i]; }

 private:
  std::array<T, N> values_ = {};
  std::size_t size_ = 0;
};

}  // namespace fz
