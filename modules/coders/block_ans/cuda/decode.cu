// Values of chunks: a warp per chunk, as decodeClasses() and decodeBlock() of codec.h say.
#include "backends/cuda/launch.h"
#include "backends/cuda/shared_memory.h"
#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::block_ans {

namespace {

constexpr unsigned kThreads = kDecodeThreads;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kRuns = kGroupBlocks / kRunBlocks;
constexpr unsigned kLanesOfRun = kLanes / kRuns;
static_assert(kLanesOfRun == 2 && kRunBlocks == 4);

// Words of a chunk come through a window of each warp.
constexpr unsigned kWindow = 64;  // of 32 bits

constexpr std::size_t kSharedBytes = kSymbolTables * kScale * sizeof(std::uint32_t) +
                                     kContexts * kClassBounds * sizeof(std::uint16_t) +
                                     kWarps * kWindow * sizeof(std::uint32_t);

/// 32-bit words of a chunk, which may begin at any address. Past the end of the stream, which only
/// a damaged chunk comes to, anything may come.
class ChunkSource {
 public:
  __device__ __forceinline__ ChunkSource(const std::uint8_t* begin,
                                         const std::uint8_t* stream_end,
                                         const std::uint32_t* tail)
      : tail_(tail) {
    const auto skew = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(begin) & 3u);
    words_ = reinterpret_cast<const std::uint32_t*>(begin - skew);
    shift_ = 8 * skew;
    const auto n_whole = static_cast<std::uint64_t>(stream_end - (begin - skew)) / 4;
    n_whole_ = static_cast<std::uint32_t>(min(n_whole, std::uint64_t{1} << 30));
  }

  /// What word i is made of. The address is chosen, not the word: nothing waits for the load.
  __device__ __forceinline__ uint2 parts(std::uint32_t i) const {
    return make_uint2(aligned(i), aligned(i + 1));
  }
  __device__ __forceinline__ std::uint32_t joined(uint2 parts) const {
    return __funnelshift_r(parts.x, parts.y, shift_);
  }
  __device__ __forceinline__ std::uint32_t word(std::uint32_t i) const { return joined(parts(i)); }

 private:
  __device__ __forceinline__ std::uint32_t aligned(std::uint32_t i) const {
    const std::uint32_t* const from = i < n_whole_ ? words_ + i : tail_ + min(i - n_whole_, 1u);
    return __ldg(from);
  }

  const std::uint32_t* words_;
  const std::uint32_t* tail_;
  std::uint32_t n_whole_;
  std::uint32_t shift_;
};

__device__ __forceinline__ std::uint32_t sharedAddress(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// Addresses in shared memory have 32 bits; from pointers the compiler makes an instruction more for
// each access.
__device__ __forceinline__ std::uint32_t loadSlot(std::uint32_t table, std::uint32_t x) {
  std::uint32_t entry;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(entry) : "r"(table + (x & (kScale - 1)) * 4));
  return entry;
}
__device__ __forceinline__ std::uint32_t loadWord(std::uint32_t address) {
  std::uint16_t word;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(word) : "r"(address) : "memory");
  return word;
}

/// Words of 16 bits, upwards: 128 of them in shared memory, 64 more on the way to registers.
class WordsUp {
 public:
  __device__ __forceinline__ WordsUp(const ChunkSource& source, std::uint32_t* window)
      : source_(source),
        window_(window),
        lanes_before_((1u << laneId()) - 1),
        begin_(sharedAddress(window)) {}

  /// Begins at a word.
  __device__ __forceinline__ void open(std::uint32_t first) {
    const std::uint32_t base = first / kWindow * kWarp;
    at_ = begin_ + first % kWindow * 2;
    __syncwarp();
    window_[laneId()] = source_.word(base + laneId());
    window_[kWarp + laneId()] = source_.word(base + kWarp + laneId());
    ahead_ = source_.parts(base + 2 * kWarp + laneId());
    next_ = base + 3 * kWarp + laneId();
    __syncwarp();
  }
  /// Words that were taken, and those before the first.
  __device__ __forceinline__ std::uint32_t taken() const {
    return (next_ - laneId() - 3 * kWarp) * 2 + (at_ - begin_) / 2;
  }

  /// A word for each lane whose state is low. Twice at most between two calls of advance().
  __device__ __forceinline__ void refill(std::uint32_t& x) {
    const bool is_low = x < kLowState;
    const std::uint32_t lanes = __ballot_sync(kAllLanes, is_low);
    // Every lane reads: it is inside the window.
    const std::uint32_t word = loadWord(at_ + 2 * __popc(lanes & lanes_before_));
    x = is_low ? x << 16 | word : x;
    at_ += 2 * __popc(lanes);
  }
  __device__ __forceinline__ void advance() {
    if (at_ >= begin_ + 2 * kWindow) {
      __syncwarp();
      window_[laneId()] = window_[kWarp + laneId()];
      window_[kWarp + laneId()] = source_.joined(ahead_);
      ahead_ = source_.parts(next_);
      next_ += kWarp;
      at_ -= 2 * kWindow;
      __syncwarp();
    }
  }

 private:
  ChunkSource source_;
  std::uint32_t* window_;
  std::uint32_t lanes_before_;
  std::uint32_t begin_;   // of the window in shared memory
  std::uint32_t at_ = 0;  // of the next word there
  std::uint32_t next_ = 0;
  uint2 ahead_ = {};
};

/// A value of the classes without raw bits.
__device__ __forceinline__ std::uint32_t takeDirect(std::uint32_t& x,
                                                    std::uint32_t table,
                                                    WordsUp& words) {
  const std::uint32_t entry = loadSlot(table, x);
  x = (entry >> 21) * (x >> kScaleBits) + (entry & (kScale - 1));
  words.refill(x);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(entry << 11) >> 21);
}

/// A number whose raw bits go with the symbol; where kLong, all but five of them.
template <bool kLong>
__device__ __forceinline__ std::uint32_t takeNumber(std::uint32_t& x,
                                                    std::uint32_t table,
                                                    WordsUp& words) {
  const std::uint32_t entry = loadSlot(table, x);
  const std::uint32_t n_raw = entry >> 25;
  const std::uint32_t n_merged = kLong ? min(n_raw, kMergedBits) : n_raw;
  const std::uint32_t high = x >> kScaleBits;
  const std::uint32_t rest = high >> n_merged;
  x = (entry >> 10 & 0x7FFu) * rest + (entry & (kScale - 1));
  const std::uint32_t mantissa = entry >> 21 & 15u;
  std::uint32_t u = ((mantissa - rest) << n_merged) + high;  // the mantissa, then the raw bits
  words.refill(x);
  if (kLong && __any_sync(kAllLanes, n_raw > kMergedBits)) {
    const std::uint32_t low = high - (rest << n_merged);
    const std::uint32_t n_second = min(n_raw - n_merged, kStepBits);
    const std::uint32_t n_third = n_raw - n_merged - n_second;
    words.advance();
    u = mantissa << n_raw | low | lowBits(x, n_second) << n_merged;
    x >>= n_second;
    words.refill(x);
    if (__any_sync(kAllLanes, n_third != 0)) {
      words.advance();
      u |= lowBits(x, n_third) << (n_merged + n_second);
      x >>= n_third;
      words.refill(x);
    }
    words.advance();
  }
  return u;
}

/// The class of a block in its context.
__device__ __forceinline__ std::uint32_t takeClass(std::uint32_t& x,
                                                   const std::uint16_t* bounds,
                                                   WordsUp& words) {
  const std::uint32_t slot = x & (kScale - 1);
  std::uint32_t block_class = 0;
#pragma unroll
  for (std::uint32_t step = kClassBounds / 2; step != 0; step /= 2) {
    block_class += bounds[block_class + step] <= slot ? step : 0;
  }
  const std::uint32_t start = bounds[block_class];
  x = (bounds[block_class + 1] - start) * (x >> kScaleBits) + (slot - start);
  words.refill(x);
  words.advance();
  return block_class;
}

template <class T>
__device__ __forceinline__ void storePair(T* to, std::uint32_t even, std::uint32_t odd) {
  typename Pair<T>::Type pair;
  pair.x = static_cast<T>(even);
  pair.y = static_cast<T>(odd);
  __stcs(reinterpret_cast<typename Pair<T>::Type*>(to), pair);
}

/// Values of a group whose lane has the classes `both`.
template <class T, Map kMap>
__device__ __forceinline__ void takeGroup(
    std::uint32_t& x, std::uint32_t both, std::uint32_t tables, WordsUp& words, T* out) {
  constexpr std::uint32_t kMaxMergedClass = 3 + kMergedBits;
  const std::uint32_t shifted = both << (laneId() % kLanesOfRun * 16);
  out += 2 * laneId();
#pragma unroll 1
  for (unsigned run = 0; run < kRuns; ++run, out += kRunValues) {
    std::uint32_t classes =
        __reduce_or_sync(kAllLanes, laneId() / kLanesOfRun == run ? shifted : 0u);
    if (classes == 0) {
#pragma unroll
      for (unsigned b = 0; b < kRunBlocks; ++b) {
        storePair(out + b * kBlockValues, 0, 0);
      }
      continue;
    }
#pragma unroll 1
    for (unsigned at = 0; at < kRunValues; at += kBlockValues, classes >>= 8) {
      const std::uint32_t block_class = classes & 255u;
      std::uint32_t even = 0;
      std::uint32_t odd = 0;
      if (block_class != 0) {
        const std::uint32_t of_class = tables + symbolTable(block_class) * (kScale * 4);
        if (block_class <= kMaxDirectClass) {
          even = takeDirect(x, of_class, words);
          odd = takeDirect(x, of_class, words);
        } else if (block_class <= kMaxMergedClass) {
          even = valueOf<kMap>(takeNumber<false>(x, of_class, words));
          odd = valueOf<kMap>(takeNumber<false>(x, of_class, words));
        } else {
          even = valueOf<kMap>(takeNumber<true>(x, of_class, words));
          odd = valueOf<kMap>(takeNumber<true>(x, of_class, words));
        }
        words.advance();
      }
      storePair(out + at, even, odd);
    }
  }
}

/// The states at the front of a chunk. Returns the words they take, or more than n_words where they
/// are none.
__device__ __forceinline__ std::uint32_t takeStates(const ChunkSource& source,
                                                    std::uint32_t n_words,
                                                    std::uint32_t& x) {
  const std::uint32_t lengths = source.word(laneId() / 8);
  const std::uint32_t n_bits = kMinStateLength - 1 + (lengths >> (laneId() % 8 * 4) & 15u);
  const std::uint32_t until = cuda::warpInclusiveSum(n_bits);
  const std::uint32_t n_total =
      kLanes * kStateLengthBits + __shfl_sync(kAllLanes, until, kWarp - 1);
  const auto bitsAt = [&](std::uint32_t at, std::uint32_t n) {
    return lowBits(__funnelshift_r(source.word(at / 32), source.word(at / 32 + 1), at % 32), n);
  };
  x = 1u << n_bits | bitsAt(kLanes * kStateLengthBits + until - n_bits, n_bits);
  const std::uint32_t n_front = (n_total + 15) / 16;
  const bool is_good = n_front <= n_words && bitsAt(n_total, 16 * n_front - n_total) == 0;
  return is_good ? n_front : n_words + 1;
}

struct Tables {
  std::uint32_t slots;  ///< in shared memory
  const std::uint16_t* class_bounds;
};

/// A full warp. False: the chunk is damaged.
template <class T, Map kMap>
__device__ __forceinline__ bool decodeChunk(const DecodeArgs& args,
                                            const DecodePlan& plan,
                                            const std::uint8_t* stream_end,
                                            const ChunkBegin& begin,
                                            const ChunkBegin& end,
                                            const Tables& tables,
                                            std::uint32_t* window) {
  const std::uint64_t n_values = plan.n_values;
  T* const out = reinterpret_cast<T*>(args.out.data);
  const std::uint64_t first = begin.group * kGroupValues;
  const std::uint64_t last = min(end.group * kGroupValues, n_values);
  const std::uint64_t n_bytes = end.byte - begin.byte;
  if (uniform(n_bytes == (last - first) * sizeof(T) ? 1 : 0) != 0) {
    copyBytes(laneId(), kWarp, args.in.data + begin.byte, n_bytes,
              reinterpret_cast<std::uint8_t*>(out + first));
    return true;
  }
  const std::uint32_t n_words = uniform(static_cast<std::uint32_t>(n_bytes / 2));
  const std::uint32_t n_groups = uniform(static_cast<std::uint32_t>(end.group - begin.group));
  const ChunkSource source(args.in.data + begin.byte, stream_end, plan.tail);
  std::uint32_t x = 0;
  const std::uint32_t n_front = uniform(takeStates(source, n_words, x));
  if (n_front > n_words) {
    return false;
  }
  WordsUp words(source, window);
  words.open(n_front);
  std::uint32_t past_end = 0;
  for (std::uint32_t g = 0; g < n_groups; ++g) {
    const std::uint16_t* const bounds = tables.class_bounds;
    const std::uint32_t even = takeClass(x, bounds + kFirstContext * kClassBounds, words);
    const std::uint32_t odd = takeClass(x, bounds + even * kClassBounds, words);
    const std::uint64_t at = first + std::uint64_t{g} * kGroupValues;
    const bool is_whole = uniform(at + kGroupValues <= n_values ? 1 : 0) != 0;
    T* const tail = reinterpret_cast<T*>(args.tail);  // for the last group, which may be less
    takeGroup<T, kMap>(x, even | odd << 8, tables.slots, words, is_whole ? out + at : tail);
    if (!is_whole) {
      __syncwarp();
      for (std::uint32_t k = 0; k < kGroupValues; k += kWarp) {
        const std::uint32_t i = k + laneId();
        const T value = static_cast<volatile const T*>(tail)[i];
        if (at + i < n_values) {
          out[at + i] = value;
        } else {
          past_end |= value;
        }
      }
    }
  }
  return __all_sync(kAllLanes, x == kLowState && past_end == 0) != 0 && words.taken() == n_words;
}

/// Where a chunk begins; a stored stream is cut into pieces that are as good as chunks.
__device__ __forceinline__ ChunkBegin beginOf(const DecodeArgs& args,
                                              const DecodePlan& plan,
                                              bool is_stored,
                                              std::uint64_t chunk,
                                              std::uint32_t value_bytes) {
  if (!is_stored) {
    return args.chunks[chunk];
  }
  const std::uint64_t group = min(chunk * kCopiedGroups, groupsOf(plan.n_values));
  const std::uint64_t value = min(group * kGroupValues, plan.n_values);
  return {group, kHeaderBytes + value * value_bytes};
}

template <class T, Map kMap>
__global__ void __launch_bounds__(kThreads, kDecodeBlocks)
    decodeKernel(const __grid_constant__ DecodeArgs args) {
  extern __shared__ uint4 shared[];
  const DecodePlan& plan = *args.plan;
  const std::uint32_t form = uniform(plan.form);
  if (uniform(plan.is_good) == 0 || form == static_cast<std::uint32_t>(Form::kPacked)) {
    return;
  }
  const bool is_stored = form == static_cast<std::uint32_t>(Form::kStored);
  const std::uint64_t n_pieces = (groupsOf(plan.n_values) + kCopiedGroups - 1) / kCopiedGroups;
  const auto n_chunks = uniform(static_cast<std::uint32_t>(is_stored ? n_pieces : plan.n_chunks));
  // Neighbouring chunks, which take about as long, go to different multiprocessors, and all of
  // these get as many.
  const std::uint32_t n_blocks = min(gridDim.x, n_chunks);
  if (blockIdx.x >= n_blocks) {
    return;
  }
  auto* const slots = reinterpret_cast<std::uint32_t*>(shared);
  auto* const bounds = reinterpret_cast<std::uint32_t*>(slots + kSymbolTables * kScale);
  auto* const window = bounds + kContexts * kClassBounds / 2 + uniform(warpId()) * kWindow;
  if (!is_stored) {
    for (unsigned i = threadIdx.x; i < kSymbolTables * kScale / 4; i += kThreads) {
      shared[i] = __ldg(reinterpret_cast<const uint4*>(args.slots) + i);
    }
    for (unsigned i = threadIdx.x; i < kContexts * kClassBounds / 2; i += kThreads) {
      bounds[i] = reinterpret_cast<const std::uint32_t*>(args.class_bounds)[i];
    }
    __syncthreads();
  }
  const Tables tables{sharedAddress(slots), reinterpret_cast<const std::uint16_t*>(bounds)};
  const std::uint8_t* const stream_end = args.in.data + cuda::load(args.in.size);
  std::uint32_t chunk = uniform(warpId()) * n_blocks + blockIdx.x;
  while (chunk < n_chunks) {
    const ChunkBegin begin = beginOf(args, plan, is_stored, chunk, sizeof(T));
    const ChunkBegin end = beginOf(args, plan, is_stored, chunk + 1, sizeof(T));
    const bool is_good = decodeChunk<T, kMap>(args, plan, stream_end, begin, end, tables, window);
    if (laneId() == 0) {
      if (!is_good) {
        recordReason(args.record, DeviceError::kCorrupt, Reason::kBadChunk, chunk);
      }
      chunk = n_blocks * kWarps + atomicAdd(&args.plan->next_chunk, 1u);  // order-free: who
    }
    chunk = uniform(__shfl_sync(kAllLanes, chunk, 0));
  }
}

}  // namespace

void launchDecode(const DecodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  const unsigned n_resident = kDecodeBlocks * cuda::multiprocessorCount();
  const unsigned n_blocks = std::min(cuda::gridFor(args.max_chunks, 1), n_resident);
  withTypeAndMap(value_bytes, args.map, [&]<class T, Map kMap>() {
    const auto kernel = decodeKernel<T, kMap>;
    cuda::allowSharedBytes(reinterpret_cast<const void*>(kernel), kSharedBytes);
    call.launch("block_ans decode", kernel, n_blocks, kThreads, kSharedBytes, args);
  });
}

}  // namespace fz::block_ans
