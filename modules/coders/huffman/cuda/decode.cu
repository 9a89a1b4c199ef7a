// Reading codes. One block looks at header and book and makes the look-up table; then every thread
// decodes a partition of its own, with the table in shared memory.
#include <algorithm>

#include "backends/cuda/device.cuh"
#include "backends/cuda/launch.h"
#include "coders/huffman/cuda/kernels.h"
#include "fz/cuda_part.h"

namespace fz::huffman {

namespace {

constexpr unsigned kThreads = kDecodeThreads;
constexpr std::uint32_t kTableBits = kDeviceTableBits;
constexpr std::uint32_t kTableSize = 1u << kTableBits;
constexpr unsigned kPerRefill = 32 / kTableBits;  // table codes that a refilled source surely holds

__device__ void recordDamage(StageRecord* record, Reason reason, std::uint64_t index) {
  cuda::recordError(record, DeviceError::kCorrupt, index);
  atomicMax(reinterpret_cast<unsigned long long*>(&record->value[kReasonSlot]),
            static_cast<unsigned long long>(reason));
}

/// One thread: reads the header. False when there is nothing to decode or damage was recorded.
template <class T>
__device__ bool planStream(const DecodeArgs& args, DecodePlan& plan) {
  const std::uint64_t n_bytes = cuda::load(args.size);
  const std::uint64_t n_values = args.record->value[kCountSlot];
  if (n_values == 0 && n_bytes == 0) {
    return false;
  }
  if (n_values == 0 || n_bytes < kHeaderBytes || n_bytes > kMaxBlobBytes) {
    recordDamage(args.record, Reason::kBadHeader, 0);
    return false;
  }
  const auto* words = reinterpret_cast<const std::uint32_t*>(args.blob);  // SPEC: stream
  const auto* doubles = reinterpret_cast<const std::uint64_t*>(args.blob);
  BlobHeader header{};
  header.bklen = words[0] & 0xFFFFu;
  header.bklen = header.bklen == 0 ? 65536 : header.bklen;
  header.partition_values = words[1];
  header.n_partitions = words[2];
  header.n_values = doubles[2];
  header.n_bits = doubles[3];
  header.n_words = doubles[4];
  if (checkHeader(header, words + 10, n_bytes, sizeof(T)) != HeaderFault::kNone ||
      header.n_values != n_values || header.bklen != args.bklen) {
    recordDamage(args.record, Reason::kBadHeader, 0);
    return false;
  }
  // The header is good, so n_values is at most 8 times the bytes, and the product is small.
  const std::uint64_t out_bytes = n_values * sizeof(T);
  if (!args.size_known) {
    cuda::publishSize(args.record, 0, out_bytes, args.capacity_bytes);
  } else if (out_bytes > args.capacity_bytes) {
    recordDamage(args.record, Reason::kBadHeader, 0);
  }
  const BlobLayout layout = layoutOf(header, sizeof(T));
  plan.n_values = n_values;
  plan.n_partitions = header.n_partitions;
  plan.n_words = header.n_words;
  plan.partition_bits = layout.partition_bits;
  plan.partition_offsets = layout.partition_offsets;
  plan.words = layout.words;
  plan.partition_values = header.partition_values;
  return out_bytes <= args.capacity_bytes;
}

template <class T>
__global__ void __launch_bounds__(kPlanThreads) planKernel(DecodeArgs args) {
  __shared__ std::uint32_t stored[2 * kLengthSlots];
  __shared__ std::uint32_t n_codes[kLengthSlots];
  __shared__ BookTables book;
  __shared__ bool is_good;
  DecodePlan& plan = *args.plan;
  if (threadIdx.x == 0) {
    is_good = planStream<T>(args, plan);
    plan.is_good = 0;
  }
  __syncthreads();
  if (!is_good) {
    return;
  }
  if (threadIdx.x < 2 * kLengthSlots) {
    stored[threadIdx.x] =
        reinterpret_cast<const std::uint32_t*>(args.blob + kHeaderBytes)[threadIdx.x];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    is_good = checkBook(stored, stored + kLengthSlots, args.bklen, n_codes, book).fault ==
              BookFault::kNone;
    plan.book = book;
  }
  __syncthreads();
  const auto* keys = reinterpret_cast<const T*>(args.blob + kHeaderBytes + kBookTableBytes);
  bool keys_good = is_good;
  if (is_good) {
    for (std::uint32_t i = threadIdx.x; i < stored[2 * kLengthSlots - 1]; i += kPlanThreads) {
      keys_good = keys_good && keys[i] < args.bklen;
    }
  }
  if (__syncthreads_and(keys_good ? 1 : 0) == 0) {
    if (threadIdx.x == 0) {
      recordDamage(args.record, Reason::kBadBook, 0);
    }
    return;
  }
  for (std::uint32_t slot = threadIdx.x; slot < kTableSize; slot += kPlanThreads) {
    const std::uint32_t found =
        findCode(book, std::uint64_t{slot} << (64 - kTableBits), 1, min(book.longest, kTableBits));
    plan.table[slot] = found == 0 ? 0 : packCode(keys[codeOf(found)], codeBits(found));
  }
  if (threadIdx.x == 0) {
    plan.is_good = 1;
  }
}

/// The bits of one partition: up to 64 of them at the top of two registers, and the next word
/// already asked for. Behind the end anything may follow, up to the end of all words: a code that
/// takes part of it reaches too far, which is found out later.
template <bool kAligned>
class BitSource {
 public:
  /// `last` is the last word that may be read.
  __device__ __forceinline__ BitSource(const std::uint8_t* words,
                                       std::uint32_t begin,
                                       std::uint32_t last)
      : words_(words), last_(last), at_(begin) {
    hi_ = fetch();
    lo_ = fetch();
    next_ = fetch();
  }
  __device__ __forceinline__ std::uint32_t top() const { return hi_; }
  __device__ __forceinline__ std::uint64_t all() const { return std::uint64_t{hi_} << 32 | lo_; }

  /// Drops as many bits as the lower 8 bits of `packed` say: fewer than 32, and not more than there
  /// are.
  __device__ __forceinline__ void drop(std::uint32_t packed) {
    hi_ = __funnelshift_l(lo_, hi_, packed);
    lo_ = __funnelshift_l(0, lo_, packed);
    n_left_ -= packed;
  }
  /// Makes it at least 32 bits.
  __device__ __forceinline__ void refill() {
    const std::uint32_t n = codeBits(n_left_);
    if (n <= 32) {
      hi_ |= __funnelshift_rc(next_, 0, n);
      lo_ = __funnelshift_rc(0, next_, n);
      n_left_ += 32;
      next_ = fetch();
    }
  }
  /// Bits dropped so far by a source that began at word `begin`.
  __device__ __forceinline__ std::uint64_t dropped(std::uint32_t begin) const {
    return 32 * std::uint64_t{at_ - begin - 1} - codeBits(n_left_);
  }

 private:
  __device__ __forceinline__ std::uint32_t fetch() {
    const std::uint32_t at = min(at_++, last_);
    return kAligned ? __ldg(reinterpret_cast<const std::uint32_t*>(words_) + at)
                    : loadWord(words_, at);
  }

  const std::uint8_t* words_;
  std::uint32_t last_;
  std::uint32_t at_;  // next word to fetch
  std::uint32_t hi_;
  std::uint32_t lo_;
  std::uint32_t next_;
  std::uint32_t n_left_ = 64;  // bits in hi_ and lo_, in the lower 8; what stands above is noise
};

/// What the threads of a block decode with.
template <class T>
struct Decoder {
  const std::uint32_t* table;  ///< shared memory
  const BookTables* book;      ///< shared memory
  const T* keys;

  /// The next symbol, above 8 bits of anything; clears `is_good` at bits that are not a code. The
  /// source must hold kTableBits bits, and holds 32 after a long code.
  template <class Source>
  __device__ __forceinline__ std::uint32_t next(Source& source, bool& is_good) const {
    std::uint32_t found = table[source.top() >> (32 - kTableBits)];
    if (__builtin_expect(found != 0, 1)) {
      source.drop(found);
      return found;
    }
    source.refill();
    found = findLongCode(*book, source.all(), kTableBits);
    if (found == 0) {
      is_good = false;
      return 0;
    }
    source.drop(codeBits(found));
    source.refill();
    return std::uint32_t{keys[codeOf(found)]} << 8;
  }
};

/// Decodes one partition to `out`; false when it is damaged. `is_wide`: out is 16-byte aligned.
template <class T, class Source>
__device__ __forceinline__ bool readPartition(const Decoder<T>& decoder,
                                              Source& source,
                                              std::uint32_t begin,
                                              std::uint32_t n_bits,
                                              std::uint32_t n_values,
                                              bool is_wide,
                                              T* out) {
  // A sector of the output at a time.
  constexpr unsigned kSectorValues = 32 / sizeof(T);
  constexpr unsigned kPerWord = 4 / sizeof(T);
  bool is_good = true;
  std::uint32_t i = 0;
  if (is_wide) {
    for (; n_values - i >= kSectorValues; i += kSectorValues) {
      std::uint32_t words[8] = {};
#pragma unroll
      for (unsigned k = 0; k < kSectorValues; ++k) {
        if (k % kPerRefill == 0) {
          source.refill();
        }
        const std::uint32_t symbol = decoder.next(source, is_good) >> 8;
        words[k / kPerWord] |= symbol << (8 * sizeof(T) * (k % kPerWord));
      }
      auto* to = reinterpret_cast<uint4*>(out + i);
      to[0] = make_uint4(words[0], words[1], words[2], words[3]);
      to[1] = make_uint4(words[4], words[5], words[6], words[7]);
      if (!is_good || source.dropped(begin) > n_bits) {
        return false;
      }
    }
  }
  for (; i < n_values; ++i) {
    source.refill();
    out[i] = static_cast<T>(decoder.next(source, is_good) >> 8);
    if (!is_good || source.dropped(begin) > n_bits) {
      return false;
    }
  }
  return true;
}

template <bool kAligned>
__device__ __forceinline__ std::uint32_t tableWord(const std::uint8_t* table, std::uint64_t index) {
  return kAligned ? __ldg(reinterpret_cast<const std::uint32_t*>(table) + index)
                  : loadWord(table, index);
}

template <class T, bool kAligned>
__global__ void __launch_bounds__(kThreads) decodeKernel(DecodeArgs args) {
  __shared__ alignas(16) std::uint32_t table[kTableSize];
  __shared__ BookTables book;
  const DecodePlan& plan = *args.plan;
  if (plan.is_good == 0) {
    return;
  }
  for (std::uint32_t i = threadIdx.x; i < kTableSize / 4; i += kThreads) {
    reinterpret_cast<uint4*>(table)[i] = reinterpret_cast<const uint4*>(plan.table)[i];
  }
  if (threadIdx.x == 0) {
    book.longest = plan.book.longest;
  }
  if (threadIdx.x < kLengthSlots) {
    book.first[threadIdx.x] = plan.book.first[threadIdx.x];
    book.entry[threadIdx.x] = plan.book.entry[threadIdx.x];
  }
  __syncthreads();
  const Decoder<T> decoder{table, &book,
                           reinterpret_cast<const T*>(args.blob + kHeaderBytes + kBookTableBytes)};
  const std::uint8_t* bits_table = args.blob + plan.partition_bits;
  const std::uint8_t* offset_table = args.blob + plan.partition_offsets;
  const std::uint64_t full = plan.partition_values;
  const bool is_wide = full * sizeof(T) % 16 == 0;
  for (std::uint64_t p = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; p < plan.n_partitions;
       p += std::uint64_t{gridDim.x} * kThreads) {
    const std::uint32_t n_bits = tableWord<kAligned>(bits_table, p);
    const std::uint32_t begin = tableWord<kAligned>(offset_table, p);
    const std::uint64_t end = std::uint64_t{begin} + n_bits / 32 + (n_bits % 32 != 0 ? 1 : 0);
    // Each partition looks after its successor, so together they lie back to back from word 0.
    bool is_good = end <= plan.n_words && (p > 0 || begin == 0);
    if (p + 1 < plan.n_partitions) {
      is_good = is_good && tableWord<kAligned>(offset_table, p + 1) == end;
    }
    if (is_good) {
      const auto n_values = static_cast<std::uint32_t>(min(full, plan.n_values - p * full));
      BitSource<kAligned> source(args.blob + plan.words, begin,
                                 static_cast<std::uint32_t>(plan.n_words - 1));
      is_good = readPartition(decoder, source, begin, n_bits, n_values, is_wide,
                              reinterpret_cast<T*>(args.out) + p * full);
    }
    if (!is_good) {
      recordDamage(args.record, Reason::kBadPartition, p);
    }
  }
}

template <class T>
void launchDecodeOf(const DecodeArgs& args, const cuda::Call& call) {
  planKernel<T><<<1, kPlanThreads, 0, call.stream>>>(args);
  cuda::checkLaunch("huffman::planKernel");
  // The stream alone knows how long its partitions are; if they are shorter than ours, threads take
  // several.
  const std::uint64_t n_values = args.capacity_bytes / sizeof(T);
  const unsigned grid = cuda::gridFor(n_values / kCoarseValues + 1, kThreads);
  if ((kHeaderBytes + kBookTableBytes + sizeof(T) * args.bklen) % 4 == 0) {
    decodeKernel<T, true><<<grid, kThreads, 0, call.stream>>>(args);
  } else {
    decodeKernel<T, false><<<grid, kThreads, 0, call.stream>>>(args);
  }
  cuda::checkLaunch("huffman::decodeKernel");
}

}  // namespace

void launchDecode(const DecodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  cuda::withUnsigned(value_bytes, [&]<class T>(T) { launchDecodeOf<T>(args, call); });
}

}  // namespace fz::huffman
