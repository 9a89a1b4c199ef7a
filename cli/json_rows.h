#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"

namespace fz::cli {

/// What --json prints: an array with one object for each file or result, whatever came of it. Every
/// object begins with command, file, code (the exit code) and message (null unless it failed).
class JsonRows {
 public:
  JsonRows(std::string command, bool is_on) : command_(std::move(command)), is_on_(is_on) {}

  bool isOn() const { return is_on_; }
  /// `object` is the text of a JSON object with what else is known; its own file and message do not
  /// count.
  void add(const std::string& file, const std::string& object);
  void addFailure(const std::string& file,
                  const Failure& failure,
                  const std::string& object = "{}");
  /// Nothing unless --json was given.
  void print() const;

 private:
  void addRow(const std::string& file, ExitCode code, const char* message, const std::string& rest);

  std::string command_;
  bool is_on_;
  std::vector<std::string> rows_;
};

/// --json; the results that go to standard output otherwise must have a file then.
inline constexpr const char* kJsonHelp = "for machines: an array of objects, failures included";

}  // namespace fz::cli
