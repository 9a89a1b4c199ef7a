#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fz/backend.h"
#include "support/fields.h"
#include "trust/corpus.h"
#include "trust/trust.h"

/// Calls of the host interface of all kinds, each of which must give what it gives alone.
namespace fz::trust {

/// A field, its frame and what that decodes to, computed alone on the CPU.
struct Expected {
  std::string preset;
  test::Field field;
  Bytes frame;
  Bytes decoded;
};

/// Every preset, for both types.
std::vector<Expected> expectations();

/// Compresses and decodes; false: not as expected.
bool roundTrip(const Expected& e, Backend backend, std::size_t n_threads);

/// Threads that make mixed calls, all at once.
void mixedCalls(const std::vector<Expected>& all,
                Backend backend,
                unsigned n_threads,
                std::uint64_t n_calls_each,
                std::uint64_t seed,
                Report& report);

}  // namespace fz::trust
