#include "fz/axes.h"

#include "core/require.h"

namespace fz {

Axes Axes::fromText(std::string_view text, std::string_view stage) {
  Axes axes{.x = false, .y = false, .z = false};
  for (const char letter : text) {
    bool* const axis = letter == 'x'   ? &axes.x
                       : letter == 'y' ? &axes.y
                       : letter == 'z' ? &axes.z
                                       : nullptr;
    FZ_REQUIRE_ARG(axis != nullptr && !*axis,
                   "{}: axes must be letters of \"xyz\", each at most once, not \"{}\"", stage,
                   text);
    *axis = true;
  }
  return axes;
}

std::string Axes::text() const {
  std::string text;
  text += x ? "x" : "";
  text += y ? "y" : "";
  text += z ? "z" : "";
  return text;
}

}  // namespace fz
