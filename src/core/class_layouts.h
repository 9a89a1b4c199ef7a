#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fz::detail {

/// A class of the installed headers as the library's own sources see it.
struct ClassLayout {
  std::string_view name;
  std::size_t size_bytes;
  std::size_t alignment_bytes;

  friend bool operator==(const ClassLayout&, const ClassLayout&) = default;
};

/// Every public class. A program that sees another layout than the library overruns its heap, so a
/// test compares these with its own view.
std::span<const ClassLayout> classLayouts();

}  // namespace fz::detail
