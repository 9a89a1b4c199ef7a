#include "format/file_io.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/require.h"

namespace fz {

namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  /// False when the system reports an error that writing did not (a full disk, say).
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

[[noreturn]] void throwIo(const char* what, const std::string& path) {
  detail::throwError(ErrorCode::kIo, fmt::format("{} '{}': {}", what, path, std::strerror(errno)));
}

std::size_t readUpTo(int fd, const std::string& path, std::uint8_t* out, std::size_t n_bytes) {
  std::size_t n_done = 0;
  while (n_done < n_bytes) {
    const ssize_t n = ::read(fd, out + n_done, n_bytes - n_done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      throwIo("cannot read", path);
    }
    if (n == 0) {
      break;
    }
    n_done += static_cast<std::size_t>(n);
  }
  return n_done;
}

bool writeAll(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

std::string folderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string nameBeside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter.fetch_add(1));
}

constexpr int kNameAttempts = 100;

/// A new file beside `path`; the kernel applies the process's umask. -1 when none can be made.
int createBeside(const std::string& path, std::string& name) {
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    name = nameBeside(path);
    const int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) {
      return fd;
    }
  }
  return -1;
}

/// A file without a name in the folder of `path`, of which nothing is left when the process is
/// killed. -1 where the file system has no such files.
int createUnnamed(const std::string& path) {
  return ::open(folderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

bool giveName(int fd, const std::string& name) {
  const std::string source = fmt::format("/proc/self/fd/{}", fd);
  return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

bool giveNameBeside(int fd, const std::string& path, std::string& name) {
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    name = nameBeside(path);
    if (giveName(fd, name)) {
      return true;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  name.clear();
  return false;
}

/// Everything on the disk, with the mode of the file that will be replaced (null: of none).
bool fill(int fd, ByteView bytes, const struct stat* old) {
  return writeAll(fd, bytes) && (old == nullptr || ::fchmod(fd, old->st_mode & 07777) == 0) &&
         ::fsync(fd) == 0;
}

/// The new name itself must survive a power cut; some file systems refuse this, which is fine.
void syncFolder(const std::string& path) {
  const Descriptor folder(::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) {
    static_cast<void>(::fsync(folder.get()));
  }
}

}  // namespace

std::vector<std::uint8_t> readFileFront(const std::string& path,
                                        std::size_t max_bytes,
                                        std::uint64_t* total_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    throwIo("cannot open", path);
  }
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) {
    throwIo("cannot read", path);
  }
  FZ_REQUIRE(S_ISREG(status.st_mode), ErrorCode::kIo, "cannot read '{}': not a regular file", path);
  *total_bytes = static_cast<std::uint64_t>(status.st_size);
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(std::min<std::uint64_t>(*total_bytes, max_bytes)));
  const std::size_t n = readUpTo(file.get(), path, bytes.data(), bytes.size());
  FZ_REQUIRE(n == bytes.size(), ErrorCode::kIo, "cannot read '{}': it shrank while being read",
             path);
  return bytes;
}

std::vector<std::uint8_t> readFile(const std::string& path) {
  std::uint64_t total_bytes = 0;
  return readFileFront(path, static_cast<std::size_t>(-1), &total_bytes);
}

void writeFileAtomically(const std::string& path, ByteView bytes) {
  struct stat status = {};
  const struct stat* old = ::stat(path.c_str(), &status) == 0 ? &status : nullptr;
  std::string temporary;
  const auto fail = [&](const char* what) {
    const int saved = errno;
    if (!temporary.empty()) {
      ::unlink(temporary.c_str());
    }
    errno = saved;
    throwIo(what, path);
  };
  Descriptor file(createUnnamed(path));
  bool is_in_place = false;
  bool is_complete = false;
  if (file.get() >= 0) {
    if (!fill(file.get(), bytes, old)) {
      fail("cannot write");
    }
    // A name that is free is taken at once; one that is not needs a second name to be moved from.
    is_in_place = old == nullptr && giveName(file.get(), path);
    is_complete = is_in_place || giveNameBeside(file.get(), path, temporary);
  }
  if (!is_complete) {
    Descriptor named(createBeside(path, temporary));
    if (named.get() < 0) {
      temporary.clear();
      fail("cannot create a file beside");
    }
    if (!fill(named.get(), bytes, old) || !named.close()) {
      fail("cannot write");
    }
  }
  if (!file.close()) {
    fail("cannot write");
  }
  if (!is_in_place && ::rename(temporary.c_str(), path.c_str()) != 0) {
    fail("cannot replace");
  }
  syncFolder(path);
}

}  // namespace fz
