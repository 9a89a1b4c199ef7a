#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "trust/corpus.h"

namespace fz::trust {

struct Mutant {
  Bytes bytes;
  std::size_t seed_index = 0;
  bool is_repaired = false;  ///< sizes and checksums fit again
  bool is_changed = true;    ///< differs from the seed
};

/// The mutant that belongs to this generator state: one to three changes that know the layout of
/// a frame, half of the time followed by a repair of sizes and checksums.
Mutant makeMutant(const std::vector<Seed>& seeds, std::mt19937_64& rng);

}  // namespace fz::trust
