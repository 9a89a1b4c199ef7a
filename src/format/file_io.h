#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fz/span.h"

namespace fz {

/// A whole file, read with no more memory than its length. Throws Error(kIo).
std::vector<std::uint8_t> readFile(const std::string& path);
/// Up to max_bytes from the start, and the file's length.
std::vector<std::uint8_t> readFileFront(const std::string& path,
                                        std::size_t max_bytes,
                                        std::uint64_t* total_bytes);
/// What becomes of a file that has the name already.
enum class Existing {
  kReplace,
  kKeep,  ///< the new one is an error, and gone
};

/// Writes to a temporary name in the same folder, syncs, renames: at any moment the final name
/// holds the old file or the whole new one. Throws Error(kIo); nothing is left behind then.
void writeFileAtomically(const std::string& path, ByteView bytes);

/// What a file is called until it is complete.
enum class TemporaryName {
  /// Nothing where the file system allows that, so that not even a kill leaves anything behind;
  /// elsewhere as kUnique.
  kNone,
  kUnique,       ///< `path.PID-N.tmp`, which nothing reads
  kPart,         ///< `path.part`, which a kill leaves behind for whoever can use it
  kReplacePart,  ///< the same, in place of one that was left behind
};

/// The same by parts.
class AtomicFile {
 public:
  /// Throws Error(kIo), as all calls do; nothing is left behind then. A `path.part` that another
  /// process is writing is one such error.
  explicit AtomicFile(const std::string& path, TemporaryName name = TemporaryName::kNone);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Without commit() the file is gone.
  ~AtomicFile();

  void write(ByteView bytes);
  /// At a place of its own, which may be behind the end; not together with map().
  void writeAt(std::uint64_t offset, ByteView bytes);
  /// The name before commit(), under which another library can write the file; empty where it has
  /// none.
  const std::string& temporaryPath() const { return temporary_; }
  /// The last n_bytes of the file, after what was written, as memory that needs no copy and no
  /// room besides the system's cache. Valid until commit() or the next map(), which may ask for
  /// more.
  MutableByteView map(std::size_t n_bytes);
  /// Permissions and time of the last change as that file has them, where it is a regular one.
  /// Else a file that is replaced leaves its permissions.
  void keepAttributesOf(const std::string& path);
  /// Leaves out the syncs of commit(): after a power cut the file may be empty or gone. For many
  /// small files that can be made again.
  void skipSync() { syncs_ = false; }
  /// Syncs, then gives the file its name. kKeep fails where that is taken, even if it was free a
  /// moment before.
  void commit(Existing existing = Existing::kReplace);

 private:
  [[noreturn]] void fail(const char* what);
  void discard();
  void unmap();
  bool link(const std::string& name) const;
  bool nameIt();
  bool takeName(Existing existing);
  void openPart(bool replace);

  std::string path_;
  std::string temporary_;  // empty while the file has no name
  int fd_ = -1;
  struct Attributes {
    unsigned mode;
    std::int64_t seconds;
    std::int64_t nanoseconds;
  };
  std::optional<Attributes> attributes_;
  void* mapped_ = nullptr;
  std::size_t n_mapped_ = 0;
  bool syncs_ = true;
};

/// A regular file, read at any place, by any number of threads.
class ReadableFile {
 public:
  /// Throws Error(kIo), as all calls do.
  explicit ReadableFile(const std::string& path);
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;
  ~ReadableFile();

  std::uint64_t size() const { return size_; }
  void read(std::uint64_t offset, MutableByteView out) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// A regular file as memory, read-only. A file that shrinks while it is mapped raises SIGBUS.
class MappedFile {
 public:
  /// Throws Error(kIo).
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  ByteView bytes() const { return bytes_; }

 private:
  ByteView bytes_;
};

}  // namespace fz
