#pragma once

#include <string>
#include <utility>

#include "fz/error.h"

namespace fz {

/// More data in one call than a stage can take, because its stream counts in so many bits. The same
/// data in several calls, or through stages without this limit, work. Its code is kBadSize.
class SizeLimitError : public Error {
 public:
  SizeLimitError(std::string stage, const std::string& message)
      : Error(ErrorCode::kBadSize, message), stage_(std::move(stage)) {}
  /// Name of the stage, as in configuration files.
  const std::string& stage() const noexcept { return stage_; }

 private:
  std::string stage_;
};

}  // namespace fz
