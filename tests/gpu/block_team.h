#pragma once

#include <cstdint>
#include <vector>

namespace fz::test {

/// What a team makes of `values`: in every round each value is replaced by the largest of all minus
/// its mirror image. Needs all three functions of a team, again and again.
std::vector<std::uint32_t> mirrorByBlock(const std::vector<std::uint32_t>& values,
                                         unsigned n_rounds,
                                         unsigned n_threads);
std::vector<std::uint32_t> mirrorSerially(const std::vector<std::uint32_t>& values,
                                          unsigned n_rounds);

}  // namespace fz::test
