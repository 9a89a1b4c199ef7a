#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

/// The promises of docs/reliability.md as programs: each goal counts what it tried and what failed.
namespace fz::trust {

struct Settings {
  bool release = false;     ///< the size of a release instead of that of a CI run
  std::uint64_t count = 0;  ///< trials; 0: as the goal and the size say
  std::uint64_t first = 0;  ///< trials before this one are left out, to go on with a long run
  std::uint64_t seed = 1;
  unsigned n_jobs = 2;  ///< processes, where a goal can use them; 0: none but this one
  bool update = false;  ///< writes committed hashes anew instead of comparing

  /// Trials of this run, given those of both sizes.
  std::uint64_t trials(std::uint64_t of_ci, std::uint64_t of_release) const {
    return count != 0 ? count : release ? of_release : of_ci;
  }
};

/// What a goal found. Passed on by value between processes as text.
class Report {
 public:
  void add(const std::string& what, std::uint64_t n = 1) { counts_[what] += n; }
  void atLeast(const std::string& what, std::uint64_t n) {
    std::uint64_t& highest = counts_[what];
    highest = n > highest ? n : highest;
  }
  /// A broken promise; the text says how to see it again.
  void fail(const std::string& text) { failures_.push_back(text); }
  void check(bool holds, const std::string& text) {
    if (!holds) {
      fail(text);
    }
  }

  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::map<std::string, std::uint64_t> counts_;
  std::vector<std::string> failures_;
};

struct Goal {
  std::string id;     ///< "R1"
  std::string claim;  ///< what is true when it passes
  std::function<void(const Settings&, Report&)> run;
};

/// Every goal of this program, in order of registration.
std::vector<Goal>& goals();

struct RegisterGoal {
  RegisterGoal(std::string id,
               std::string claim,
               std::function<void(const Settings&, Report&)> run) {
    goals().push_back({std::move(id), std::move(claim), std::move(run)});
  }
};

}  // namespace fz::trust
