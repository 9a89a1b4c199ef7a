// Huffman on a device.
#include <algorithm>

#include <cuda_runtime_api.h>

#include "coders/huffman/book.h"
#include "coders/huffman/cuda/kernels.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/huffman/stream.h"
#include "core/cuda_part_maker.h"
#include "core/require.h"
#include "cuda_check.h"
#include "mem/scratch.h"
#include "shared/bits.h"

namespace fz::huffman {

namespace {

/// Symbols that values of T can name.
template <class T>
std::uint32_t countedSymbols(std::uint32_t bklen) {
  return sizeof(T) == 1 ? std::min<std::uint32_t>(bklen, 256) : bklen;
}

/// The host's image of what counting left on the device.
struct Counts {
  CountHead head;
  std::span<std::uint64_t> counts;  ///< one per symbol of the book
};

std::uint64_t bitsOf(const Book& book, std::span<const std::uint64_t> counts) {
  std::uint64_t n_bits = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    n_bits += counts[s] * codeBits(book.codes[s]);
  }
  return n_bits;
}

}  // namespace

template <class T>
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(HuffmanStage<T>& stage) : stage_(stage) {}

  /// Waits once for the stream: the histogram is read back and the host builds the book from it.
  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override {
    return {{.config_offset = 3, .n_bytes = 8, .slot = kCountSlot}};
  }

 private:
  /// Counts on the device and reads the result back: the one place where encoding waits.
  Counts countSymbols(const cuda::Call& call);

  HuffmanStage<T>& stage_;
  // On the host.
  BookScratch host_book_;
  Scratch host_counts_;
  Scratch host_front_;  ///< header and book as they stand in the stream
  // On the device.
  Scratch counts_;
  Scratch codes_;
  Scratch states_;
  Scratch plan_;
};

template <class T>
Counts CudaSide<T>::countSymbols(const cuda::Call& call) {
  const std::uint32_t bklen = stage_.bklen_;
  const std::uint32_t n_symbols = countedSymbols<T>(bklen);
  const std::size_t head_words = sizeof(CountHead) / sizeof(std::uint64_t);
  const std::size_t n_words = head_words + n_symbols;
  const auto on_device = counts_.get<std::uint64_t>(call.pool, n_words);
  FZ_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0xFF, sizeof(CountHead), call.stream));
  FZ_CUDA_CHECK(cudaMemsetAsync(on_device.data() + head_words, 0, n_symbols * sizeof(std::uint64_t),
                                call.stream));
  launchCount({.in = call.inputs[0].data,
               .size = call.inputs[0].size,
               .n_symbols = n_symbols,
               .head = reinterpret_cast<CountHead*>(on_device.data()),
               .record = call.record},
              sizeof(T), call);
  const auto on_host = host_counts_.get<std::uint64_t>(nullptr, head_words + bklen);
  FZ_CUDA_CHECK(cudaMemcpyAsync(on_host.data(), on_device.data(), n_words * sizeof(std::uint64_t),
                                cudaMemcpyDeviceToHost, call.stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(call.stream));
  const std::span<std::uint64_t> counts = on_host.subspan(head_words, bklen);
  std::fill(counts.begin() + n_symbols, counts.end(), 0u);
  return {{on_host[0], on_host[1]}, counts};
}

template <class T>
void CudaSide<T>::encode(const cuda::Call& call) {
  const CudaInput& in = call.inputs[0];
  const CudaOutput& out = call.outputs[0];
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "Huffman: input size {} is not a multiple of {} bytes", in.size.n_bytes, sizeof(T));
  if (in.size.n_bytes == 0) {
    return;  // a fresh record says: no bytes, no values
  }
  // What is wrong with the values is recorded, not thrown: a stage before this one may have found
  // its output too small, and then the run is repeated.
  const Counts found = countSymbols(call);
  if (found.head.n_bytes % sizeof(T) != 0) {
    launchFailure(
        {.reason = static_cast<std::uint64_t>(Reason::kRaggedInput), .value = found.head.n_bytes},
        sizeof(T), call);
    return;
  }
  const std::uint64_t n_values = found.head.n_bytes / sizeof(T);
  if (n_values == 0) {
    return;
  }
  BlobHeader header{
      .bklen = stage_.bklen_,
      .partition_values = stage_.partitionValues(),
      .n_partitions = bits::ceilDiv<std::uint64_t>(n_values, stage_.partitionValues()),
      .n_values = n_values,
      .n_bits = 0,
      .n_words = n_values / 32};  // no code is shorter than a bit
  requireBlobFits(header, layoutOf(header, sizeof(T)));
  if (found.head.first_bad != ~std::uint64_t{0}) {
    launchFailure({.reason = static_cast<std::uint64_t>(Reason::kBadSymbol),
                   .index = found.head.first_bad,
                   .symbols = in.data},
                  sizeof(T), call);
    return;
  }
  const Book book = buildBook(found.counts, nullptr, host_book_);
  header.n_bits = bitsOf(book, found.counts);
  header.n_words = 0;  // the device will know
  const BlobLayout layout = layoutOf(header, sizeof(T));

  if (out.capacity_bytes >= layout.partition_bits) {
    const auto n_front = static_cast<std::size_t>(layout.partition_bits);
    const auto front = host_front_.get<std::uint8_t>(nullptr, n_front);
    writeHeader(header, layout, front);
    writeBook(book, sizeof(T), front.subspan(static_cast<std::size_t>(layout.book)));
    FZ_CUDA_CHECK(
        cudaMemcpyAsync(out.data, front.data(), n_front, cudaMemcpyHostToDevice, call.stream));
  }
  const std::uint32_t n_codes = countedSymbols<T>(stage_.bklen_);
  const auto codes = codes_.get<std::uint32_t>(call.pool, n_codes);
  FZ_CUDA_CHECK(cudaMemcpyAsync(codes.data(), book.codes.data(), codes.size_bytes(),
                                cudaMemcpyHostToDevice, call.stream));
  const auto states = states_.get<std::uint64_t>(call.pool, encodeStates(header.n_partitions));
  launchEncode({.in = in.data,
                .n_values = n_values,
                .n_partitions = header.n_partitions,
                .codes = codes.data(),
                .n_codes = n_codes,
                .longest = book.tables.longest,
                .states = states.data(),
                .out = out.data,
                .capacity_bytes = out.capacity_bytes,
                .layout = layout,
                .record = call.record},
               sizeof(T), header.partition_values, call);
}

template <class T>
void CudaSide<T>::finishEncode(const StageRecord& record) {
  stage_.count_ = {.n_values = record.value[kCountSlot], .known = true};
}

template <class T>
void CudaSide<T>::decode(const cuda::Call& call) {
  FZ_REQUIRE(stage_.count_.known, ErrorCode::kCorrupt,
             "Huffman: the config with the number of values is missing");
  const auto plan = plan_.get<DecodePlan>(call.pool, 1);
  launchDecode({.blob = call.inputs[0].data,
                .size = call.inputs[0].size,
                .bklen = stage_.bklen_,
                .plan = plan.data(),
                .out = call.outputs[0].data,
                .capacity_bytes = call.outputs[0].capacity_bytes,
                .size_known = call.outputs[0].size_known,
                .record = call.record},
               sizeof(T), call);
}

template <class T>
void CudaSide<T>::throwError(const StageRecord& record) const {
  switch (static_cast<Reason>(record.value[kReasonSlot])) {
    case Reason::kBadSymbol:
      detail::throwError(
          ErrorCode::kBadSize,
          fmt::format("Huffman: symbol {} at index {} is not below the book length (bklen) {}",
                      record.error_value, record.error_index, stage_.bklen_));
    case Reason::kRaggedInput:
      detail::throwError(ErrorCode::kBadSize,
                         fmt::format("Huffman: input size {} is not a multiple of {} bytes",
                                     record.error_value, sizeof(T)));
    case Reason::kTooLarge:
      detail::throwError(
          ErrorCode::kBadSize,
          fmt::format("Huffman: {} values need a stream of {} bytes; the limit of the format is {} "
                      "bytes",
                      record.value[kCountSlot], record.error_value, kMaxBlobBytes));
    case Reason::kBadHeader:
      detail::throwError(ErrorCode::kCorrupt,
                         "Huffman: the header contradicts itself, the config or the size");
    case Reason::kBadBook:
      detail::throwError(ErrorCode::kCorrupt, "Huffman: the book contradicts itself");
    default:
      detail::throwError(ErrorCode::kCorrupt,
                         fmt::format("Huffman: damaged codes in partition {}", record.error_index));
  }
}

MakeCudaPart cudaPartMaker() {
  return &makeCudaPart<CudaSide, HuffmanStage<std::uint8_t>, HuffmanStage<std::uint16_t>,
                       HuffmanStage<std::uint32_t>>;
}

}  // namespace fz::huffman
