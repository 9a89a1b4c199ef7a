#include "handover/key_store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <unistd.h>
#include <utility>

#include "core/require.h"
#include "handover/zip_reader.h"
#include "handover/zip_writer.h"

namespace fz::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxListed = 8;

class FolderReader : public KeyReader {
 public:
  explicit FolderReader(std::string path) : path_(std::move(path)) {
    std::error_code error;
    FZ_REQUIRE(fs::is_directory(path_, error), ErrorCode::kIo, "cannot open '{}': {}", path_,
               fs::exists(path_, error) ? "it is no folder" : std::strerror(ENOENT));
  }

  std::optional<std::vector<std::uint8_t>> read(const std::string& key,
                                                std::uint64_t max_bytes) const override {
    const std::string file = path_ + "/" + key;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      return std::nullopt;
    }
    std::uint64_t n_bytes = 0;
    return readFileFront(file, max_bytes, &n_bytes);
  }

  std::optional<std::uint64_t> sizeOf(const std::string& key) const override {
    std::error_code error;
    const std::uint64_t n_bytes = fs::file_size(path_ + "/" + key, error);
    return error ? std::nullopt : std::optional(n_bytes);
  }

  std::vector<std::string> foldersWith(const std::string& file) const override {
    std::vector<std::string> names;
    std::error_code error;
    for (auto at = fs::directory_iterator(path_, error);
         !error && at != fs::directory_iterator() && names.size() < kMaxListed;
         at.increment(error)) {
      std::error_code ignored;
      if (fs::exists(at->path() / file, ignored)) {
        names.push_back(at->path().filename().string());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

class ZipKeys : public KeyReader {
 public:
  ZipKeys(const std::string& path, std::uint64_t max_memory_bytes)
      : zip_(openSource(path), max_memory_bytes) {}

  std::optional<std::vector<std::uint8_t>> read(const std::string& key,
                                                std::uint64_t max_bytes) const override {
    return zip_.read(key, max_bytes);
  }
  std::optional<std::uint64_t> sizeOf(const std::string& key) const override {
    return zip_.sizeOf(key);
  }
  std::vector<std::string> foldersWith(const std::string& file) const override {
    std::vector<std::string> names;
    for (const std::string& name : zip_.names()) {
      const std::size_t slash = name.find('/');
      if (slash != name.npos && name.substr(slash + 1) == file && names.size() < kMaxListed) {
        names.push_back(name.substr(0, slash));
      }
    }
    return names;
  }

 private:
  ZipReader zip_;
};

[[noreturn]] void failIo(const std::string& what, const std::string& path) {
  detail::throwError(ErrorCode::kIo, fmt::format("{} '{}': {}", what, path, std::strerror(errno)));
}

/// A folder beside its name, which it gets in the end.
class FolderWriter : public KeyWriter {
 public:
  explicit FolderWriter(const std::string& path) : path_(path) {
    static std::atomic<unsigned> counter{0};
    temporary_ = fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter.fetch_add(1));
    std::error_code error;
    FZ_REQUIRE(fs::create_directory(temporary_, error), ErrorCode::kIo,
               "cannot create a folder beside '{}': {}", path,
               error ? error.message() : std::strerror(EEXIST));
  }
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;
  ~FolderWriter() override {
    std::error_code ignored;
    if (!temporary_.empty()) {
      fs::remove_all(temporary_, ignored);
    }
  }

  void put(const std::string& key, std::initializer_list<ByteView> parts) override {
    const fs::path file = fs::path(temporary_) / key;
    if (folders_.insert(file.parent_path().string()).second) {
      std::error_code error;
      fs::create_directories(file.parent_path(), error);
      FZ_REQUIRE(!error, ErrorCode::kIo, "cannot create '{}': {}", file.parent_path().string(),
                 error.message());
    }
    AtomicFile out(file.string(), TemporaryName::kUnique);
    for (const ByteView part : parts) {
      out.write(part);
    }
    out.skipSync();  // of one file: commit() waits for all of them
    out.commit(Existing::kKeep);
  }

  void commit() override {
    const int folder = ::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || ::syncfs(folder) != 0) {
      const int saved = errno;
      ::close(folder);
      errno = saved;
      failIo("cannot write", path_);
    }
    ::close(folder);
    if (!rename()) {
      failIo("cannot name", path_);
    }
    temporary_.clear();
  }

 private:
  bool rename() {
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
      return true;
    }
    // Not every file system knows the flag; a folder with anything in it is kept even so.
    return errno == EINVAL && ::rename(temporary_.c_str(), path_.c_str()) == 0;
  }

  std::string path_;
  std::string temporary_;
  std::set<std::string> folders_;
};

class ZipKeyWriter : public KeyWriter {
 public:
  ZipKeyWriter(const std::string& path, Existing existing) : sink_(path), existing_(existing) {}

  void put(const std::string& key, std::initializer_list<ByteView> parts) override {
    zip_.add(key, parts);
  }
  void commit() override {
    zip_.finish();
    sink_.file.commit(existing_);
  }

 private:
  struct Sink : ByteSink {
    explicit Sink(const std::string& path) : file(path) {}
    void write(ByteView bytes) override { file.write(bytes); }

    AtomicFile file;
  };

  Sink sink_;
  ZipWriter zip_{sink_};
  Existing existing_;
};

}  // namespace

std::unique_ptr<KeyReader> openKeys(const std::string& path,
                                    bool is_zip,
                                    std::uint64_t max_memory_bytes) {
  if (is_zip) {
    return std::make_unique<ZipKeys>(path, max_memory_bytes);
  }
  return std::make_unique<FolderReader>(path);
}

std::unique_ptr<KeyWriter> createKeys(const std::string& path, bool is_zip, Existing existing) {
  if (is_zip) {
    return std::make_unique<ZipKeyWriter>(path, existing);
  }
  return std::make_unique<FolderWriter>(path);
}

}  // namespace fz::cli
