#include "output_io.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <unistd.h>

#include "failure.h"
#include "field_io.h"
#include "mem/host_memory.h"
#include "progress.h"
#include "standard_streams.h"
#include "text_bytes.h"

namespace fz::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPartBytes = std::size_t{8} << 20;  // between two looks at the progress
/// Results above this are decoded straight into the file, so that they take no memory.
constexpr std::size_t kMappedBytes = std::size_t{64} << 20;

/// Calls write(part) on parts of the bytes.
template <class Write>
void byParts(ByteView bytes, Progress* progress, Write write) {
  for (std::size_t at = 0; at < bytes.size(); at += kPartBytes) {
    const ByteView part = bytes.subspan(at, std::min(kPartBytes, bytes.size() - at));
    write(part);
    if (progress != nullptr) {
      progress->add(part.size());
    }
  }
}

void writeAll(std::FILE* stream,
              const std::string& name,
              std::string_view header,
              ByteView bytes,
              Progress* progress) {
  const auto put = [&](const void* data, std::size_t n_bytes) {
    // Nothing to write may be a null pointer, which fwrite() must not get.
    const std::size_t n_written = n_bytes == 0 ? 0 : std::fwrite(data, 1, n_bytes, stream);
    if (n_written != n_bytes || std::fflush(stream) != 0) {
      throw Failure(ExitCode::kIo, fmt::format("cannot write {}: {}; check the free space", name,
                                               std::strerror(errno)));
    }
  };
  put(header.data(), header.size());
  byParts(bytes, progress, [&](ByteView part) { put(part.data(), part.size()); });
}

}  // namespace

bool isReplaceable(const std::string& output) {
  std::error_code ignored;
  const fs::file_status status = fs::status(output, ignored);
  return !isStandard(output) && (!fs::exists(status) || fs::is_regular_file(status));
}

std::string behindLinks(const std::string& output) {
  constexpr int kMaxLinks = 40;  // as many as the system follows
  std::error_code ignored;
  fs::path path = output;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (!fs::is_symlink(fs::symlink_status(path, ignored))) {
      return path.string();
    }
    // An absolute target takes the place of the folder.
    path = path.parent_path() / fs::read_symlink(path, ignored);
  }
  throw Failure(ExitCode::kIo,
                fmt::format("'{}' is a broken link; remove it or choose another -o", output));
}

std::string outputPath(const CommonOptions& options,
                       const std::string& input,
                       const std::string& own_name) {
  if (options.output.empty()) {
    return isStandard(input) ? std::string(kStandardStream) : own_name;
  }
  std::error_code ignored;
  if (isStandard(options.output) || !fs::is_directory(options.output, ignored)) {
    return options.output;
  }
  if (isStandard(input)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-o {} is a folder, and standard input has no name to use in it; "
                              "name a file",
                              options.output));
  }
  return (fs::path(options.output) / fs::path(own_name).filename()).string();
}

void checkOutputCount(const CommonOptions& options) {
  std::error_code ignored;
  if (options.files.size() <= 1 || (!options.output.empty() && !isStandard(options.output) &&
                                    fs::is_directory(options.output, ignored))) {
    return;
  }
  if (!options.output.empty()) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("-o {} is one place for {} inputs; leave -o out or name a folder",
                              options.output, options.files.size()));
  }
  for (const std::string& file : options.files) {
    if (isStandard(file)) {
      throw Failure(ExitCode::kUsage, "'-' must be the only input; run fz once for each");
    }
  }
}

void DistinctOutputs::add(const std::string& output, const std::string& input) {
  if (output.empty() || !isReplaceable(output)) {
    return;
  }
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(output, error), error);
  const auto [at, is_new] = inputs_.emplace(error ? output : real.string(), input);
  if (!is_new && at->second == input) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("two results of '{}' would both become '{}'; name each once",
                              inputName(input), output));
  }
  if (!is_new) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' and '{}' would both become '{}'; run fz once for each, with "
                              "another -o",
                              at->second, input, output));
  }
}

void checkOutput(const std::string& output, const std::string& input, bool force) {
  if (isStandard(output)) {
    if (::isatty(STDOUT_FILENO) != 0) {
      throw Failure(ExitCode::kUsage,
                    "not writing binary data to a terminal; redirect with '>' or use -o FILE");
    }
    return;
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(output, ignored);
  if (fs::is_directory(status)) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' is a folder; choose another -o", output));
  }
  if (!isStandard(input) && fs::equivalent(output, input, ignored)) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("'{}' is the input itself; choose another -o", output));
  }
  behindLinks(output);  // a circle of links is told before the work
  if (fs::is_regular_file(status) && !force) {
    throw Failure(ExitCode::kIo, fmt::format("'{}' exists; use -f to overwrite it", output));
  }
}

void checkJsonOutput(const CommonOptions& options, const std::string& output) {
  if (options.json && isStandard(output)) {
    throw Failure(ExitCode::kUsage,
                  "--json goes to standard output, and so does the result; name a file with -o");
  }
}

void removeInput(const CommonOptions& options, const std::string& input) {
  std::error_code error;
  if (options.remove && !fs::remove(input, error)) {
    throw Failure(ExitCode::kIo,
                  fmt::format("the result is complete, but the input cannot be removed: {}",
                              error ? error.message() : "it is gone already"));
  }
}

std::vector<std::string> filesOf(const CommonOptions& options,
                                 const std::function<bool(const std::string&)>& takes,
                                 std::string_view who) {
  std::vector<std::string> files;
  for (const std::string& input : options.files) {
    std::error_code error;
    if (!options.recursive || !fs::is_directory(input, error)) {
      files.push_back(input);
      continue;
    }
    std::vector<std::string> found;
    std::size_t n_skipped = 0;
    for (auto at = fs::recursive_directory_iterator(
             input, fs::directory_options::skip_permission_denied, error);
         !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) {
        continue;
      }
      if (takes(at->path().string())) {
        found.push_back(at->path().string());
      } else {
        ++n_skipped;
      }
    }
    if (error) {
      throw Failure(ExitCode::kIo,
                    fmt::format("cannot read the folder '{}': {}", input, error.message()));
    }
    if (n_skipped > 0 && !options.quiet) {
      say("fz: {}: skipped {} {}; {} are left alone\n", input, n_skipped,
          n_skipped == 1 ? "file" : "files", who);
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

void writeOutput(const std::string& output,
                 Writing writing,
                 std::string_view header,
                 ByteView bytes,
                 Progress* progress,
                 const std::string& like) {
  if (isStandard(output)) {
    writeAll(stdout, "standard output", header, bytes, progress);
    return;
  }
  if (!isReplaceable(output)) {
    // A device or a pipe must not be replaced by a file.
    std::FILE* stream = std::fopen(output.c_str(), "wb");
    if (stream == nullptr) {
      throw Failure(ExitCode::kIo, fmt::format("cannot open '{}': {}; check the permissions",
                                               output, std::strerror(errno)));
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(stream, &std::fclose);
    writeAll(stream, fmt::format("'{}'", output), header, bytes, progress);
    return;
  }
  AtomicFile file(behindLinks(output));
  file.keepAttributesOf(like);
  file.write(bytesOf(header));
  byParts(bytes, progress, [&](ByteView part) { file.write(part); });
  if (!writing.syncs) {
    file.skipSync();
  }
  file.commit(writing.existing);
}

Result::Result(std::string output, Writing writing, std::string header, std::string like)
    : output_(std::move(output)),
      writing_(writing),
      header_(std::move(header)),
      like_(std::move(like)) {
}

bool Result::staysInMemory(std::size_t n_bytes) const {
  return n_bytes <= kMappedBytes || !isReplaceable(output_);
}

void* Result::provide(std::size_t n_bytes) {
  if (staysInMemory(n_bytes)) {
    memory_.reset(allocateOnHost(n_bytes));
    if (memory_ == nullptr) {
      throw std::bad_alloc();
    }
    bytes_ = {static_cast<std::uint8_t*>(memory_.get()), n_bytes};
    return memory_.get();
  }
  if (file_ == nullptr) {
    file_ = std::make_unique<AtomicFile>(behindLinks(output_));
    file_->keepAttributesOf(like_);
    file_->write(bytesOf(header_));
  }
  bytes_ = file_->map(n_bytes);
  return bytes_.data();
}

void Result::finish(Progress* progress) {
  if (file_ == nullptr) {
    writeOutput(output_, writing_, header_, bytes_, progress, like_);
    return;
  }
  if (!writing_.syncs) {
    file_->skipSync();
  }
  file_->commit(writing_.existing);
  bytes_ = {};
}

}  // namespace fz::cli
