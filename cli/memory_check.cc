#include "memory_check.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <sys/resource.h>
#include <unistd.h>

#include "failure.h"
#include "progress.h"

namespace fz::cli {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// A number at the start of a file of the system; none there means no limit.
std::uint64_t numberIn(const char* path) {
  std::ifstream file(path);
  std::string text;
  std::uint64_t value = 0;
  file >> text;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() ? value : kNoLimit;
}

}  // namespace

std::uint64_t usableMemoryBytes() {
  const long n_pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  std::uint64_t n_bytes = n_pages > 0 && page_bytes > 0 ? static_cast<std::uint64_t>(n_pages) *
                                                              static_cast<std::uint64_t>(page_bytes)
                                                        : kNoLimit;
  n_bytes = std::min(n_bytes, numberIn("/sys/fs/cgroup/memory.max"));
  n_bytes = std::min(n_bytes, numberIn("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  rlimit addresses = {};
  if (::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
    n_bytes = std::min<std::uint64_t>(n_bytes, addresses.rlim_cur);
  }
  return n_bytes;
}

void checkMemory(const MemoryNeed& need, std::uint64_t limit_bytes) {
  const auto text = [](std::uint64_t n) { return bytesText(static_cast<double>(n)); };
  if (limit_bytes != 0) {
    if (need.n_bytes > limit_bytes) {
      throw Failure(ExitCode::kMemory,
                    fmt::format("{} needs about {} of memory, --max-memory allows {}; raise it, or "
                                "compress in chunks (--chunk 16M)",
                                need.what, text(need.n_bytes), text(limit_bytes)));
    }
    return;
  }
  const std::uint64_t usable = usableMemoryBytes();
  if (need.n_bytes > usable) {
    throw Failure(
        ExitCode::kMemory,
        fmt::format(
            "{} needs about {} of memory, this machine has {}; compress in chunks (--chunk 64M), or set --max-memory to try anyway",
            need.what, text(need.n_bytes), text(usable)));
  }
}

DecodeLimits limitsBesideResult(const DecodeLimits& limits, std::uint64_t n_result_bytes) {
  DecodeLimits left = limits;
  if (limits.max_memory_bytes == 0) {
    return left;
  }
  if (n_result_bytes >= limits.max_memory_bytes) {
    throw Failure(ExitCode::kMemory,
                  fmt::format("the result takes {} of memory, --max-memory allows {}; if you trust "
                              "the archive, raise it",
                              bytesText(static_cast<double>(n_result_bytes)),
                              bytesText(static_cast<double>(limits.max_memory_bytes))));
  }
  left.max_memory_bytes -= n_result_bytes;
  return left;
}

}  // namespace fz::cli
