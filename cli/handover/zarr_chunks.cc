#include "handover/zarr_chunks.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/require.h"
#include "failure.h"
#include "handover/zarr_metadata.h"
#include "output_io.h"
#include "text_bytes.h"

namespace fz::cli {

namespace {

constexpr const char* kMetadata = "zarr.json";
constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{1} << 20;

/// What could have been meant by a store that is no array.
std::string arraysIn(const ZarrName& name, const KeyReader& keys) {
  std::string text;
  for (const std::string& array : keys.foldersWith(kMetadata)) {
    if (std::any_of(array.begin(), array.end(), [](char c) { return c < ' ' || c > '~'; })) {
      continue;  // nothing for a terminal
    }
    text += fmt::format("{}{}:/{}", text.empty() ? "" : ", ", name.path, array);
  }
  return text.empty() ? "name an array in it, as in big.zarr:/NAME" : "name what is in it: " + text;
}

class ZarrSource : public ChunkSource {
 public:
  ZarrSource(const ZarrName& name, const DecodeLimits& limits)
      : name_(name), keys_(openKeys(name.path, name.is_zip, limits.max_memory_bytes)) {
    const std::string key = name_.key(kMetadata);
    const auto text = keys_->read(key, kMaxMetadataBytes);
    if (!text) {
      throw Failure(ExitCode::kIo, fmt::format("'{}' has no {}, so it is no Zarr array of format "
                                               "3; {}",
                                               name.path, key, arraysIn(name, *keys_)));
    }
    FZ_REQUIRE(text->size() < kMaxMetadataBytes, ErrorCode::kCorrupt, "{}: a megabyte of text",
               key);
    const std::string_view words(reinterpret_cast<const char*>(text->data()), text->size());
    if (words.find("\"group\"") != words.npos && words.find("\"array\"") == words.npos) {
      throw Failure(ExitCode::kUsage, fmt::format("'{}' is a group of arrays; {}", name.path,
                                                  arraysIn(name, *keys_)));
    }
    array_ = readZarrArray(*text);
  }

  const StoredArray& about() const override { return array_.about; }
  std::optional<std::vector<std::uint8_t>> read(std::uint64_t chunk,
                                                std::uint64_t max_bytes) const override {
    return keys_->read(keyOf(chunk), max_bytes);
  }
  std::uint64_t sizeOf(std::uint64_t chunk) const override {
    return keys_->sizeOf(keyOf(chunk)).value_or(0);
  }

 private:
  std::string keyOf(std::uint64_t chunk) const { return name_.key(array_.chunkKey(chunk)); }

  ZarrName name_;
  std::unique_ptr<KeyReader> keys_;
  ZarrArray array_;
};

class ZarrTarget : public ChunkTarget {
 public:
  ZarrTarget(ZarrName name, const StoredArray& about, Existing existing)
      : name_(std::move(name)),
        array_{about},
        keys_(createKeys(
            name_.is_zip ? behindLinks(name_.path) : name_.path, name_.is_zip, existing)) {
    // A group for every folder above the array.
    const std::string group = zarrGroupText();
    for (std::size_t at = name_.array.empty() ? name_.array.npos : 0; at != name_.array.npos;) {
      const std::string folder = name_.array.substr(0, at);
      keys_->put(folder.empty() ? kMetadata : folder + "/" + kMetadata, {bytesOf(group)});
      at = name_.array.find('/', at + 1);
    }
    const std::string text = zarrArrayText(about);
    keys_->put(name_.key(kMetadata), {bytesOf(text)});
  }

  void put(std::uint64_t chunk, ByteView frame) override {
    keys_->put(name_.key(array_.chunkKey(chunk)), {frame});
  }
  void commit() override { keys_->commit(); }

 private:
  ZarrName name_;
  ZarrArray array_;
  std::unique_ptr<KeyWriter> keys_;
};

}  // namespace

std::unique_ptr<ChunkSource> openZarr(const ZarrName& name, const DecodeLimits& limits) {
  return std::make_unique<ZarrSource>(name, limits);
}

std::unique_ptr<ChunkTarget> createZarr(const ZarrName& name,
                                        const StoredArray& about,
                                        Existing existing) {
  return std::make_unique<ZarrTarget>(name, about, existing);
}

}  // namespace fz::cli
