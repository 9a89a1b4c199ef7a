// Huffman on the CPU.
#include <algorithm>

#include "backends/cpu/parallel_for.h"
#include "coders/huffman/book.h"
#include "coders/huffman/cpu/chunks.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/huffman/stream.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "mem/scratch.h"
#include "shared/bits.h"

namespace fz {

using namespace huffman;  // NOLINT: this file is the stage's own

namespace {

// Work per task only; no byte depends on these.
constexpr std::uint64_t kHistogramTile = 1u << 18;
constexpr std::uint64_t kMaxHistogramTile = 1u << 30;  // counters have 32 bits
constexpr std::uint64_t kTaskPartitions = 64;

/// What a stage keeps between calls.
struct Scratches {
  Scratch sub_histograms;
  Scratch counts;
  BookScratch book;
  Scratch partition_bits;
  Scratch partition_offsets;
  DecodeTable table;
};

std::uint64_t ceilDiv(std::uint64_t a, std::uint64_t b) {
  return bits::ceilDiv(a, b);
}

template <class F>
void forTasks(const CpuExecutor& executor, std::uint64_t n_partitions, F f) {
  parallelFor(executor, ceilDiv(n_partitions, kTaskPartitions), [&](std::size_t task) {
    const std::uint64_t begin = task * kTaskPartitions;
    f(Range{begin, std::min(begin + kTaskPartitions, n_partitions)});
  });
}

/// counts[symbol] for symbols below bklen, and at index bklen how many values are not below it.
std::span<const std::uint64_t> histogram(const ValueView& in,
                                         std::uint32_t bklen,
                                         const CpuRun& run,
                                         Scratches& work) {
  const std::size_t stride = bits::roundUp<std::size_t>(bklen + std::size_t{1}, 16);
  // Integer sums do not depend on their order, so threads may decide how many tables there are.
  const std::uint64_t n_tiles = std::max(
      ceilDiv(in.n_values, kMaxHistogramTile),
      std::min<std::uint64_t>(ceilDiv(in.n_values, kHistogramTile), run.executor.threadCount()));
  const std::uint64_t tile_values = ceilDiv(in.n_values, n_tiles);
  const std::size_t tile_counters = kSubHistograms * stride;
  const auto n_counters = static_cast<std::size_t>(n_tiles) * tile_counters;
  const std::span<std::uint32_t> sub = work.sub_histograms.get<std::uint32_t>(run.pool, n_counters);
  parallelFor(run.executor, static_cast<std::size_t>(n_tiles), [&](std::size_t tile) {
    const std::span<std::uint32_t> counters = sub.subspan(tile * tile_counters, tile_counters);
    std::fill(counters.begin(), counters.end(), 0u);
    const std::uint64_t begin = std::min(tile * tile_values, in.n_values);
    countValues(in, {begin, std::min(begin + tile_values, in.n_values)}, bklen, stride,
                counters.data());
  });
  const std::span<std::uint64_t> counts =
      work.counts.get<std::uint64_t>(run.pool, bklen + std::size_t{1});
  std::fill(counts.begin(), counts.end(), 0u);
  for (std::size_t at = 0; at < n_counters; at += stride) {
    for (std::size_t s = 0; s < counts.size(); ++s) {
      counts[s] += sub[at + s];
    }
  }
  return counts;
}

template <class T>
[[noreturn]] void throwOutOfRange(const T* values, std::size_t n_values, std::uint32_t bklen) {
  const T* found = std::find_if(values, values + n_values, [&](T v) { return v >= bklen; });
  detail::throwError(
      ErrorCode::kBadSize,
      fmt::format("Huffman: symbol {} at index {} is not below the book length (bklen) {}",
                  std::uint64_t{*found}, found - values, bklen));
}

/// Writes everything; the partition tables are in the workspace.
void writeBlob(const ValueView& in,
               const Book& book,
               const BlobHeader& header,
               const CpuRun& run,
               Scratches& work) {
  const MutableByteView out = run.outputs[0];
  const BlobLayout layout = layoutOf(header, in.value_bytes);
  writeHeader(header, layout, out);
  writeBook(
      book, in.value_bytes,
      out.subspan(layout.book, static_cast<std::size_t>(layout.partition_bits - layout.book)));
  const auto n = static_cast<std::size_t>(header.n_partitions);
  const auto n_bits = work.partition_bits.get<std::uint32_t>(run.pool, n);
  const auto offsets = work.partition_offsets.get<std::uint32_t>(run.pool, n);
  for (std::size_t p = 0; p < n; ++p) {
    storeWord(out.data() + layout.partition_bits, p, n_bits[p]);
    storeWord(out.data() + layout.partition_offsets, p, offsets[p]);
  }
  const EncodeJob job{book.codes.data(), book.tables.longest,
                      static_cast<std::uint32_t>(ceilDiv(header.n_bits, header.n_values)),
                      offsets.data(), out.data() + layout.words};
  forTasks(run.executor, header.n_partitions,
           [&](Range range) { writePartitions(in, range, job); });
}

}  // namespace

template <class T>
struct HuffmanStage<T>::State : Scratches {};

template <class T>
HuffmanStage<T>::HuffmanStage() : state_(std::make_unique<State>()) {
}
template <class T>
HuffmanStage<T>::~HuffmanStage() = default;

template <class T>
void HuffmanStage<T>::encodeCpu(const CpuRun& run) {
  Scratches& work = *state_;
  const ByteView in = run.inputs[0];
  FZ_REQUIRE(in.size() % sizeof(T) == 0, ErrorCode::kBadSize,
             "Huffman: input size {} is not a multiple of {} bytes", in.size(), sizeof(T));
  count_ = {.n_values = in.size() / sizeof(T), .known = true};
  if (count_.n_values == 0) {
    setActualBytes(0, 0);
    return;
  }
  const ValueView values{in.data(), count_.n_values, sizeof(T), partitionValues()};
  BlobHeader header{.bklen = bklen_,
                    .partition_values = values.partition_values,
                    .n_partitions = ceilDiv(values.n_values, values.partition_values),
                    .n_values = values.n_values,
                    .n_bits = 0,
                    .n_words = values.n_values / 32};  // no code is shorter than a bit
  requireBlobFits(header, layoutOf(header, sizeof(T)));

  const std::span<const std::uint64_t> counts = histogram(values, bklen_, run, work);
  if (counts[bklen_] != 0) {
    throwOutOfRange(reinterpret_cast<const T*>(in.data()), count_.n_values, bklen_);
  }
  const Book book = buildBook(counts.first(bklen_), run.pool, work.book);

  const auto n_partitions = static_cast<std::size_t>(header.n_partitions);
  const auto n_bits = work.partition_bits.get<std::uint32_t>(run.pool, n_partitions);
  const auto offsets = work.partition_offsets.get<std::uint32_t>(run.pool, n_partitions);
  forTasks(run.executor, n_partitions, [&](Range range) {
    countPartitionBits(values, range, book.codes.data(), n_bits.data());
  });
  header.n_words = 0;
  for (std::size_t p = 0; p < n_partitions; ++p) {
    offsets[p] = static_cast<std::uint32_t>(header.n_words);
    header.n_bits += n_bits[p];
    header.n_words += ceilDiv(n_bits[p], 32);
  }
  const BlobLayout layout = layoutOf(header, sizeof(T));
  requireBlobFits(header, layout);
  if (run.outputs[0].size() < layout.end) {
    requestOutputBytes(0, static_cast<std::size_t>(layout.end));
    return;
  }
  writeBlob(values, book, header, run, work);
  setActualBytes(0, static_cast<std::size_t>(layout.end));
}

template <class T>
void HuffmanStage<T>::decodeCpu(const CpuRun& run) {
  Scratches& work = *state_;
  const ByteView blob = run.inputs[0];
  const std::size_t n_bytes = decodedBytes({{blob.size()}});
  if (n_bytes == 0) {
    setActualBytes(0, 0);
    return;
  }
  const BlobHeader header = readHeader(blob, sizeof(T));
  FZ_REQUIRE(header.n_values == count_.n_values && header.bklen == bklen_, ErrorCode::kCorrupt,
             "Huffman: stream of {} values with a book of {}, but the config says {} and {}",
             header.n_values, header.bklen, count_.n_values, bklen_);
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "Huffman: output needs {} bytes, has {}", n_bytes, run.outputs[0].size());
  const BlobLayout layout = layoutOf(header, sizeof(T));
  const ByteView stored =
      blob.subspan(static_cast<std::size_t>(layout.book),
                   static_cast<std::size_t>(layout.partition_bits - layout.book));
  const BookTables book = readBook(stored, sizeof(T), header.bklen);
  const std::uint8_t* keys = stored.data() + kBookTableBytes;
  makeDecodeTable(book, keys, sizeof(T), work.table);
  const DecodeJob job{.book = &book,
                      .table = &work.table,
                      .keys = keys,
                      .partition_bits = blob.data() + layout.partition_bits,
                      .partition_offsets = blob.data() + layout.partition_offsets,
                      .words = blob.data() + layout.words,
                      .n_words = header.n_words,
                      .n_values = header.n_values,
                      .value_bytes = sizeof(T),
                      .partition_values = header.partition_values,
                      .out = run.outputs[0].data()};
  FirstIndex damaged;
  forTasks(run.executor, header.n_partitions,
           [&](Range range) { damaged.record(readPartitions(job, range)); });
  FZ_REQUIRE(!damaged.found(), ErrorCode::kCorrupt, "Huffman: damaged codes in partition {} of {}",
             damaged.value(), header.n_partitions);
  setActualBytes(0, n_bytes);
}

#define FZ_INSTANTIATE(T)                                  \
  template HuffmanStage<T>::HuffmanStage();                \
  template HuffmanStage<T>::~HuffmanStage();               \
  template void HuffmanStage<T>::encodeCpu(const CpuRun&); \
  template void HuffmanStage<T>::decodeCpu(const CpuRun&)
FZ_INSTANTIATE(std::uint8_t);
FZ_INSTANTIATE(std::uint16_t);
FZ_INSTANTIATE(std::uint32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
