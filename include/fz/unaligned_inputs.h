#pragma once

#include <cstddef>

namespace fz {

/// A stage whose kernels read some of its inputs from any address. A frame's segments stand back to
/// back; those of other stages are copied to aligned memory before they are decoded, by a launch
/// each.
class UnalignedInputs {
 public:
  /// In the current direction.
  virtual bool readsUnaligned(std::size_t input) const = 0;

 protected:
  UnalignedInputs() = default;
  UnalignedInputs(const UnalignedInputs&) = default;
  UnalignedInputs& operator=(const UnalignedInputs&) = default;
  ~UnalignedInputs() = default;
};

}  // namespace fz
