#include "format/file_io.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
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
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  int get() const { return fd_; }

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

/// A name beside `path` that nothing has; it says whose it is.
std::string nameBeside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter.fetch_add(1));
}

constexpr int kNameAttempts = 100;
constexpr mode_t kNewFileMode = 0666;  // less the process's umask

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

/// Keeps errno for the message: what follows may change it.
[[noreturn]] void AtomicFile::fail(const char* what) {
  const int saved = errno;
  discard();
  errno = saved;
  throwIo(what, path_);
}

/// Whoever writes such a file holds a lock on it, so one without is left over.
void AtomicFile::openPart(bool replace) {
  temporary_ = path_ + ".part";
  struct stat status = {};
  bool is_mine = false;
  for (bool has_name = false; !has_name;) {
    fd_ = ::open(temporary_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, kNewFileMode);
    if (fd_ < 0) {
      temporary_.clear();
      throwIo("cannot create a file in the folder of", path_);
    }
    is_mine = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    // Its writer may have finished in the meantime: then this is somebody's result.
    struct stat named = {};
    has_name = ::fstat(fd_, &status) == 0 && ::stat(temporary_.c_str(), &named) == 0 &&
               named.st_ino == status.st_ino && named.st_dev == status.st_dev;
    if (!has_name) {
      ::close(std::exchange(fd_, -1));
    }
  }
  const bool is_left_over = status.st_size > 0;
  if (!is_mine || (is_left_over && !replace)) {
    const std::string name = std::exchange(temporary_, {});  // it stays
    ::close(std::exchange(fd_, -1));
    detail::throwError(
        ErrorCode::kIo,
        is_mine
            ? fmt::format("'{}' is left of a run that was cut off: recover it, or remove it", name)
            : fmt::format("'{}' is being written by another process", name));
  }
  if (::ftruncate(fd_, 0) != 0) {
    fail("cannot write");
  }
}

AtomicFile::AtomicFile(const std::string& path, TemporaryName name) : path_(path) {
  if (name == TemporaryName::kPart || name == TemporaryName::kReplacePart) {
    openPart(name == TemporaryName::kReplacePart);
    return;
  }
#ifdef O_TMPFILE
  // Without a name there is nothing to leave behind, even when the process is killed. Naming the
  // file later goes through /proc, which a bare chroot lacks.
  if (name == TemporaryName::kNone && ::access("/proc/self/fd", X_OK) == 0) {
    fd_ = ::open(folderOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kNewFileMode);
  }
  if (fd_ >= 0) {
    return;
  }
#endif
  for (int attempt = 0; attempt < kNameAttempts && fd_ < 0; ++attempt) {
    temporary_ = nameBeside(path);
    fd_ = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, kNewFileMode);
    if (fd_ < 0 && errno != EEXIST) {
      break;
    }
  }
  if (fd_ < 0) {
    temporary_.clear();
    throwIo("cannot create a file in the folder of", path_);
  }
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::unmap() {
  if (mapped_ != nullptr) {
    ::munmap(mapped_, n_mapped_);
    mapped_ = nullptr;
  }
}

void AtomicFile::discard() {
  unmap();
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    temporary_.clear();
  }
}

void AtomicFile::write(ByteView bytes) {
  if (!writeAll(fd_, bytes)) {
    fail("cannot write");
  }
}

void AtomicFile::writeAt(std::uint64_t offset, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      fail("cannot write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

MutableByteView AtomicFile::map(std::size_t n_bytes) {
  if (n_bytes == 0) {
    return {};
  }
  unmap();
  const off_t at = ::lseek(fd_, 0, SEEK_CUR);
  // Space is reserved now: a full disk is an error here and no signal later.
  errno = ::posix_fallocate(fd_, at, static_cast<off_t>(n_bytes));
  if (at < 0 || errno != 0) {
    fail("cannot write");
  }
  n_mapped_ = static_cast<std::size_t>(at) + n_bytes;
  void* memory = ::mmap(nullptr, n_mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED && errno == ENOMEM) {
    const std::size_t n_wanted = std::exchange(n_mapped_, 0);
    discard();
    FZ_REQUIRE(false, ErrorCode::kOutOfMemory, "'{}': not enough address space for its {} bytes",
               path_, n_wanted);
  }
  if (memory == MAP_FAILED) {
    fail("cannot map");
  }
  mapped_ = memory;
  return {static_cast<std::uint8_t*>(memory) + at, n_bytes};
}

/// Gives a file without a name this one, if nothing has it.
bool AtomicFile::link(const std::string& name) const {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

/// Gives it one beside its path.
bool AtomicFile::nameIt() {
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    const std::string name = nameBeside(path_);
    if (link(name)) {
      temporary_ = name;
      return true;
    }
    if (errno != EEXIST) {
      return false;
    }
  }
  return false;
}

/// From the temporary name to the final one.
bool AtomicFile::takeName(Existing existing) {
#ifdef RENAME_NOREPLACE
  if (existing == Existing::kKeep) {
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
      return true;
    }
    if (errno != EINVAL && errno != ENOSYS) {
      return false;
    }
    // This file system cannot promise it; the name was free when commit() began.
  }
#endif
  return ::rename(temporary_.c_str(), path_.c_str()) == 0;
}

void AtomicFile::keepAttributesOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    // Nobody gets to read it before it has its name who may not afterwards.
    attributes_ = Attributes{status.st_mode & 0777u, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
    static_cast<void>(::fchmod(fd_, attributes_->mode | 0600u));
  }
}

void AtomicFile::commit(Existing existing) {
  struct stat old = {};
  const bool is_there = ::stat(path_.c_str(), &old) == 0;
  if (is_there && existing == Existing::kKeep) {
    errno = EEXIST;
    fail("cannot write");
  }
  unmap();
  const mode_t mode = attributes_ ? attributes_->mode : old.st_mode & 07777;
  if (((is_there || attributes_) && ::fchmod(fd_, mode) != 0) || (syncs_ && ::fsync(fd_) != 0)) {
    fail("cannot write");
  }
  if (attributes_) {
    const timespec changed = {attributes_->seconds, attributes_->nanoseconds};
    const timespec times[] = {{0, UTIME_OMIT}, changed};
    static_cast<void>(::futimens(fd_, times));  // a time is not worth failing for
  }
  // A name that is free is taken at once; one that is not needs a second name to be moved from.
  const bool is_in_place = temporary_.empty() && !is_there && link(path_);
  if (!is_in_place && temporary_.empty() && !nameIt()) {
    fail("cannot write");
  }
  if (::close(std::exchange(fd_, -1)) != 0) {  // reports what writing did not, a full disk say
    fail("cannot write");
  }
  if (!is_in_place && !takeName(existing)) {
    fail(existing == Existing::kReplace ? "cannot replace" : "cannot write");
  }
  temporary_.clear();
  if (!syncs_) {
    return;
  }
  // The new name itself must survive a power cut; some file systems refuse this, which is fine.
  const Descriptor folder(::open(folderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) {
    static_cast<void>(::fsync(folder.get()));
  }
}

void writeFileAtomically(const std::string& path, ByteView bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

ReadableFile::ReadableFile(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
    const int saved = errno;
    if (fd_ >= 0) {
      ::close(fd_);
    }
    errno = saved;
    throwIo("cannot open", path);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd_);
    detail::throwError(ErrorCode::kIo, fmt::format("cannot read '{}': not a regular file", path));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

ReadableFile::~ReadableFile() {
  ::close(fd_);
}

void ReadableFile::read(std::uint64_t offset, MutableByteView out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      throwIo("cannot read", path_);
    }
    FZ_REQUIRE(n > 0, ErrorCode::kIo, "cannot read '{}': it ends at {} bytes", path_, offset);
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    throwIo("cannot open", path);
  }
  FZ_REQUIRE(S_ISREG(status.st_mode), ErrorCode::kIo, "cannot read '{}': not a regular file", path);
  const auto n_bytes = static_cast<std::size_t>(status.st_size);
  if (n_bytes == 0) {
    return;
  }
  void* memory = ::mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  FZ_REQUIRE(memory != MAP_FAILED || errno != ENOMEM, ErrorCode::kOutOfMemory,
             "'{}': not enough address space for its {} bytes", path, n_bytes);
  if (memory == MAP_FAILED) {
    throwIo("cannot map", path);
  }
  bytes_ = {static_cast<const std::uint8_t*>(memory), n_bytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace fz
