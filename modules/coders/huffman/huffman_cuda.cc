#include "coders/huffman/huffman_cuda.h"

#include <algorithm>
#include <cstring>

#include <cuda_runtime_api.h>

#include "coders/huffman/huffman_blob_impl.h"
#include "coders/huffman/huffman_book_impl.h"
#include "coders/huffman/huffman_stage.h"
#include "coders/huffman/huffman_workspace_impl.h"
#include "core/require.h"
#include "cuda_check.h"
#include "shared/bits.h"

namespace fz {

using namespace huffman;  // NOLINT: this file is the stage's own

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

/// Counts on the device and reads the result back: the one place where encoding waits.
template <class T>
Counts countSymbols(const CudaRun& run, std::uint32_t bklen, Workspace& work) {
  const std::uint32_t n_symbols = countedSymbols<T>(bklen);
  const std::size_t head_words = sizeof(CountHead) / sizeof(std::uint64_t);
  const std::size_t n_words = head_words + n_symbols;
  const auto on_device = work.device_counts.get<std::uint64_t>(run.pool, n_words);
  FZ_CUDA_CHECK(cudaMemsetAsync(on_device.data(), 0xFF, sizeof(CountHead), run.stream));
  FZ_CUDA_CHECK(cudaMemsetAsync(on_device.data() + head_words, 0, n_symbols * sizeof(std::uint64_t),
                                run.stream));
  launchCount({.in = run.inputs[0].data,
               .size = run.inputs[0].size,
               .n_symbols = n_symbols,
               .head = reinterpret_cast<CountHead*>(on_device.data()),
               .record = run.record},
              sizeof(T), run.stream);
  const auto on_host = work.host_counts.get<std::uint64_t>(nullptr, head_words + bklen);
  FZ_CUDA_CHECK(cudaMemcpyAsync(on_host.data(), on_device.data(), n_words * sizeof(std::uint64_t),
                                cudaMemcpyDeviceToHost, run.stream));
  FZ_CUDA_CHECK(cudaStreamSynchronize(run.stream));
  const std::span<std::uint64_t> counts = on_host.subspan(head_words, bklen);
  std::fill(counts.begin() + n_symbols, counts.end(), 0u);
  return {{on_host[0], on_host[1]}, counts};
}

std::uint64_t bitsOf(const Book& book, std::span<const std::uint64_t> counts) {
  std::uint64_t n_bits = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    n_bits += counts[s] * codeBits(book.codes[s]);
  }
  return n_bits;
}

}  // namespace

template <class T>
void HuffmanStage<T>::encodeCuda(const CudaRun& run) {
  const CudaInput& in = run.inputs[0];
  const CudaOutput& out = run.outputs[0];
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % sizeof(T) == 0, ErrorCode::kBadSize,
             "Huffman: input of {} bytes is no whole number of {}-byte values", in.size.n_bytes,
             sizeof(T));
  if (in.size.n_bytes == 0) {
    return;  // a fresh record says: no bytes, no values
  }
  // What is wrong with the values is noted, not thrown: a stage before this one may have found its
  // output too small, and then the run is repeated.
  const Counts found = countSymbols<T>(run, bklen_, *work_);
  if (found.head.n_bytes % sizeof(T) != 0) {
    launchNote(
        {.reason = static_cast<std::uint64_t>(Reason::kRaggedInput), .value = found.head.n_bytes},
        run.record, sizeof(T), run.stream);
    return;
  }
  const std::uint64_t n_values = found.head.n_bytes / sizeof(T);
  if (n_values == 0) {
    return;
  }
  BlobHeader header{.bklen = bklen_,
                    .partition_values = partitionValues(),
                    .n_partitions = bits::ceilDiv<std::uint64_t>(n_values, partitionValues()),
                    .n_values = n_values,
                    .n_bits = 0,
                    .n_words = n_values / 32};  // no code is shorter than a bit
  requireBlobFits(header, layoutOf(header, sizeof(T)));
  if (found.head.first_bad != ~std::uint64_t{0}) {
    launchNote({.reason = static_cast<std::uint64_t>(Reason::kBadSymbol),
                .index = found.head.first_bad,
                .symbols = in.data},
               run.record, sizeof(T), run.stream);
    return;
  }
  const Book book = buildBook(found.counts, nullptr, work_->host_book);
  header.n_bits = bitsOf(book, found.counts);
  header.n_words = 0;  // the device will know
  const BlobLayout layout = layoutOf(header, sizeof(T));

  if (out.capacity_bytes >= layout.partition_bits) {
    const auto n_front = static_cast<std::size_t>(layout.partition_bits);
    const auto front = work_->host_front.get<std::uint8_t>(nullptr, n_front);
    writeHeader(header, layout, front);
    writeBook(book, sizeof(T), front.subspan(static_cast<std::size_t>(layout.book)));
    FZ_CUDA_CHECK(
        cudaMemcpyAsync(out.data, front.data(), n_front, cudaMemcpyHostToDevice, run.stream));
  }
  const std::uint32_t n_codes = countedSymbols<T>(bklen_);
  const auto codes = work_->device_codes.get<std::uint32_t>(run.pool, n_codes);
  FZ_CUDA_CHECK(cudaMemcpyAsync(codes.data(), book.codes.data(), codes.size_bytes(),
                                cudaMemcpyHostToDevice, run.stream));
  const auto states =
      work_->device_states.get<std::uint64_t>(run.pool, encodeStates(header.n_partitions));
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
                .record = run.record},
               sizeof(T), header.partition_values, run.stream);
}

template <class T>
void HuffmanStage<T>::finishEncodeCuda(const StageRecord& record) {
  state_ = {.n_values = record.value[kCountSlot], .known = true};
}

template <class T>
void HuffmanStage<T>::decodeCuda(const CudaRun& run) {
  FZ_REQUIRE(state_.known, ErrorCode::kCorrupt,
             "Huffman: the config with the number of values is missing");
  const auto plan = work_->device_plan.get<DecodePlan>(run.pool, 1);
  launchDecode({.blob = run.inputs[0].data,
                .size = run.inputs[0].size,
                .bklen = bklen_,
                .plan = plan.data(),
                .out = run.outputs[0].data,
                .capacity_bytes = run.outputs[0].capacity_bytes,
                .size_known = run.outputs[0].size_known,
                .record = run.record},
               sizeof(T), run.stream);
}

template <class T>
void HuffmanStage<T>::throwDeviceError(const StageRecord& record) const {
  switch (static_cast<Reason>(record.value[kReasonSlot])) {
    case Reason::kBadSymbol:
      detail::throwError(
          ErrorCode::kBadSize,
          fmt::format("Huffman: symbol {} at index {} is not below the book length (bklen) {}",
                      record.error_value, record.error_index, bklen_));
    case Reason::kRaggedInput:
      detail::throwError(
          ErrorCode::kBadSize,
          fmt::format("Huffman: input of {} bytes is no whole number of {}-byte values",
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

// The rest of the class is instantiated in huffman_stage.cc.
#define FZ_INSTANTIATE(T)                                              \
  template void HuffmanStage<T>::encodeCuda(const CudaRun&);           \
  template void HuffmanStage<T>::decodeCuda(const CudaRun&);           \
  template void HuffmanStage<T>::finishEncodeCuda(const StageRecord&); \
  template void HuffmanStage<T>::throwDeviceError(const StageRecord&) const
FZ_INSTANTIATE(std::uint8_t);
FZ_INSTANTIATE(std::uint16_t);
FZ_INSTANTIATE(std::uint32_t);
#undef FZ_INSTANTIATE

}  // namespace fz
