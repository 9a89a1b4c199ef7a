#include "handover/zip_reader.h"

#include <algorithm>
#include <utility>

#include "core/require.h"
#include "format/crc32.h"
#include "fz/byte_io.h"
#include "handover/zip_format.h"

namespace fz::cli {

namespace {

/// What a field of the directory stands for: itself, or the next number of the ZIP64 record.
std::uint64_t longOf(std::uint32_t field, ByteReader& extra) {
  return field == zip::kIn64 ? extra.u64() : field;
}

/// The ZIP64 record among what follows a name; empty where there is none.
ByteView findExtra64(ByteView extra) {
  ByteReader in(extra);
  while (in.remaining() >= 4) {
    const std::uint16_t id = in.u16();
    const std::uint16_t n_bytes = in.u16();
    if (n_bytes > in.remaining()) {
      break;
    }
    if (id == zip::kExtra64) {
      return extra.subspan(in.position(), n_bytes);
    }
    in.skip(n_bytes);
  }
  return {};
}

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const ByteSource> source, std::uint64_t max_memory_bytes)
    : source_(std::move(source)) {
  const Directory directory = findDirectory();
  // An entry takes more in memory than it does there, but not many times as much.
  constexpr std::uint64_t kMemoryPerByte = 4;
  FZ_REQUIRE(max_memory_bytes == 0 || directory.n_bytes <= max_memory_bytes / kMemoryPerByte,
             ErrorCode::kLimit, "zip: its directory of {} bytes takes more than the limit of {}",
             directory.n_bytes, max_memory_bytes);
  entries_end_ = directory.offset;
  readDirectory(directory);
}

std::vector<std::uint8_t> ZipReader::readAt(std::uint64_t offset, std::uint64_t n_bytes) const {
  FZ_REQUIRE(offset <= source_->size() && n_bytes <= source_->size() - offset, ErrorCode::kCorrupt,
             "zip: {} bytes at {} of {}; the file is cut off or damaged", n_bytes, offset,
             source_->size());
  std::vector<std::uint8_t> bytes(n_bytes);
  source_->read(offset, bytes);
  return bytes;
}

ZipReader::Directory ZipReader::findDirectory() const {
  const std::uint64_t n_file = source_->size();
  const std::uint64_t n_tail =
      std::min<std::uint64_t>(n_file, zip::kEndBytes + zip::kMaxCommentBytes);
  const std::vector<std::uint8_t> tail = readAt(n_file - n_tail, n_tail);
  for (std::size_t at = tail.size() < zip::kEndBytes ? 0 : tail.size() - zip::kEndBytes + 1;
       at-- > 0;) {
    ByteReader in(ByteView(tail).subspan(at));
    if (in.u32() != zip::kEndMagic) {
      continue;
    }
    const bool is_one_disk = in.u32() == 0;
    const std::uint16_t n_here = in.u16();
    Directory directory;
    directory.n_entries = in.u16();
    directory.n_bytes = in.u32();
    directory.offset = in.u32();
    if (in.u16() != in.remaining() || !is_one_disk || n_here != directory.n_entries) {
      continue;
    }
    const std::uint64_t end = n_file - n_tail + at;
    if (directory.n_entries == zip::kCountIn64 || directory.n_bytes == zip::kIn64 ||
        directory.offset == zip::kIn64) {
      return directory64(end);
    }
    FZ_REQUIRE(directory.offset <= end && directory.n_bytes == end - directory.offset,
               ErrorCode::kCorrupt, "zip: {} bytes of directory at {} do not end at {}",
               directory.n_bytes, directory.offset, end);
    return directory;
  }
  detail::throwError(ErrorCode::kCorrupt,
                     "zip: there is no directory at its end; the file is cut off or no ZIP file");
}

ZipReader::Directory ZipReader::directory64(std::uint64_t end) const {
  FZ_REQUIRE(end >= zip::kLocator64Bytes + zip::kEnd64Bytes, ErrorCode::kCorrupt,
             "zip: no room for the ZIP64 records that it names");
  const std::vector<std::uint8_t> locator =
      readAt(end - zip::kLocator64Bytes, zip::kLocator64Bytes);
  ByteReader in(locator);
  const std::uint32_t magic = in.u32();
  in.skip(4);
  const std::uint64_t at = in.u64();
  FZ_REQUIRE(magic == zip::kLocator64Magic && at <= end - zip::kLocator64Bytes, ErrorCode::kCorrupt,
             "zip: its ZIP64 records are damaged");
  const std::vector<std::uint8_t> record = readAt(at, zip::kEnd64Bytes);
  ByteReader fields(record);
  const std::uint32_t record_magic = fields.u32();
  fields.skip(20);  // length, versions and disks
  Directory directory;
  const std::uint64_t n_here = fields.u64();
  directory.n_entries = fields.u64();
  directory.n_bytes = fields.u64();
  directory.offset = fields.u64();
  FZ_REQUIRE(record_magic == zip::kEnd64Magic && n_here == directory.n_entries &&
                 directory.offset <= at && directory.n_bytes == at - directory.offset,
             ErrorCode::kCorrupt, "zip: its ZIP64 records are damaged");
  return directory;
}

void ZipReader::readDirectory(const Directory& directory) {
  const std::vector<std::uint8_t> bytes = readAt(directory.offset, directory.n_bytes);
  ByteReader in(bytes);
  for (std::uint64_t i = 0; i < directory.n_entries; ++i) {
    const bool is_entry = in.u32() == zip::kCentralMagic;
    in.skip(4);  // versions
    Entry entry;
    entry.flags = in.u16();
    entry.method = in.u16();
    in.skip(4);  // time
    entry.crc = in.u32();
    const std::uint32_t n_stored = in.u32();
    const std::uint32_t n_original = in.u32();
    const std::uint16_t n_name = in.u16();
    const std::uint16_t n_extra = in.u16();
    const std::uint16_t n_comment = in.u16();
    in.skip(8);  // disk and attributes
    const std::uint32_t offset = in.u32();
    const std::size_t at = in.position();
    in.skip(std::size_t{n_name} + n_extra + n_comment);
    FZ_REQUIRE(is_entry && !in.failed(), ErrorCode::kCorrupt,
               "zip: entry {} of {} in its directory is damaged", i, directory.n_entries);
    ByteReader extra(findExtra64(ByteView(bytes).subspan(at + n_name, n_extra)));
    const std::uint64_t n_bytes = longOf(n_original, extra);
    entry.n_bytes = longOf(n_stored, extra);
    entry.offset = longOf(offset, extra);
    std::string name(reinterpret_cast<const char*>(bytes.data()) + at, n_name);
    FZ_REQUIRE(!extra.failed() && (entry.method != zip::kStored || n_bytes == entry.n_bytes),
               ErrorCode::kCorrupt, "zip: the length of entry {} of {} is damaged", i,
               directory.n_entries);
    const bool is_new = entries_.emplace(std::move(name), entry).second;
    FZ_REQUIRE(is_new, ErrorCode::kCorrupt, "zip: entry {} of {} has the name of another", i,
               directory.n_entries);
  }
  FZ_REQUIRE(in.remaining() == 0, ErrorCode::kCorrupt,
             "zip: {} bytes are left behind the {} entries of its directory", in.remaining(),
             directory.n_entries);
}

std::uint64_t ZipReader::dataOf(const std::string& name, const Entry& entry) const {
  FZ_REQUIRE(entry.method == zip::kStored && (entry.flags & zip::kFlagEncrypted) == 0,
             ErrorCode::kUnsupported,
             "zip: '{}' is compressed or encrypted; make the file with 'zip -0'", name);
  const std::vector<std::uint8_t> local = readAt(entry.offset, zip::kLocalBytes);
  ByteReader in(local);
  const bool is_local = in.u32() == zip::kLocalMagic;
  in.skip(22);
  const std::uint16_t n_name = in.u16();
  const std::uint16_t n_extra = in.u16();
  const std::uint64_t begin = entry.offset + zip::kLocalBytes + n_name + n_extra;
  FZ_REQUIRE(is_local && n_name == name.size() && begin <= entries_end_ &&
                 entry.n_bytes <= entries_end_ - begin,
             ErrorCode::kCorrupt, "zip: '{}' is not where the directory says", name);
  const std::vector<std::uint8_t> own = readAt(entry.offset + zip::kLocalBytes, n_name);
  FZ_REQUIRE(std::equal(own.begin(), own.end(), name.begin()), ErrorCode::kCorrupt,
             "zip: '{}' has another name where it stands", name);
  return begin;
}

std::optional<std::vector<std::uint8_t>> ZipReader::read(const std::string& name,
                                                         std::uint64_t max_bytes) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return std::nullopt;
  }
  const Entry& entry = found->second;
  std::vector<std::uint8_t> bytes = readAt(dataOf(name, entry), std::min(entry.n_bytes, max_bytes));
  FZ_REQUIRE(bytes.size() < entry.n_bytes || crc32(bytes) == entry.crc, ErrorCode::kCorrupt,
             "zip: '{}' does not have its checksum", name);
  return bytes;
}

std::optional<std::uint64_t> ZipReader::sizeOf(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.n_bytes);
}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    names.push_back(name);
  }
  return names;
}

}  // namespace fz::cli
