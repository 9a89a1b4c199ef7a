#include "handover/zip_writer.h"

#include <algorithm>
#include <array>

#include "format/crc32.h"
#include "fz/byte_io.h"
#include "handover/zip_format.h"
#include "text_bytes.h"

namespace fz::cli {

namespace {

constexpr std::uint16_t kFirstDay = 0x0021;  // 1980-01-01, the earliest there is
constexpr std::uint16_t kMadeOnUnix = 3 << 8 | zip::kVersion64;
constexpr std::uint32_t kPlainFile = 0100644u << 16;
constexpr std::size_t kMaxExtraBytes = 28;

bool isLong(std::uint64_t number) {
  return number >= zip::kIn64;
}
std::uint32_t shortOf(std::uint64_t number) {
  return isLong(number) ? zip::kIn64 : static_cast<std::uint32_t>(number);
}

}  // namespace

void ZipWriter::write(ByteView bytes) {
  sink_->write(bytes);
  position_ += bytes.size();
}

void ZipWriter::writeLocal(const Entry& entry) {
  std::array<std::uint8_t, zip::kLocalBytes + 20> bytes;
  ByteWriter out(bytes);
  const bool is_long = isLong(entry.n_bytes);
  out.u32(zip::kLocalMagic).u16(is_long ? zip::kVersion64 : zip::kVersion).u16(zip::kFlagUtf8);
  out.u16(zip::kStored).u16(0).u16(kFirstDay).u32(entry.crc);
  out.u32(shortOf(entry.n_bytes)).u32(shortOf(entry.n_bytes));
  out.u16(static_cast<std::uint16_t>(entry.name.size())).u16(is_long ? 20 : 0);
  write(ByteView(bytes).first(out.position()));
  write(bytesOf(entry.name));
  if (is_long) {
    ByteWriter extra(bytes);
    extra.u16(zip::kExtra64).u16(16).u64(entry.n_bytes).u64(entry.n_bytes);
    write(ByteView(bytes).first(extra.position()));
  }
}

void ZipWriter::add(const std::string& name, std::initializer_list<ByteView> parts) {
  Entry entry{name, position_};
  for (const ByteView part : parts) {
    entry.crc = crc32(part, entry.crc);
    entry.n_bytes += part.size();
  }
  writeLocal(entry);
  for (const ByteView part : parts) {
    write(part);
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::writeCentral(const Entry& entry) {
  std::array<std::uint8_t, kMaxExtraBytes> extra_bytes;
  ByteWriter extra(extra_bytes);
  const std::size_t n_fields = (isLong(entry.n_bytes) ? 2 : 0) + (isLong(entry.offset) ? 1 : 0);
  if (n_fields > 0) {
    extra.u16(zip::kExtra64).u16(static_cast<std::uint16_t>(n_fields * sizeof(std::uint64_t)));
  }
  if (isLong(entry.n_bytes)) {
    extra.u64(entry.n_bytes).u64(entry.n_bytes);
  }
  if (isLong(entry.offset)) {
    extra.u64(entry.offset);
  }
  std::array<std::uint8_t, zip::kCentralBytes> bytes;
  ByteWriter out(bytes);
  out.u32(zip::kCentralMagic).u16(kMadeOnUnix);
  out.u16(n_fields > 0 ? zip::kVersion64 : zip::kVersion).u16(zip::kFlagUtf8);
  out.u16(zip::kStored).u16(0).u16(kFirstDay).u32(entry.crc);
  out.u32(shortOf(entry.n_bytes)).u32(shortOf(entry.n_bytes));
  out.u16(static_cast<std::uint16_t>(entry.name.size()));
  out.u16(static_cast<std::uint16_t>(extra.position())).u16(0).u16(0).u16(0);
  out.u32(kPlainFile).u32(shortOf(entry.offset));
  write(bytes);
  write(bytesOf(entry.name));
  write(ByteView(extra_bytes).first(extra.position()));
}

void ZipWriter::writeEnd(std::uint64_t directory, std::uint64_t n_directory_bytes) {
  const std::uint64_t n = entries_.size();
  std::array<std::uint8_t, zip::kEnd64Bytes + zip::kLocator64Bytes + zip::kEndBytes> bytes;
  ByteWriter out(bytes);
  if (n >= zip::kCountIn64 || isLong(directory) || isLong(n_directory_bytes)) {
    out.u32(zip::kEnd64Magic).u64(zip::kEnd64Bytes - 12).u16(kMadeOnUnix).u16(zip::kVersion64);
    out.u32(0).u32(0).u64(n).u64(n).u64(n_directory_bytes).u64(directory);
    out.u32(zip::kLocator64Magic).u32(0).u64(position_).u32(1);
  }
  const auto count = static_cast<std::uint16_t>(std::min<std::uint64_t>(n, zip::kCountIn64));
  out.u32(zip::kEndMagic).u16(0).u16(0).u16(count).u16(count);
  out.u32(shortOf(n_directory_bytes)).u32(shortOf(directory)).u16(0);
  write(ByteView(bytes).first(out.position()));
}

void ZipWriter::finish() {
  const std::uint64_t directory = position_;
  for (const Entry& entry : entries_) {
    writeCentral(entry);
  }
  writeEnd(directory, position_ - directory);
}

}  // namespace fz::cli
