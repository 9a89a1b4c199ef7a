#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trust/corpus.h"
#include "trust/trust.h"

/// Calls that are made with every allocation of theirs failing once.
namespace fz::trust {

/// A call whose result is known, made again and again on the same objects.
struct Scenario {
  std::string name;
  /// Makes the objects and gives the call.
  std::function<std::function<Bytes()>()> make;
  /// Goes through the TOML parser, which answers a single failing allocation with a parse error
  /// and ends the process when many fail. The library asks for its memory beforehand, which a test
  /// that fails allocations one by one defeats; so such calls are tested with single failures only.
  bool parses_toml = false;
};

/// Results are copied with memory of the test, which never fails.
Bytes copyOf(const void* data, std::size_t n_bytes);

/// Makes each call with its first allocation failing, its second, and so on until it needs no more:
/// that one alone, and all from there on.
void runScenarios(const std::vector<Scenario>& all, const Settings& settings, Report& report);

}  // namespace fz::trust
