#pragma once

namespace fz::group {

/// Arguments of an op that needs none.
struct alignas(16) NoArgs {};

}  // namespace fz::group
