#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "backends/cuda/rtc/kernel_cache.h"
#include "log.h"

namespace fz::cuda::rtc {

namespace {

constexpr std::size_t kMaxFileBytes = 64u << 20;

/// Front of a file; the key follows, then the code.
struct Front {
  char magic[8];
  std::uint64_t key_bytes;
  std::uint64_t code_bytes;
  std::uint64_t code_hash;
};
constexpr char kMagic[8] = {'f', 'z', 'k', 'e', 'r', 'n', '1', '\n'};

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

std::string findFolder() {
  if (const char* own = std::getenv("FZ_CACHE_DIR")) {
    return own;
  }
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') {
    return std::string(xdg) + "/fz";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/fz" : std::string();
}

/// Code that somebody else may have written is not run.
bool isOurs(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

KernelCache::KernelCache() : folder_(findFolder()) {
}

std::string KernelCache::pathOf(std::string_view key) const {
  return fmt::format("{}/{:016x}.fzkernel", folder_, fnv1a(key));
}

std::vector<char> KernelCache::load(std::string_view key) const {
  const std::string path = pathOf(key);
  if (folder_.empty() || !isOurs(path)) {
    return {};
  }
  std::ifstream file(path, std::ios::binary);
  Front front = {};
  if (!file.read(reinterpret_cast<char*>(&front), sizeof(front)) ||
      std::memcmp(front.magic, kMagic, sizeof(kMagic)) != 0 || front.key_bytes != key.size() ||
      front.code_bytes > kMaxFileBytes) {
    return {};
  }
  std::string found_key(key.size(), '\0');
  std::vector<char> code(front.code_bytes);
  if (!file.read(found_key.data(), static_cast<std::streamsize>(found_key.size())) ||
      !file.read(code.data(), static_cast<std::streamsize>(code.size())) || found_key != key ||
      fnv1a({code.data(), code.size()}) != front.code_hash) {
    FZ_LOG(WARN, "%s: damaged, compiled again", path.c_str());
    return {};
  }
  return code;
}

void KernelCache::store(std::string_view key, const std::vector<char>& code) const {
  if (folder_.empty()) {
    return;
  }
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  const std::string path = pathOf(key);
  const std::string draft = fmt::format("{}.{}.tmp", path, getpid());
  Front front = {};
  std::memcpy(front.magic, kMagic, sizeof(kMagic));
  front.key_bytes = key.size();
  front.code_bytes = code.size();
  front.code_hash = fnv1a({code.data(), code.size()});
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&front), sizeof(front));
    file.write(key.data(), static_cast<std::streamsize>(key.size()));
    file.write(code.data(), static_cast<std::streamsize>(code.size()));
    if (!file.flush()) {
      failed = std::make_error_code(std::errc::io_error);
    }
  }
  if (!failed) {
    std::filesystem::permissions(
        draft, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, failed);
    std::filesystem::rename(draft, path, failed);
  }
  if (failed) {
    FZ_LOG(INFO, "%s: kernels are not kept: %s", folder_.c_str(), failed.message().c_str());
    std::filesystem::remove(draft, failed);
  }
}

}  // namespace fz::cuda::rtc
