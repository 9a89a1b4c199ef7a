#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Whole lives of pipelines on a device, from their making to their end, with a call of CUDA that
/// fails somewhere in between.
namespace fz::test {

/// What a life did and what was wrong with it.
struct LifeReport {
  std::uint64_t n_calls = 0;          ///< of those that can fail, where none does
  std::uint64_t n_typed_errors = 0;   ///< lives in which a call threw Error(kOutOfMemory)
  std::uint64_t n_did_without = 0;    ///< lives that no call noticed
  std::vector<std::string> failures;  ///< broken promises
};

/// Makes steps; one that throws Error(kOutOfMemory) is made again with all memory there.
class LifeSteps {
 public:
  /// Throws std::runtime_error when the second try fails too.
  void step(const char* name, const std::function<void()>& call);

  std::vector<std::uint8_t>& result() { return result_; }
  std::vector<std::string>& failures() { return failures_; }
  bool hadError() const { return had_error_; }

 private:
  void requireNoErrorLeft(const char* name);

  std::vector<std::uint8_t> result_;  // everything that the life put out
  std::vector<std::string> failures_;
  bool had_error_ = false;
};

struct Life {
  std::string name;
  std::function<void(LifeSteps& steps)> live;
};

/// Every preset and way of calling: with and without planned memory, as a graph, without waiting,
/// profiled, from host memory, with the lossless fallback, without a memory pool.
std::vector<Life> allLives();
/// A few of them, for a short test.
std::vector<Life> fewLives();

/// Lives it once undisturbed and once for each of its calls that can fail (up to `most`), with that
/// call failing once or, `and_all_later`, for good until a call of the library has thrown. Each
/// must give the same bytes, leave no CUDA error and no block, stream, event, pool or graph behind.
LifeReport liveWithFailures(const Life& life, bool and_all_later, std::uint64_t most);

}  // namespace fz::test
