#include "trust/corpus.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "format/crc32.h"
#include "format/frame_layout.h"
#include "fz/byte_io.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "fzm_format.h"
#include "pipeline/compressor.h"
#include "support/fusion_chains.h"
#include "support/stage_case.h"

namespace fz::trust {

namespace {

constexpr std::size_t kMinorOffset = 4;

template <class T>
void put(Bytes& bytes, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// A smooth field of multiples of 1/64, with noise of one such step.
template <class T>
Bytes gridField(const std::array<std::size_t, 3>& dims) {
  std::vector<T> values;
  std::mt19937_64 rng(9);
  for (std::size_t z = 0; z < dims[2]; ++z) {
    for (std::size_t y = 0; y < dims[1]; ++y) {
      for (std::size_t x = 0; x < dims[0]; ++x) {
        const auto hill = static_cast<std::int64_t>((x * (dims[0] - x)) % 997 + 3 * y + 11 * z);
        values.push_back(static_cast<T>(hill + static_cast<std::int64_t>(rng() % 3)) / T{64});
      }
    }
  }
  return test::toBytes(values);
}

Bytes framed(Pipeline& pipeline, const Bytes& original) {
  const CompressedView view = pipeline.compress(original.data(), original.size());
  const auto* bytes = static_cast<const std::uint8_t*>(view.data);
  return {bytes, bytes + view.n_bytes};
}

}  // namespace

std::vector<Seed> stageSeeds(std::size_t n_values) {
  std::vector<Seed> seeds;
  for (const test::StageSetup& s : test::allSetups()) {
    for (const test::InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      std::mt19937_64 rng(n_values);
      Pipeline pipeline;
      pipeline.setBackend(Backend::CPU);
      pipeline.setThreads(1);
      pipeline.addStage(s.makeStage(n_values));
      pipeline.finalize();
      Bytes original = input.make(s.inputType(), n_values, rng);
      Bytes frame = framed(pipeline, original);
      seeds.push_back({s.text(), std::move(frame), std::move(original)});
      break;
    }
  }
  return seeds;
}

std::vector<Seed> pipelineSeeds() {
  std::vector<Seed> seeds;
  for (const test::FusionChain& chain : test::fusionChains()) {
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      if (type == DataType::FLOAT64 && !chain.takes_f64) {
        continue;
      }
      for (const std::array<std::size_t, 3>& dims :
           {std::array<std::size_t, 3>{300, 1, 1}, {24, 10, 1}, {9, 7, 5}}) {
        CompressOptions options;
        options.preset = chain.name;
        options.config_toml = chain.toml;
        options.dims = dims;
        options.backend = Backend::CPU;
        options.threads = 1;
        options.lossless_fallback = false;  // every stage is to be there
        Bytes original =
            type == DataType::FLOAT32 ? gridField<float>(dims) : gridField<double>(dims);
        const Frame frame = compress(type, original, options);
        seeds.push_back({chain.name + "<" + std::string(dataTypeToString(type)) + "> " +
                             std::to_string(dims[0]) + "x" + std::to_string(dims[1]) + "x" +
                             std::to_string(dims[2]),
                         Bytes(frame.bytes().begin(), frame.bytes().end()), std::move(original)});
      }
    }
  }
  return seeds;
}

bool isCompact(const Bytes& frame) {
  return frame.size() >= kCoreBytes &&
         loadLe<std::uint16_t>(frame.data() + kMinorOffset) == FZM_VERSION_COMPACT;
}

OpenFrame::OpenFrame(const Bytes& frame) : header(readHeader(frame, frame.size())) {
  payload.assign(frame.begin() + static_cast<std::ptrdiff_t>(header.core.header_size), frame.end());
}

Bytes OpenFrame::close() {
  header.core.compressed_size = payload.size();
  header.core.data_checksum = crc32(payload);
  Bytes frame(headerBytes(header));
  writeHeader(header, frame);
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

void OpenFrame::claimLength(std::uint64_t n_values, std::uint64_t value_bytes) {
  const std::uint64_t n_bytes = n_values * value_bytes;
  header.core.uncompressed_size = n_bytes;
  header.core.source_uncompressed_sizes[0] = n_bytes;
  header.description.original_bytes = n_bytes;
  header.description.dims = {n_values, 1, 1};
  header.description.shape = {1, {n_values}};
}

void repairFrame(Bytes& frame) {
  if (frame.size() < kCoreBytes) {
    return;
  }
  const auto n_stages = loadLe<std::uint32_t>(frame.data() + 32);
  const auto n_buffers = loadLe<std::uint16_t>(frame.data() + 6);
  const std::uint64_t header_bytes =
      isCompact(frame) ? loadLe<std::uint64_t>(frame.data() + kHeaderSizeOffset)
                       : kCoreBytes + kRecordBytes * (std::uint64_t{n_stages} + n_buffers);
  if (header_bytes > frame.size() || header_bytes < kCoreBytes) {
    return;
  }
  put(frame, kHeaderSizeOffset, header_bytes);
  put(frame, kCompressedSizeOffset, frame.size() - header_bytes);
  const ByteView bytes(frame);
  put(frame, kHeaderChecksumOffset - 4, crc32(bytes.subspan(header_bytes)));
  put(frame, kHeaderChecksumOffset, std::uint32_t{0});
  put(frame, kHeaderChecksumOffset, crc32(bytes.first(header_bytes)));
}

Seed asOlderVersion(const Seed& seed, unsigned minor) {
  Seed older = seed;
  older.name += " as 3." + std::to_string(minor);
  Bytes& frame = older.frame;
  put(frame, kMinorOffset, static_cast<std::uint16_t>(0x300 + minor));
  const std::size_t description = kCoreBytes + kDescriptionOffset;
  std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(description), 84, std::uint8_t{0});
  if (minor > 0) {
    repairFrame(frame);
    return older;
  }
  frame.erase(frame.begin() + kCoreBytesV30, frame.begin() + kCoreBytes);
  const auto header_bytes = loadLe<std::uint64_t>(frame.data() + kHeaderSizeOffset);
  put(frame, kHeaderSizeOffset, header_bytes - (kCoreBytes - kCoreBytesV30));
  put(frame, 38, std::uint16_t{0});  // no checksums, so no flags
  return older;
}

std::vector<Seed> mutationSeeds() {
  std::vector<Seed> seeds = stageSeeds(70);
  std::vector<Seed> pipelines = pipelineSeeds();
  std::move(pipelines.begin(), pipelines.end(), std::back_inserter(seeds));
  const std::size_t n = seeds.size();
  for (std::size_t i = 0; i < n; i += 10) {
    if (isCompact(seeds[i].frame)) {
      continue;  // no older writer has these stages
    }
    seeds.push_back(asOlderVersion(seeds[i], 0));
    seeds.push_back(asOlderVersion(seeds[i], 1));
  }
  return seeds;
}

}  // namespace fz::trust
