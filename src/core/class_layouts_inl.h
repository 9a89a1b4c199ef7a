#pragma once

// The table of layouts as the including file sees them: once in the library, once in its test.

#include <cstdint>

#include "core/class_layouts.h"
#include "generated_public_classes.h"
#include "list/public_stages.h"

namespace fz::detail {
namespace {

using namespace fz::cuda;  // NOLINT(google-build-using-namespace): the scan has bare names

#define FZ_LAYOUT(...) {#__VA_ARGS__, sizeof(__VA_ARGS__), alignof(__VA_ARGS__)},
inline constexpr ClassLayout kClassLayouts[] = {FZ_PUBLIC_CLASSES(FZ_LAYOUT)
                                                    FZ_PUBLIC_STAGES(FZ_LAYOUT)};
#undef FZ_LAYOUT

}  // namespace
}  // namespace fz::detail
