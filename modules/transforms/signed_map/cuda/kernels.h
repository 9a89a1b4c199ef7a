#pragma once

#include <cstddef>

#include "transforms/signed_map/signed_map_stage.h"

namespace fz::signed_map {

/// Map values of value_bytes bytes each. Enqueue only; throw Error(kCuda) when the launch is
/// refused.
void launchEncode(Kind kind, std::size_t value_bytes, const cuda::Call& call);
void launchDecode(Kind kind, std::size_t value_bytes, const cuda::Call& call);

}  // namespace fz::signed_map
