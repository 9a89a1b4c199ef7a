#include "report/png.h"

#include <array>
#include <libdeflate.h>
#include <memory>
#include <string_view>

#include "format/crc32.h"
#include "fz/error.h"

namespace fz::report {

namespace {

constexpr int kCompressionLevel = 9;

void putBig(std::vector<std::uint8_t>& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

/// Length, name, content, checksum of name and content.
void putChunk(std::vector<std::uint8_t>& out, std::string_view name, ByteView content) {
  putBig(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t start = out.size();
  out.insert(out.end(), name.begin(), name.end());
  out.insert(out.end(), content.begin(), content.end());
  putBig(out, crc32(ByteView(out).subspan(start)));
}

std::vector<std::uint8_t> deflated(ByteView bytes) {
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> compressor(
      libdeflate_alloc_compressor(kCompressionLevel), &libdeflate_free_compressor);
  if (compressor == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, "report: no memory to pack a picture");
  }
  std::vector<std::uint8_t> out(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()));
  out.resize(libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(), out.data(),
                                      out.size()));
  return out;
}

}  // namespace

std::vector<std::uint8_t> encodePng(const IndexedImage& image) {
  std::vector<std::uint8_t> out = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  std::vector<std::uint8_t> head;
  putBig(head, static_cast<std::uint32_t>(image.width));
  putBig(head, static_cast<std::uint32_t>(image.height));
  // Eight bits, palette, and the only methods that there are.
  head.insert(head.end(), {8, 3, 0, 0, 0});
  putChunk(out, "IHDR", head);
  std::vector<std::uint8_t> palette;
  for (const Rgb& colour : image.palette) {
    palette.insert(palette.end(), colour.begin(), colour.end());
  }
  putChunk(out, "PLTE", palette);
  if (image.transparent >= 0) {
    std::vector<std::uint8_t> alpha(static_cast<std::size_t>(image.transparent) + 1, 255);
    alpha.back() = 0;
    putChunk(out, "tRNS", alpha);
  }
  std::vector<std::uint8_t> rows;
  rows.reserve((image.width + 1) * image.height);
  for (std::size_t y = 0; y < image.height; ++y) {
    rows.push_back(0);  // the row is not filtered
    const auto row = image.pixels.begin() + static_cast<std::ptrdiff_t>(y * image.width);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(image.width));
  }
  putChunk(out, "IDAT", deflated(rows));
  putChunk(out, "IEND", {});
  return out;
}

std::string base64(ByteView bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63u] : '=';
    }
  }
  return text;
}

}  // namespace fz::report
