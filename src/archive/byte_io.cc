// Files and memory as sources of archives.
#include <cstring>
#include <new>

#include "core/require.h"
#include "format/file_io.h"
#include "fz/archive.h"

namespace fz {

namespace {

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : file_(path) {}
  std::uint64_t size() const override { return file_.size(); }
  void read(std::uint64_t offset, MutableByteView out) const override { file_.read(offset, out); }

 private:
  ReadableFile file_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(ByteView bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, MutableByteView out) const override {
    FZ_REQUIRE(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, ErrorCode::kIo,
               "archive: {} bytes at {} of {}", out.size(), offset, bytes_.size());
    if (!out.empty()) {
      std::memcpy(out.data(), bytes_.data() + offset, out.size());
    }
  }

 private:
  ByteView bytes_;
};

}  // namespace

std::shared_ptr<const ByteSource> openSource(const std::string& path) try {
  return std::make_shared<const FileSource>(path);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::shared_ptr<const ByteSource> sourceOf(ByteView bytes) try {
  return std::make_shared<const MemorySource>(bytes);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
