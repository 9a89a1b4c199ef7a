#include "coders/huffman/huffman_stage.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/parallel_for.h"
#include "coders/huffman/huffman_blob_impl.h"
#include "coders/huffman/huffman_book_impl.h"
#include "coders/huffman/huffman_cpu.h"
#include "coders/huffman/huffman_workspace_impl.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/bits.h"

namespace fz {

namespace huffman {

namespace {

// Work per task only; no byte depends on these.
constexpr std::uint64_t kHistogramTile = 1u << 18;
constexpr std::uint64_t kMaxHistogramTile = 1u << 30;  // counters have 32 bits
constexpr std::uint64_t kTaskPartitions = 64;

/// A tree deeper than kMaxCodeBits needs at least this many values (the Fibonacci number F(30)):
/// below, code lengths are optimal and their sum at most that of a fixed-length code.
constexpr std::uint64_t kFirstLimitedCount = 832040;

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
                                         Workspace& work) {
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
               Workspace& work) {
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

/// Bytes of a stream whose codes take bits_per_value on average.
std::size_t blobBytes(std::uint64_t n_values,
                      std::uint64_t bits_per_value,
                      const BlobHeader& shape,
                      std::size_t value_bytes) {
  BlobHeader header = shape;
  header.n_partitions = ceilDiv(n_values, shape.partition_values);
  header.n_words = n_values / 32 * bits_per_value + bits_per_value + header.n_partitions;
  return static_cast<std::size_t>(layoutOf(header, value_bytes).end);
}

/// Length of a fixed-length code for so many values of a book.
std::uint64_t fixedBits(std::uint64_t n_values, std::uint32_t bklen) {
  const auto n_symbols = std::min<std::uint64_t>(n_values, bklen);
  return std::max<std::uint64_t>(1, bits::bitWidth(n_symbols - 1));
}

}  // namespace
}  // namespace huffman

using namespace huffman;  // NOLINT: this file is the stage's own

template <class T>
HuffmanStage<T>::HuffmanStage() : work_(std::make_unique<Workspace>()) {
}
template <class T>
HuffmanStage<T>::~HuffmanStage() = default;

template <class T>
void HuffmanStage<T>::setBklen(std::uint32_t bklen) {
  FZ_REQUIRE_ARG(bklen >= 1 && bklen <= kMaxBklen, "Huffman: bklen must be 1 to {}, is {}",
                 +kMaxBklen, bklen);
  bklen_ = bklen;
}

template <class T>
void HuffmanStage<T>::setEncodeMode(HuffmanEncodeMode mode) {
  FZ_REQUIRE_ARG(mode == HuffmanEncodeMode::Coarse || mode == HuffmanEncodeMode::Fine,
                 "Huffman: encode mode must be Coarse or Fine, is {}", static_cast<int>(mode));
  mode_ = mode;
}

template <class T>
std::uint32_t HuffmanStage<T>::partitionValues() const {
  return mode_ == HuffmanEncodeMode::Fine ? kFineValues : kCoarseValues;
}

template <class T>
SimpleStage::PortBytes HuffmanStage<T>::encodedBytes(std::size_t input_bytes) const {
  const std::uint64_t n = input_bytes / sizeof(T);
  const BlobHeader shape{.bklen = bklen_, .partition_values = partitionValues()};
  return {n == 0 ? 0 : blobBytes(n, fixedBits(n, bklen_), shape, sizeof(T))};
}

template <class T>
SimpleStage::PortBytes HuffmanStage<T>::maxEncodedBytes(std::size_t input_bytes) const {
  const std::uint64_t n = input_bytes / sizeof(T);
  const BlobHeader shape{.bklen = bklen_, .partition_values = partitionValues()};
  const std::uint64_t n_bits = n < kFirstLimitedCount ? fixedBits(n, bklen_) : kMaxCodeBits;
  return {n == 0 ? 0 : blobBytes(n, n_bits, shape, sizeof(T))};
}

template <class T>
std::size_t HuffmanStage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  const std::uint64_t n_bytes = encoded_bytes[0];
  FZ_REQUIRE(state_.known, ErrorCode::kCorrupt,
             "Huffman: the config with the number of values is missing");
  if (state_.n_values == 0) {
    FZ_REQUIRE(n_bytes == 0, ErrorCode::kCorrupt, "Huffman: {} bytes for no values", n_bytes);
    return 0;
  }
  // At least one bit per value besides header and book.
  const std::uint64_t fixed = kHeaderBytes + kBookTableBytes + std::uint64_t{sizeof(T)} * bklen_;
  FZ_REQUIRE(n_bytes > fixed && state_.n_values <= 8 * (n_bytes - fixed), ErrorCode::kCorrupt,
             "Huffman: {} bytes cannot hold {} values with a book of {}", n_bytes, state_.n_values,
             bklen_);
  return static_cast<std::size_t>(state_.n_values) * sizeof(T);
}

template <class T>
void HuffmanStage<T>::encodeCpu(const CpuRun& run) {
  const ByteView in = run.inputs[0];
  FZ_REQUIRE(in.size() % sizeof(T) == 0, ErrorCode::kBadSize,
             "Huffman: input of {} bytes is no whole number of {}-byte values", in.size(),
             sizeof(T));
  state_ = {.n_values = in.size() / sizeof(T), .known = true};
  if (state_.n_values == 0) {
    setActualBytes(0, 0);
    return;
  }
  const ValueView values{in.data(), state_.n_values, sizeof(T), partitionValues()};
  BlobHeader header{.bklen = bklen_,
                    .partition_values = values.partition_values,
                    .n_partitions = ceilDiv(values.n_values, values.partition_values),
                    .n_values = values.n_values,
                    .n_bits = 0,
                    .n_words = values.n_values / 32};  // no code is shorter than a bit
  requireBlobFits(header, layoutOf(header, sizeof(T)));

  const std::span<const std::uint64_t> counts = histogram(values, bklen_, run, *work_);
  if (counts[bklen_] != 0) {
    throwOutOfRange(reinterpret_cast<const T*>(in.data()), state_.n_values, bklen_);
  }
  const Book book = buildBook(counts.first(bklen_), run.pool, work_->book);

  const auto n_partitions = static_cast<std::size_t>(header.n_partitions);
  const auto n_bits = work_->partition_bits.get<std::uint32_t>(run.pool, n_partitions);
  const auto offsets = work_->partition_offsets.get<std::uint32_t>(run.pool, n_partitions);
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
  writeBlob(values, book, header, run, *work_);
  setActualBytes(0, static_cast<std::size_t>(layout.end));
}

template <class T>
void HuffmanStage<T>::decodeCpu(const CpuRun& run) {
  const ByteView blob = run.inputs[0];
  const std::size_t n_bytes = decodedBytes({{blob.size()}});
  if (n_bytes == 0) {
    setActualBytes(0, 0);
    return;
  }
  const BlobHeader header = readHeader(blob, sizeof(T));
  FZ_REQUIRE(header.n_values == state_.n_values && header.bklen == bklen_, ErrorCode::kCorrupt,
             "Huffman: stream of {} values with a book of {}, config says {} and {}",
             header.n_values, header.bklen, state_.n_values, bklen_);
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "Huffman: output needs {} bytes, has {}", n_bytes, run.outputs[0].size());
  const BlobLayout layout = layoutOf(header, sizeof(T));
  const ByteView stored =
      blob.subspan(static_cast<std::size_t>(layout.book),
                   static_cast<std::size_t>(layout.partition_bits - layout.book));
  const BookTables book = readBook(stored, sizeof(T), header.bklen);
  const std::uint8_t* keys = stored.data() + kBookTableBytes;
  makeDecodeTable(book, keys, sizeof(T), work_->table);
  const DecodeJob job{.book = &book,
                      .table = &work_->table,
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
           [&](Range range) { damaged.note(readPartitions(job, range)); });
  FZ_REQUIRE(!damaged.found(), ErrorCode::kCorrupt, "Huffman: damaged codes in partition {} of {}",
             damaged.value(), header.n_partitions);
  setActualBytes(0, n_bytes);
}

template <class T>
void HuffmanStage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>));
  out.u16(static_cast<std::uint16_t>(bklen_)).u64(state_.n_values);  // 65536 is stored as 0
}

template <class T>
void HuffmanStage<T>::readConfig(ByteReader& in) {
  if (in.remaining() == 0) {  // a file without a config means uint16; decoding misses the count,
    bklen_ = kDefaultBklen;   // whatever the frame before had
    state_ = {};
    return;
  }
  const std::uint8_t type = in.u8();
  const std::uint32_t bklen = in.u16();
  const std::uint64_t n_values = in.u64();
  FZ_REQUIRE(!in.failed() && type == static_cast<std::uint8_t>(kDataTypeOf<T>), ErrorCode::kCorrupt,
             "Huffman: config of 11 bytes for {} needed, type {} came",
             dataTypeToString(kDataTypeOf<T>), type);
  bklen_ = bklen == 0 ? kMaxBklen : bklen;
  state_ = {.n_values = n_values, .known = true};
}

template <class T>
std::vector<DeviceField> HuffmanStage<T>::deviceFields() const {
  return {{.config_offset = 3, .n_bytes = 8, .slot = kCountSlot}};
}

template <class T>
const ParamTable& HuffmanStage<T>::paramTable() const {
  static const ParamTable kTable({
      intParam<HuffmanStage>(
          "bklen", kDefaultBklen, {1, kMaxBklen},
          "number of possible symbols; every value must be below it", &HuffmanStage::getBklen,
          [](HuffmanStage& s, std::int64_t v) { s.setBklen(static_cast<std::uint32_t>(v)); }),
      choiceParam<HuffmanStage>(
          "encode_mode", "Coarse", {"Coarse", "Fine"},
          "values per independently decoded partition: 768 (Coarse) or 1024 (Fine)",
          [](const HuffmanStage& s) {
            return s.mode_ == HuffmanEncodeMode::Fine ? "Fine" : "Coarse";
          },
          [](HuffmanStage& s, const std::string& v) {
            s.setEncodeMode(v == "Fine" ? HuffmanEncodeMode::Fine : HuffmanEncodeMode::Coarse);
          }),
  });
  return kTable;
}

template class HuffmanStage<std::uint8_t>;
template class HuffmanStage<std::uint16_t>;
template class HuffmanStage<std::uint32_t>;

namespace huffman {

namespace {

using Types = TypeList<std::uint8_t, std::uint16_t, std::uint32_t>;

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<HuffmanStage>(types, Types{});
}

StageTypes typesFromConfig(ByteView config) {
  return {config.empty() ? DataType::UINT16 : static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const HuffmanStage<std::uint16_t> kStage;
  return kStage.paramTable();
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 6,
      .name = "Huffman",
      .category = "coder",
      .summary = "canonical Huffman codes in independently decodable partitions",
      .type_keys = {{"input_type", DataType::UINT16}},
      .type_combinations = combinationsOf(Types{}),
      .aliases = {"huf"},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
      .graph_compatible_forward = false,  // the host builds the book
  };
  return kDescriptor;
}

}  // namespace huffman
}  // namespace fz
