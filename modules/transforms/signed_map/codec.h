#pragma once

#include "shared/bits.h"
#include "shared/host_device.h"

/// The two maps, value by value, between a signed integer and the unsigned one of its width.
namespace fz::signed_map {

struct ZigzagMap {
  template <class S>
  static FZ_HD auto encode(S value) {
    return bits::zigzag(value);
  }
  template <class U>
  static FZ_HD auto decode(U code) {
    return bits::unzigzag(code);
  }
};

struct NegabinaryMap {
  template <class S>
  static FZ_HD auto encode(S value) {
    return bits::negabinary(value);
  }
  template <class U>
  static FZ_HD auto decode(U code) {
    return bits::unnegabinary(code);
  }
};

}  // namespace fz::signed_map
