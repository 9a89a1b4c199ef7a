#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "format/file_io.h"
#include "fz/span.h"
#include "options.h"

namespace fz::cli {

inline constexpr std::string_view kArchiveSuffix = ".fzm";

class Progress;

/// Where -o, or the lack of it, sends the result for `input`. `own_name` is the name that the
/// result has when nothing is said.
std::string outputPath(const CommonOptions& options,
                       const std::string& input,
                       const std::string& own_name);
/// Through links to the file behind them, which need not exist yet, so that a link stays one.
/// Throws Failure(kIo) for a circle.
std::string behindLinks(const std::string& output);
/// A name that a file can be renamed to: absent, or a regular file.
bool isReplaceable(const std::string& output);
/// Refuses several inputs for one -o file or for standard output.
void checkOutputCount(const CommonOptions& options);
/// The names that one run will write. -f allows to replace what was there before, never what the
/// same run wrote.
class DistinctOutputs {
 public:
  /// Throws Failure(kUsage) when the file has been added before. An empty name counts as none.
  void add(const std::string& output, const std::string& input);

 private:
  std::map<std::string, std::string> inputs_;  ///< by the real path of the result
};
/// Refuses terminals, folders, existing files without -f, and the input itself.
void checkOutput(const std::string& output, const std::string& input, bool force);
/// Without -f a file that appears while the work goes on is kept, and the result an error.
constexpr Existing existingWith(bool force) {
  return force ? Existing::kReplace : Existing::kKeep;
}
/// How a file comes to its name.
struct Writing {
  Existing existing = Existing::kKeep;
  bool syncs = true;

  Writing(Existing what, bool waits = true)  // NOLINT(google-explicit-constructor)
      : existing(what), syncs(waits) {}
};
/// As -f, --no-sync and --rm say.
inline Writing writingWith(const CommonOptions& options) {
  return {existingWith(options.force), !options.no_sync || options.remove};
}
/// For --json, whose rows go to standard output. Throws Failure(kUsage).
void checkJsonOutput(const CommonOptions& options, const std::string& output);
/// For --rm, after the result is complete. Throws Failure(kIo).
void removeInput(const CommonOptions& options, const std::string& input);
/// For -r: the files of the folders among the inputs that `takes` accepts, in the order of their
/// names; other files count in a note on standard error, which says `who` they are.
std::vector<std::string> filesOf(const CommonOptions& options,
                                 const std::function<bool(const std::string&)>& takes,
                                 std::string_view who);

/// To standard output for "-"; else the file is complete under its name, or unchanged. The parts
/// follow each other. A file gets permissions and time of the file `like`. Throws Failure(kIo),
/// Error(kIo).
void writeOutput(const std::string& output,
                 Writing writing,
                 std::string_view header,
                 ByteView bytes,
                 Progress* progress = nullptr,
                 const std::string& like = {});

/// A result that is made in memory and becomes a file: large ones are the file from the start, so
/// that they take no memory that the system could not use otherwise.
class Result {
 public:
  /// `header` comes before the bytes.
  Result(std::string output, Writing writing, std::string header, std::string like = {});

  /// Memory for n_bytes, for decompressInto(); what it gave before is not used any more.
  void* provide(std::size_t n_bytes);
  ByteView bytes() const { return bytes_; }
  /// Whether a result of that length is held in memory rather than written in place.
  bool staysInMemory(std::size_t n_bytes) const;
  bool isMapped() const { return file_ != nullptr; }
  /// As writeOutput(). bytes() is empty afterwards.
  void finish(Progress* progress = nullptr);

 private:
  std::string output_;
  Writing writing_;
  std::string header_;
  std::string like_;
  std::unique_ptr<void, void (*)(void*)> memory_{nullptr, &std::free};
  std::unique_ptr<AtomicFile> file_;
  MutableByteView bytes_;
};

}  // namespace fz::cli
