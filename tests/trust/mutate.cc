#include "trust/mutate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "format/frame_layout.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "fz/stage_descriptor.h"
#include "fzm_format.h"

namespace fz::trust {

namespace {

/// A number in a frame: where it starts and how many bytes it has.
struct FieldPlace {
  std::size_t offset;
  std::size_t n_bytes;
};

constexpr FieldPlace kCoreFields[] = {{0, 4},  {4, 2},  {6, 2},  {8, 8},  {16, 8}, {24, 8}, {32, 4},
                                      {36, 2}, {38, 2}, {40, 8}, {48, 8}, {72, 4}, {76, 4}};
constexpr FieldPlace kStageFields[] = {{0, 2},  {2, 2},  {4, 1},  {5, 1},  {6, 2},  {8, 2},
                                       {10, 2}, {24, 2}, {26, 2}, {28, 2}, {30, 2}, {168, 4}};
constexpr FieldPlace kDescriptionFields[] = {{172, 4}, {176, 1}, {177, 1}, {178, 1}, {180, 8},
                                             {188, 8}, {196, 8}, {204, 8}, {212, 8}, {220, 8}};
constexpr FieldPlace kSegmentFields[] = {{0, 2},  {4, 1},  {5, 1},  {6, 2},  {72, 8},
                                         {80, 8}, {88, 8}, {96, 8}, {71, 1}, {232, 4}};

std::size_t below(std::mt19937_64& rng, std::size_t n) {
  return n == 0 ? 0 : static_cast<std::size_t>(rng() % n);
}

std::uint64_t load(const Bytes& bytes, const FieldPlace& field) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < field.n_bytes; ++i) {
    value |= std::uint64_t{bytes[field.offset + i]} << (8 * i);
  }
  return value;
}

void store(Bytes& bytes, const FieldPlace& field, std::uint64_t value) {
  for (std::size_t i = 0; i < field.n_bytes; ++i) {
    bytes[field.offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// A number that code tends to forget.
std::uint64_t oddValue(std::mt19937_64& rng, std::uint64_t old) {
  constexpr std::uint64_t kValues[] = {
      0,          1,          2,       3,          7,        8,   31,         32,
      33,         64,         127,     128,        255,      256, 1024,       0x7FFF,
      0x8000,     0xFFFF,     0x10000, 0x7FFFFFFF, 1u << 31, ~0u, 1ull << 32, 1ull << 40,
      1ull << 62, 1ull << 63, ~1ull,   ~0ull,      ~0ull - 7};
  switch (below(rng, 8)) {
    case 0:
      return old + 1;
    case 1:
      return old - 1;
    case 2:
      return old * 2;
    case 3:
      return old / 2;
    case 4:
      return rng() >> below(rng, 64);
    default:
      return kValues[below(rng, std::size(kValues))];
  }
}

/// The parts of a frame, found anew before every change.
class FrameParts {
 public:
  explicit FrameParts(const Bytes& bytes) : n_total_(bytes.size()) {
    if (bytes.size() < kCoreBytes) {
      return;
    }
    if (isCompact(bytes)) {  // has a payload, but no records of a fixed length
      const auto n_header = loadLe<std::uint64_t>(bytes.data() + kHeaderSizeOffset);
      payload_ = n_header <= bytes.size() ? n_header : 0;
      return;
    }
    const std::size_t core =
        loadLe<std::uint16_t>(bytes.data() + 4) == 0x300 ? kCoreBytesV30 : kCoreBytes;
    const std::uint64_t n_stages = loadLe<std::uint32_t>(bytes.data() + 32);
    const std::uint64_t n_segments = loadLe<std::uint16_t>(bytes.data() + 6);
    if (n_stages <= FZM_MAX_STAGES && n_segments <= FZM_MAX_BUFFERS &&
        core + kRecordBytes * (n_stages + n_segments) <= bytes.size()) {
      core_ = core;
      n_stages_ = n_stages;
      n_segments_ = n_segments;
      payload_ = stage(n_stages_ + n_segments_);
    }
  }

  bool isFrame() const { return core_ != 0 && n_stages_ > 0; }
  std::size_t stageCount() const { return n_stages_; }
  std::size_t segmentCount() const { return n_segments_; }
  std::size_t stage(std::size_t i) const { return core_ + kRecordBytes * i; }
  std::size_t segment(std::size_t i) const { return stage(n_stages_ + i); }
  std::size_t payload() const { return payload_; }
  std::size_t payloadBytes() const { return n_total_ - payload(); }

 private:
  std::size_t n_total_;
  std::size_t core_ = 0;
  std::size_t n_stages_ = 0;
  std::size_t n_segments_ = 0;
  std::size_t payload_ = 0;
};

void editBytes(Bytes& bytes, std::mt19937_64& rng) {
  const std::size_t n = 1 + below(rng, 8);
  const bool in_front = rng() % 2 == 0;
  for (std::size_t i = 0; i < n && !bytes.empty(); ++i) {
    const std::size_t room = in_front ? std::min<std::size_t>(bytes.size(), 128) : bytes.size();
    bytes[below(rng, room)] = static_cast<std::uint8_t>(rng());
  }
}

void addGarbage(Bytes& bytes, std::mt19937_64& rng) {
  const std::size_t n = 1 + below(rng, 64);
  for (std::size_t i = 0; i < n; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(rng()));
  }
  bytes[below(rng, bytes.size())] ^= static_cast<std::uint8_t>(1u << (rng() % 8));
}

void copyBlock(Bytes& bytes, std::mt19937_64& rng) {
  const std::size_t n = std::min<std::size_t>(1 + below(rng, 64), bytes.size());
  const std::size_t from = below(rng, bytes.size() - n + 1);
  const std::size_t to = below(rng, bytes.size() - n + 1);
  const Bytes block(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                    bytes.begin() + static_cast<std::ptrdiff_t>(from + n));
  std::copy(block.begin(), block.end(), bytes.begin() + static_cast<std::ptrdiff_t>(to));
}

void changeField(Bytes& bytes,
                 std::size_t base,
                 std::span<const FieldPlace> fields,
                 std::mt19937_64& rng) {
  FieldPlace field = fields[below(rng, fields.size())];
  field.offset += base;
  if (field.offset + field.n_bytes <= bytes.size()) {
    store(bytes, field, oddValue(rng, load(bytes, field)));
  }
}

void changeHeader(Bytes& bytes, const FrameParts& parts, std::mt19937_64& rng) {
  switch (below(rng, 4)) {
    case 0:
      return changeField(bytes, 0, kCoreFields, rng);
    case 1:
      return changeField(bytes, parts.stage(below(rng, parts.stageCount())), kStageFields, rng);
    case 2:
      return changeField(bytes, parts.stage(0), kDescriptionFields, rng);
    default:
      return changeField(bytes,
                         parts.segment(below(rng, std::max<std::size_t>(1, parts.segmentCount()))),
                         kSegmentFields, rng);
  }
}

/// A number of 1, 2, 4 or 8 bytes somewhere in [begin, begin + n).
void changeWord(Bytes& bytes, std::size_t begin, std::size_t n, std::mt19937_64& rng) {
  const std::size_t width = std::size_t{1} << below(rng, 4);
  if (n < width || begin + n > bytes.size()) {
    return;
  }
  // Fields stand at multiples of their width, mostly at the front of what they describe.
  const std::size_t n_places = n / width;
  const std::size_t place =
      rng() % 2 == 0 ? below(rng, std::min<std::size_t>(n_places, 16)) : below(rng, n_places);
  const FieldPlace field{begin + place * width, width};
  store(bytes, field, oddValue(rng, load(bytes, field)));
}

void changeConfig(Bytes& bytes, const FrameParts& parts, std::mt19937_64& rng) {
  const std::size_t stage = parts.stage(below(rng, parts.stageCount()));
  const std::size_t n_used = loadLe<std::uint32_t>(bytes.data() + stage + 168);
  changeWord(bytes, stage + kStageConfigOffset,
             std::clamp<std::size_t>(n_used, 8, FZM_STAGE_CONFIG_SIZE), rng);
}

/// Bytes put into or cut out of a segment, with the records following.
void resizeSegment(Bytes& bytes, const FrameParts& parts, std::mt19937_64& rng) {
  if (parts.segmentCount() == 0) {
    return;
  }
  const std::size_t i = below(rng, parts.segmentCount());
  const FieldPlace size_field{parts.segment(i) + kBufferSizeOffsets[0], 8};
  const FieldPlace place_field{parts.segment(i) + kBufferPlaceOffset, 8};
  const std::uint64_t n_old = load(bytes, size_field);
  const std::uint64_t place = load(bytes, place_field);
  if (place > parts.payloadBytes() || n_old > parts.payloadBytes() - place) {
    return;
  }
  const std::size_t n_new = rng() % 2 == 0 ? below(rng, n_old + 1) : n_old + below(rng, 40);
  const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(parts.payload() + place + n_old);
  if (n_new < n_old) {
    bytes.erase(end - static_cast<std::ptrdiff_t>(n_old - n_new), end);
  } else {
    Bytes more(n_new - n_old);
    std::generate(more.begin(), more.end(), [&] { return static_cast<std::uint8_t>(rng()); });
    bytes.insert(end, more.begin(), more.end());
  }
  for (const std::size_t offset : kBufferSizeOffsets) {
    store(bytes, {parts.segment(i) + offset, 8}, n_new);
  }
  for (std::size_t k = i + 1; k < parts.segmentCount(); ++k) {
    const FieldPlace later{parts.segment(k) + kBufferPlaceOffset, 8};
    store(bytes, later, load(bytes, later) + n_new - n_old);
  }
}

/// Another stage in place of one, with its own or the old settings.
void changeStage(Bytes& bytes, const FrameParts& parts, const Bytes& donor, std::mt19937_64& rng) {
  const std::size_t stage = parts.stage(below(rng, parts.stageCount()));
  const FrameParts donor_parts(donor);
  if (rng() % 2 == 0 && donor_parts.isFrame()) {
    const std::size_t from = donor_parts.stage(below(rng, donor_parts.stageCount()));
    const std::size_t n = rng() % 2 == 0 ? kRecordBytes : kStageConfigOffset + 132;
    std::copy_n(donor.begin() + static_cast<std::ptrdiff_t>(from), n,
                bytes.begin() + static_cast<std::ptrdiff_t>(stage));
    return;
  }
  const auto stages = allStages();
  store(bytes, {stage, 2}, stages[below(rng, stages.size())]->id);
}

void swapRecords(Bytes& bytes, const FrameParts& parts, std::mt19937_64& rng) {
  const std::size_t n = parts.stageCount() + parts.segmentCount();
  const std::size_t a = parts.stage(below(rng, n));
  const std::size_t b = parts.stage(below(rng, n));
  std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                   bytes.begin() + static_cast<std::ptrdiff_t>(a + kRecordBytes),
                   bytes.begin() + static_cast<std::ptrdiff_t>(b));
}

/// All places that state the decoded length say the same large or small number.
void claimLength(Bytes& bytes, const FrameParts& parts, std::mt19937_64& rng) {
  const std::uint64_t n_bytes = oddValue(rng, load(bytes, {8, 8})) & ~std::uint64_t{7};
  store(bytes, {8, 8}, n_bytes);
  store(bytes, {40, 8}, n_bytes);
  const std::size_t description = parts.stage(0) + kDescriptionOffset;
  const std::size_t type = bytes[description + 4];
  const std::uint64_t value_bytes = type <= 9 ? std::uint64_t{1} << (type == 8   ? 2
                                                                     : type == 9 ? 3
                                                                                 : type % 4)
                                              : 1;
  store(bytes, {description + 8, 8}, n_bytes);
  store(bytes, {description + 16, 8}, n_bytes / value_bytes);
  store(bytes, {description + 24, 8}, 1);
  store(bytes, {description + 32, 8}, 1);
  if (rng() % 2 == 0) {
    // Many stages keep the number of values in one of the first words of their config.
    store(bytes, {parts.stage(0) + kStageConfigOffset + 4 * below(rng, 8), 4},
          n_bytes / value_bytes);
  }
}

/// A word of one to eight bytes in a list of them.
template <std::size_t N>
void changeBytes(std::array<std::uint8_t, N>& bytes, std::size_t n_used, std::mt19937_64& rng) {
  const std::size_t width = std::size_t{1} << below(rng, 4);
  const std::size_t place = below(rng, std::clamp<std::size_t>(n_used, 8, N) - width + 1);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + place, width);
  value = oddValue(rng, value);
  std::memcpy(bytes.data() + place, &value, width);
}

void changeRecords(OpenFrame& frame, std::mt19937_64& rng) {
  FZMStageInfo& stage = frame.header.stages[below(rng, frame.header.stages.size())];
  const auto stages = allStages();
  switch (below(rng, 6)) {
    case 0:
      stage.stage_version = static_cast<std::uint16_t>(oddValue(rng, stage.stage_version));
      break;
    case 1:
      stage.stage_type = stages[below(rng, stages.size())]->id;
      break;
    case 2:
      stage.input_buffer_ids[0] = static_cast<std::uint16_t>(oddValue(rng, stage.num_inputs));
      break;
    case 3:
      stage.num_outputs = static_cast<std::uint8_t>(below(rng, FZM_MAX_PORTS + 1));
      break;
    case 4:
      stage.config_size = static_cast<std::uint32_t>(below(rng, FZM_STAGE_CONFIG_SIZE + 1));
      break;
    default:
      std::swap(stage, frame.header.stages[below(rng, frame.header.stages.size())]);
  }
}

void changeDescription(FrameDescription& description, std::mt19937_64& rng) {
  switch (below(rng, 4)) {
    case 0:
      description.type = static_cast<DataType>(below(rng, 12));
      break;
    case 1:
      description.shape.n_axes = static_cast<std::uint8_t>(below(rng, FZM_MAX_AXES + 1));
      break;
    case 2: {
      std::uint64_t& extent = description.shape.extents[below(rng, 3)];
      extent = oddValue(rng, extent);
      break;
    }
    default:
      description.original_bytes = oddValue(rng, description.original_bytes);
  }
}

/// Bytes put into or cut out of the end of a segment, which may be the wrong one.
void changeSegments(OpenFrame& frame, std::mt19937_64& rng) {
  if (frame.header.buffers.empty()) {
    return;
  }
  FZMBufferEntry& segment = frame.header.buffers[below(rng, frame.header.buffers.size())];
  if (rng() % 4 == 0) {
    segment.dag_buffer_id = static_cast<std::uint16_t>(oddValue(rng, segment.dag_buffer_id));
    return;
  }
  const std::size_t n = 1 + below(rng, 40);
  if (rng() % 2 == 0) {
    segment.data_size += n;
    frame.payload.resize(frame.payload.size() + n, static_cast<std::uint8_t>(rng()));
  } else {
    const std::size_t n_less = std::min<std::size_t>({n, segment.data_size, frame.payload.size()});
    segment.data_size -= n_less;
    frame.payload.resize(frame.payload.size() - n_less);
  }
}

/// What records of a fixed length have a place for is found by reading these; false where the
/// frame is too damaged for that.
bool changeCompact(Bytes& bytes, std::size_t kind, std::mt19937_64& rng) try {
  OpenFrame frame(bytes);
  FZMStageInfo& stage = frame.header.stages[below(rng, frame.header.stages.size())];
  switch (kind) {
    case 5:
      changeRecords(frame, rng);
      break;
    case 6:
      changeDescription(frame.header.description, rng);
      break;
    case 12:
    case 13:
      changeSegments(frame, rng);
      break;
    case 14: {
      const std::uint64_t n_bytes = frame.header.core.uncompressed_size;
      frame.claimLength(oddValue(rng, n_bytes) / 8, rng() % 2 == 0 ? 4 : 8);
      break;
    }
    default:
      changeBytes(stage.stage_config, stage.config_size, rng);
  }
  bytes = frame.close();
  return true;
} catch (const Error&) {
  return false;
}

void changeOnce(Bytes& bytes,
                const std::vector<Seed>& seeds,
                std::mt19937_64& rng,
                bool& is_repaired) {
  if (bytes.empty()) {
    return;
  }
  const FrameParts parts(bytes);
  const std::size_t kind = below(rng, 16);
  if (isCompact(bytes) && kind >= 5 && (kind < 9 || kind > 11) && changeCompact(bytes, kind, rng)) {
    is_repaired = true;  // by being put together again
    return;
  }
  const bool is_damaged_compact =
      isCompact(bytes) && (kind < 2 || kind > 4) && (kind < 9 || kind > 11);
  if (kind < 2 || is_damaged_compact || (!parts.isFrame() && !isCompact(bytes))) {
    return editBytes(bytes, rng);
  }
  switch (kind) {
    case 2:
      return bytes.resize(below(rng, bytes.size()));
    case 3:
      return addGarbage(bytes, rng);
    case 4:
      return copyBlock(bytes, rng);
    case 5:
    case 6:
      return changeHeader(bytes, parts, rng);
    case 7:
    case 8:
      return changeConfig(bytes, parts, rng);
    case 9:
    case 10:
    case 11:
      return changeWord(bytes, parts.payload(), parts.payloadBytes(), rng);
    case 12:
      return resizeSegment(bytes, parts, rng);
    case 13:
      return changeStage(bytes, parts, seeds[below(rng, seeds.size())].frame, rng);
    case 14:
      return swapRecords(bytes, parts, rng);
    default:
      return claimLength(bytes, parts, rng);
  }
}

}  // namespace

Mutant makeMutant(const std::vector<Seed>& seeds, std::mt19937_64& rng) {
  Mutant mutant;
  mutant.seed_index = below(rng, seeds.size());
  mutant.bytes = seeds[mutant.seed_index].frame;
  mutant.is_repaired = rng() % 2 == 0;
  const std::size_t n = 1 + below(rng, 3);
  for (std::size_t i = 0; i < n; ++i) {
    changeOnce(mutant.bytes, seeds, rng, mutant.is_repaired);
  }
  if (mutant.is_repaired) {
    repairFrame(mutant.bytes);
  }
  mutant.is_changed = mutant.bytes != seeds[mutant.seed_index].frame;
  return mutant;
}

}  // namespace fz::trust
