#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fz::cuda::rtc {

/// Machine code kept on disk between processes: $FZ_CACHE_DIR, else $XDG_CACHE_HOME/fz, else
/// ~/.cache/fz; FZ_CACHE_DIR set and empty means none. A file holds its key and a checksum, so a
/// damaged or foreign file is as good as none. Failures are not errors: the code is compiled again.
class KernelCache {
 public:
  KernelCache();

  /// Empty when there is none.
  std::vector<char> load(std::string_view key) const;
  /// Complete under its final name or not at all.
  void store(std::string_view key, const std::vector<char>& code) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string pathOf(std::string_view key) const;

  std::string folder_;  // empty: no cache
};

}  // namespace fz::cuda::rtc
