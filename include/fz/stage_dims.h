#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "fz/error.h"

namespace fz {

/// Dims of a stage, x fastest. What the user sets on the stage wins over what the pipeline has.
/// x == 0 means "as many as the input holds"; y and z of 0 mean 1.
class StageDims {
 public:
  void setOwn(const std::array<std::size_t, 3>& dims);
  /// Ignored when own dims were set.
  void setFromPipeline(const std::array<std::size_t, 3>& dims);

  const std::array<std::size_t, 3>& get() const { return dims_; }
  /// Whether they were set on the stage itself.
  bool areOwn() const { return own_; }
  std::optional<std::array<std::size_t, 3>> own() const {
    return own_ ? std::optional(dims_) : std::nullopt;
  }
  /// 1, 2 or 3: the last axis with more than one value counts.
  int ndim() const;

  /// The dims with x filled in, or nothing when they do not hold exactly n_values.
  std::optional<std::array<std::size_t, 3>> fitted(std::size_t n_values) const;

  /// The same, but throws Error when they do not: kBadSize, or `code` where the count comes from
  /// a stream. `stage` begins the message.
  std::array<std::size_t, 3> resolve(std::size_t n_values,
                                     std::string_view stage,
                                     ErrorCode code = ErrorCode::kBadSize) const;

 private:
  std::array<std::size_t, 3> dims_ = {0, 1, 1};
  bool own_ = false;
};

}  // namespace fz
