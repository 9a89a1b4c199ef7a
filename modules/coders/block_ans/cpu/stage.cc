// BlockANS on the CPU: groups are measured, chunks coded, in any order and by any threads.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/parallel_for.h"
#include "coders/block_ans/block_ans_stage.h"
#include "coders/block_ans/book.h"
#include "coders/block_ans/book_codec.h"
#include "coders/block_ans/cpu/chunks.h"
#include "coders/block_ans/stream.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "mem/scratch.h"

namespace fz::block_ans {

namespace {

// Work per task only; no byte depends on it.
constexpr std::size_t kTaskChunks = 2;
constexpr std::size_t kThreadTasks = 4;             // so that threads need not be equally fast
constexpr std::uint64_t kMaxTaskGroups = 1u << 18;  // counters have 32 bits

/// How values are cut into chunks.
struct Cut {
  std::span<Chunk> chunks;
  std::size_t max_words;  ///< that a chunk can take while it is encoded
};

std::uint64_t groupsOf(std::uint64_t n_values) {
  return bits::ceilDiv<std::uint64_t>(n_values, kGroupValues);
}

/// Moves the chunks together behind the directory, and writes what is before them. Returns the
/// bytes of the stream; at least those of the values: nothing was moved.
std::size_t place(const Book& book,
                  std::span<Chunk> chunks,
                  std::size_t value_bytes,
                  MutableByteView out) {
  const std::size_t directory = kHeaderBytes + book.n_bytes;
  std::size_t at = directory + kEntryBytes * chunks.size();
  for (const Chunk& chunk : chunks) {
    at += 2 * std::size_t{chunk.n_words};
  }
  const Chunk& last = chunks.back();
  const std::size_t n_stored =
      kHeaderBytes + static_cast<std::size_t>(last.first_value + last.n_values) * value_bytes;
  if (at >= n_stored) {
    return n_stored;
  }
  const std::size_t n_bytes = at;
  // Chunks take no more room than their values, so those that move towards the end come first.
  // From the last of them back to the first, then the others: no chunk runs over another.
  const auto move = [&](Chunk& chunk, std::size_t to) {
    std::memmove(out.data() + to, out.data() + chunk.byte_offset, 2 * std::size_t{chunk.n_words});
    chunk.byte_offset = to;
  };
  for (std::size_t c = chunks.size(); c-- > 0;) {
    at -= 2 * std::size_t{chunks[c].n_words};
    if (at > chunks[c].byte_offset) {
      move(chunks[c], at);
    }
  }
  for (Chunk& chunk : chunks) {
    if (at < chunk.byte_offset) {
      move(chunk, at);
    }
    at += 2 * std::size_t{chunk.n_words};
  }
  writeHeader(book.n_bytes == 0 ? Form::kBank : Form::kCounted, chunks.size(), out);
  std::memcpy(out.data() + kHeaderBytes, book.bytes.data(), book.n_bytes);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    writeEntry(chunks[c], out.data() + directory + kEntryBytes * c);
  }
  return n_bytes;
}

}  // namespace

/// What a stage keeps between calls.
struct BlockAnsBase::State {
  Scratch classes;
  Scratch weights;  ///< of groups
  Scratch counts;
  Scratch chunks;
  Scratch stacks;
  Scratch book_room;
  Scratch tables;

  /// Gives f(task, groups) a share of the groups for each task; returns the number of tasks.
  template <class F>
  static void forTasks(const CpuExecutor& executor, std::uint64_t n_groups, F f) {
    const std::uint64_t n_tasks = taskCount(executor, n_groups);
    parallelFor(executor, static_cast<std::size_t>(n_tasks), [&](std::size_t task) {
      f(task, GroupRange{n_groups * task / n_tasks, n_groups * (task + 1) / n_tasks});
    });
  }
  static std::uint64_t taskCount(const CpuExecutor& executor, std::uint64_t n_groups) {
    return std::max(bits::ceilDiv(n_groups, kMaxTaskGroups),
                    std::min<std::uint64_t>(n_groups, kThreadTasks * executor.threadCount()));
  }

  void measure(const ValueView& in, const CpuRun& run, Book& book);
  Cut cutByWeight(const ValueView& in, const CpuRun& run, std::uint32_t setting);
  Cut cutEvenly(const ValueView& in, const CpuRun& run, std::uint32_t setting);
  void encodeChunks(const ValueView& in,
                    const CpuRun& run,
                    const Cut& cut,
                    const Coding& coding,
                    bool is_measured);
  std::size_t encode(const ValueView& in, const CpuRun& run, const Settings& settings);
};

/// Classes of all blocks, and the tables that are made of what is counted.
void BlockAnsBase::State::measure(const ValueView& in, const CpuRun& run, Book& book) {
  const std::uint64_t n_groups = groupsOf(in.n_values);
  const auto n_tasks = static_cast<std::size_t>(taskCount(run.executor, n_groups));
  const auto of_blocks = classes.get<std::uint8_t>(run.pool, n_groups * kGroupBlocks);
  const auto of_groups = weights.get<std::uint32_t>(run.pool, n_groups);
  const auto sub = counts.get<SubCounts>(run.pool, n_tasks);
  forTasks(run.executor, n_groups, [&](std::size_t task, GroupRange groups) {
    std::memset(&sub[task], 0, sizeof(SubCounts));
    measureGroups(in, groups, of_blocks.data(), &sub[task]);
    for (std::uint64_t g = groups.begin; g < groups.end; ++g) {
      of_groups[g] = groupWeight(&of_blocks[static_cast<std::size_t>(g * kGroupBlocks)]);
    }
  });
  Counts sums = {};
  for (const SubCounts& part : sub) {
    for (const auto& copy : part.of) {
      for (std::uint32_t t = 0; t < kTables; ++t) {
        for (std::uint32_t s = 0; s < kSymbols; ++s) {
          sums.of[t][s] += copy[t][s];
        }
      }
    }
  }
  makeBook(sums, in.value_bytes, book);
}

/// Chunks of about the same weight.
Cut BlockAnsBase::State::cutByWeight(const ValueView& in,
                                     const CpuRun& run,
                                     std::uint32_t setting) {
  const std::uint64_t n_groups = groupsOf(in.n_values);
  const auto of_groups = weights.get<std::uint32_t>(run.pool, n_groups);
  const std::uint64_t total = std::accumulate(of_groups.begin(), of_groups.end(), std::uint64_t{0});
  const std::uint32_t weight = chunkWeight(setting, total);
  const auto n_chunks = static_cast<std::size_t>(total / weight + 1);
  const auto cut = chunks.get<Chunk>(run.pool, n_chunks);
  std::size_t n_cut = 0;
  std::uint64_t before = 0;
  for (std::uint64_t g = 0; g < n_groups; ++g) {
    if (before / weight >= n_cut) {
      cut[n_cut++] = {.first_value = g * kGroupValues,
                      .n_values = 0,
                      .byte_offset = 0,
                      .n_groups = 0,
                      .n_words = 0};
    }
    ++cut[n_cut - 1].n_groups;
    before += of_groups[g];
  }
  return {cut.first(n_cut), maxChunkWords(weight)};
}

/// Chunks of a number of groups that nothing but the size of the data decides.
Cut BlockAnsBase::State::cutEvenly(const ValueView& in, const CpuRun& run, std::uint32_t setting) {
  const std::uint64_t n_groups = groupsOf(in.n_values);
  const std::uint64_t weight = chunkWeight(setting, n_groups * kAssumedGroupWeight);
  const std::uint64_t groups_each = weight / kAssumedGroupWeight;
  const auto cut =
      chunks.get<Chunk>(run.pool, static_cast<std::size_t>(bits::ceilDiv(n_groups, groups_each)));
  for (std::size_t c = 0; c < cut.size(); ++c) {
    cut[c] = {
        .first_value = c * groups_each * kGroupValues,
        .n_values = 0,
        .byte_offset = 0,
        .n_groups = static_cast<std::uint32_t>(std::min(groups_each, n_groups - c * groups_each)),
        .n_words = 0};
  }
  return {cut, static_cast<std::size_t>(groups_each) * kMaxGroupWords};
}

/// Encodes each chunk to where its values would be in a stored stream.
void BlockAnsBase::State::encodeChunks(const ValueView& in,
                                       const CpuRun& run,
                                       const Cut& cut,
                                       const Coding& coding,
                                       bool is_measured) {
  const std::uint64_t n_groups = groupsOf(in.n_values);
  const auto of_blocks = classes.get<std::uint8_t>(run.pool, n_groups * kGroupBlocks);
  const std::size_t n_chunks = cut.chunks.size();
  const std::size_t n_tasks = std::min(n_chunks, kThreadTasks * run.executor.threadCount());
  const std::size_t stack_words = cut.max_words + kStackSlack;
  const auto words = stacks.get<std::uint16_t>(run.pool, n_tasks * stack_words);
  EncodeTables& with = tables.get<EncodeTables>(run.pool, 1)[0];
  makeEncodeTables(coding, with);
  parallelFor(run.executor, n_tasks, [&](std::size_t task) {
    for (std::size_t c = n_chunks * task / n_tasks; c < n_chunks * (task + 1) / n_tasks; ++c) {
      Chunk& chunk = cut.chunks[c];
      const std::uint64_t first_group = chunk.first_value / kGroupValues;
      chunk.n_values =
          std::min(std::uint64_t{chunk.n_groups} * kGroupValues, in.n_values - chunk.first_value);
      chunk.byte_offset = kHeaderBytes + chunk.first_value * in.value_bytes;
      if (!is_measured) {
        measureGroups(in, {first_group, first_group + chunk.n_groups}, of_blocks.data(), nullptr);
      }
      chunk.n_words =
          encodeChunk(in, chunk, of_blocks.data(), with, words.data() + task * stack_words,
                      run.outputs[0].data() + chunk.byte_offset);
    }
  });
}

/// Writes the smallest form; returns its bytes.
std::size_t BlockAnsBase::State::encode(const ValueView& in,
                                        const CpuRun& run,
                                        const Settings& settings) {
  const MutableByteView out = run.outputs[0];
  const bool is_counted = settings.tables == BlockAnsTables::Counted;
  Book& book = book_room.get<Book>(run.pool, 1)[0];
  Cut cut = {};
  if (is_counted) {
    measure(in, run, book);
    cut = cutByWeight(in, run, settings.chunk_weight);
  } else {
    book.coding = bank(in.value_bytes);
    book.n_bytes = 0;
    cut = cutEvenly(in, run, settings.chunk_weight);
  }
  FZ_REQUIRE(cut.chunks.size() <= kMaxChunks, ErrorCode::kBadSize,
             "BlockANS: {} chunks, at most {}", cut.chunks.size(), kMaxChunks);
  encodeChunks(in, run, cut, book.coding, is_counted);
  const std::size_t n_stored =
      kHeaderBytes + static_cast<std::size_t>(in.n_values) * in.value_bytes;
  std::size_t n_bytes = place(book, cut.chunks, in.value_bytes, out);
  if (in.n_values <= kMaxPackedValues) {
    std::uint32_t u[kMaxPackedValues];
    mapValues(in, u);
    const std::span<const std::uint32_t> numbers(u, static_cast<std::size_t>(in.n_values));
    const std::size_t n_packed = packedBytes(numbers);
    if (n_packed < n_bytes) {
      writePacked(numbers, out);
      return n_packed;
    }
  }
  if (n_bytes == n_stored) {
    writeHeader(Form::kStored, 0, out);
    std::memcpy(out.data() + kHeaderBytes, in.values, n_stored - kHeaderBytes);
  }
  return n_bytes;
}

BlockAnsBase::BlockAnsBase(DataType type) : type_(type), state_(std::make_unique<State>()) {
}
BlockAnsBase::~BlockAnsBase() = default;

void BlockAnsBase::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  FZ_REQUIRE(in.size() % valueBytes() == 0, ErrorCode::kBadSize,
             "BlockANS: input size {} is not a multiple of {} bytes", in.size(), valueBytes());
  settings_.n_values = in.size() / valueBytes();
  if (settings_.n_values == 0) {
    setActualBytes(0, 0);
    return;
  }
  const std::size_t n_needed = encodedBytes(in.size())[0];
  if (run.outputs[0].size() < n_needed) {
    requestOutputBytes(0, n_needed);
    return;
  }
  const ValueView values{in.data(), settings_.n_values, valueBytes(),
                         static_cast<Map>(settings_.map)};
  setActualBytes(0, state_->encode(values, run, settings_));
}

void BlockAnsBase::decodeCpu(const CpuRun& run) {
  const ByteView stream = run.inputs[0];
  checkSize(stream.size());
  const auto n_bytes = static_cast<std::size_t>(settings_.n_values) * valueBytes();
  if (n_bytes == 0) {
    setActualBytes(0, 0);
    return;
  }
  const Header header = readHeader(stream);
  FZ_REQUIRE(header.form != Form::kStored || stream.size() == kHeaderBytes + n_bytes,
             ErrorCode::kCorrupt, "BlockANS: {} bytes of values stored in a stream of {}", n_bytes,
             stream.size());
  FZ_REQUIRE(header.form != Form::kPacked || settings_.n_values <= kMaxPackedValues,
             ErrorCode::kCorrupt, "BlockANS: {} packed values, at most {}", settings_.n_values,
             kMaxPackedValues);
  std::span<Chunk> chunks;
  DecodeTables& tables = state_->tables.get<DecodeTables>(run.pool, 1)[0];
  if (header.n_chunks != 0) {
    std::size_t offset = kHeaderBytes;
    Coding coding = bank(valueBytes());
    if (header.form == Form::kCounted) {
      offset += readBook(stream.subspan(offset), valueBytes(), coding);
    }
    chunks = state_->chunks.get<Chunk>(run.pool, static_cast<std::size_t>(header.n_chunks));
    readDirectory(stream, offset, settings_.n_values, valueBytes(), chunks);
    makeDecodeTables(coding, static_cast<Map>(settings_.map), tables);
  }
  if (run.outputs[0].size() < n_bytes) {
    requestOutputBytes(0, n_bytes);
    return;
  }
  void* const out = run.outputs[0].data();
  const ValueView shape{nullptr, settings_.n_values, valueBytes(), static_cast<Map>(settings_.map)};
  if (header.form == Form::kStored) {
    std::memcpy(out, stream.data() + kHeaderBytes, n_bytes);
  } else if (header.form == Form::kPacked) {
    std::uint32_t u[kMaxPackedValues];
    readPacked(stream, valueBytes(), {u, static_cast<std::size_t>(settings_.n_values)});
    unmapValues(u, shape, out);
  }
  FirstIndex damaged;
  parallelFor(run.executor, bits::ceilDiv(chunks.size(), kTaskChunks), [&](std::size_t task) {
    const std::size_t first = task * kTaskChunks;
    const auto of_task = chunks.subspan(first, std::min(kTaskChunks, chunks.size() - first));
    const std::size_t n_good = decodeChunks(stream, of_task, tables, shape, out);
    if (n_good != of_task.size()) {
      damaged.record(first + n_good);
    }
  });
  FZ_REQUIRE(!damaged.found(), ErrorCode::kCorrupt, "BlockANS: chunk {} of {} is damaged",
             damaged.value(), chunks.size());
  setActualBytes(0, n_bytes);
}

}  // namespace fz::block_ans
