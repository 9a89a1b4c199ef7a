// Words of chunks: a warp per chunk, from its end to its front, as encodeBlock() and
// encodeClasses() of codec.h say. The block that is done last finds out where chunks go and which
// form the stream has.
#include "backends/cuda/last_block.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/shared_memory.h"
#include "coders/block_ans/cuda/place.cuh"
#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::block_ans {

namespace {

constexpr unsigned kThreads = kEncodeThreads;
constexpr unsigned kWarps = kEncodeWarps;
constexpr unsigned kRuns = kGroupBlocks / kRunBlocks;
constexpr unsigned kLanesOfRun = kLanes / kRuns;  // whose classes are those of a run
static_assert(kLanesOfRun == 2 && kRunBlocks == 4);
constexpr std::uint32_t kTop = 16;  // symbols below have no raw bits

template <class T>
constexpr unsigned kStagingBytes = kWarps * 2 * kRunValues * sizeof(T);

// Runs of values on their way to shared memory.

__device__ __forceinline__ void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <unsigned kLeft>
__device__ __forceinline__ void waitForGroups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

template <class T>
__device__ __forceinline__ void fetchRun(const T* from, T* to) {
  const auto target = static_cast<std::uint32_t>(__cvta_generic_to_shared(to)) + 16 * laneId();
  const char* source = reinterpret_cast<const char*>(from) + 16 * laneId();
#pragma unroll
  for (unsigned i = 0; i < kRunValues * sizeof(T); i += 16 * kWarp) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target + i), "l"(source + i)
                 : "memory");
  }
}
/// Zeros past the end.
template <class T>
__device__ __forceinline__ void fetchLastRun(const T* values,
                                             std::uint64_t first,
                                             std::uint64_t n_values,
                                             T* to) {
  for (unsigned i = laneId(); i < kRunValues; i += kWarp) {
    to[i] = first + i < n_values ? values[first + i] : T{0};
  }
}

/// Words of a chunk, downwards.
class WordsDown {
 public:
  /// Into a slot with room for so many.
  __device__ __forceinline__ WordsDown(std::uint16_t* slot, std::uint32_t room)
      : slot_(slot), at_(room), lanes_before_((1u << laneId()) - 1) {}

  /// A word of each lane that puts one.
  __device__ __forceinline__ void put(std::uint32_t& x, bool puts) {
    const std::uint32_t lanes = __ballot_sync(kAllLanes, puts);
    at_ -= __popc(lanes);
    // By hand: one instruction for the address, and a predicated store; from an if the compiler
    // makes a branch.
    asm volatile(
        "{\n .reg .pred q;\n .reg .u64 to;\n setp.ne.u32 q, %0, 0;\n mad.wide.u32 to, %1, 2, %2;\n"
        " @q st.global.u16 [to], %3;\n}" ::"r"(static_cast<std::uint32_t>(puts)),
        "r"(at_ + __popc(lanes & lanes_before_)), "l"(slot_), "h"(static_cast<std::uint16_t>(x))
        : "memory");
    x = puts ? x >> 16 : x;
  }
  /// Room for words that the warp then writes.
  __device__ __forceinline__ std::uint16_t* take(std::uint32_t n_words) {
    at_ -= n_words;
    return slot_ + at_;
  }
  /// Words of the slot that are left.
  __device__ __forceinline__ std::uint32_t left() const { return at_; }

 private:
  std::uint16_t* slot_;
  std::uint32_t at_;
  std::uint32_t lanes_before_;
};

/// A symbol, and where kRaw its lowest raw bits. Shifts take five bits of what they are given.
template <bool kRaw>
__device__ __forceinline__ void putSymbol(std::uint32_t& x,
                                          const uint4 step,
                                          std::uint32_t u,
                                          WordsDown& words) {
  words.put(x, x >= step.y);
  const std::uint32_t quotient = __funnelshift_r(__umulhi(x, step.x), 0, step.z);
  std::uint32_t next = quotient * (step.z >> 16) + (x + (step.w >> 16));
  if (kRaw) {
    next += (u & ~__funnelshift_l(0, ~0u, step.w)) << kScaleBits;
  }
  x = next;
}

__device__ __forceinline__ void putRaw(std::uint32_t& x,
                                       std::uint32_t n_raw,
                                       std::uint32_t raw,
                                       WordsDown& words) {
  words.put(x, (x >> (kStateBits - n_raw)) != 0);  // never without raw bits: x < 2^31
  x = x << n_raw | raw;
}

/// A number of the classes whose symbols have raw bits in steps of their own.
__device__ __forceinline__ void putNumber(std::uint32_t& x,
                                          std::uint32_t u,
                                          const uint4* steps,
                                          WordsDown& words) {
  const std::uint32_t symbol = u < kTop ? u : largeSymbol(u);
  constexpr std::uint32_t kFirstLong = 4 * (kMergedBits + 3);  // the first with more raw bits
  if (__any_sync(kAllLanes, symbol >= kFirstLong)) {
    const std::uint32_t n_more = symbol >= kFirstLong ? (symbol >> 2) - 2 - kMergedBits : 0;
    const std::uint32_t n_third = n_more > kStepBits ? n_more - kStepBits : 0;
    const std::uint32_t n_second = n_more - n_third;
    if (__any_sync(kAllLanes, n_third != 0)) {
      putRaw(x, n_third, lowBits(u >> (kMergedBits + kStepBits), n_third), words);
    }
    putRaw(x, n_second, lowBits(u >> kMergedBits, n_second), words);
  }
  putSymbol<true>(x, steps[symbol], u, words);
}

/// A block that is not all zeros: values 2l + 1, then 2l.
template <Map kMap, class P>
__device__ __forceinline__ void putBlock(
    std::uint32_t& x, std::uint32_t block_class, P pair, const uint4* steps, WordsDown& words) {
  steps += symbolTable(block_class) * kSymbols;
  if (block_class <= kMaxDirectClass) {
    putSymbol<false>(x, steps[pair.y & 15u], 0, words);
    putSymbol<false>(x, steps[pair.x & 15u], 0, words);
    return;
  }
  const std::uint32_t odd = numberOf<kMap>(pair.y);
  const std::uint32_t even = numberOf<kMap>(pair.x);
  constexpr std::uint32_t kMaxMergedClass = 3 + kMergedBits;  // all raw bits go with the symbol
  if (block_class <= kMaxMergedClass) {
    putSymbol<true>(x, steps[odd < kTop ? odd : largeSymbol(odd)], odd, words);
    putSymbol<true>(x, steps[even < kTop ? even : largeSymbol(even)], even, words);
    return;
  }
  putNumber(x, odd, steps, words);
  putNumber(x, even, steps, words);
}

/// The front of a chunk: the states. Returns its words; `room` is shared memory of the warp.
__device__ __forceinline__ std::uint32_t putStates(std::uint32_t x,
                                                   std::uint32_t* room,
                                                   WordsDown& words) {
  constexpr unsigned kRoom = (kMaxStateBytes + 3) / 4 + 1;
  for (unsigned i = laneId(); i < kRoom; i += kWarp) {
    room[i] = 0;
  }
  __syncwarp();
  const std::uint32_t n_bits = bits::bitWidth(x) - 1;
  const std::uint32_t until = cuda::warpInclusiveSum(n_bits);
  const std::uint32_t at = kLanes * kStateLengthBits + until - n_bits;
  const std::uint64_t both = std::uint64_t{lowBits(x, n_bits)} << (at % 32);
  atomicOr(room + laneId() / 8, (n_bits + 1 - kMinStateLength) << (laneId() % 8 * 4));
  atomicOr(room + at / 32, static_cast<std::uint32_t>(both));
  atomicOr(room + at / 32 + 1, static_cast<std::uint32_t>(both >> 32));
  __syncwarp();
  const std::uint32_t n_total =
      kLanes * kStateLengthBits + __shfl_sync(kAllLanes, until, kWarp - 1);
  const std::uint32_t n_words = (n_total + 15) / 16;
  std::uint16_t* const to = words.take(n_words);
  for (unsigned i = laneId(); i < n_words; i += kWarp) {
    to[i] = reinterpret_cast<const std::uint16_t*>(room)[i];
  }
  __syncwarp();
  return n_words;
}

/// Groups of a chunk.
struct ChunkGroups {
  std::uint32_t begin;
  std::uint32_t end;
};

/// The class of a block of which this lane has two values.
template <Map kMap, class P>
__device__ __forceinline__ std::uint32_t classOfPair(P pair) {
  constexpr std::uint32_t kMost = 1u << kMaxClass;  // decides the class alone
  const std::uint32_t sum = min(numberOf<kMap>(pair.x), kMost) + min(numberOf<kMap>(pair.y), kMost);
  return min(bits::bitWidth(__reduce_add_sync(kAllLanes, sum)), kMaxClass);
}

/// The values of a group. `both` are the classes of the lane's blocks: known where kMeasured, else
/// found. False: there are as many words as the chunk's values have.
template <class T, Map kMap, bool kMeasured>
__device__ __forceinline__ bool putGroup(const EncodeArgs& args,
                                         std::uint64_t n_values,
                                         std::uint64_t group,
                                         const uint4* steps,
                                         T* staging,
                                         std::uint32_t& both,
                                         std::uint32_t& x,
                                         WordsDown& words) {
  const T* const values = reinterpret_cast<const T*>(args.in.data);
  const std::uint64_t first = group * kGroupValues;
  const bool is_whole = first + kGroupValues <= n_values;
  const auto fetch = [&](unsigned run) {
    T* const to = staging + run % 2 * kRunValues;
    if (is_whole) {
      fetchRun(values + first + run * kRunValues, to);
    } else {
      fetchLastRun(values, first + run * kRunValues, n_values, to);
    }
  };
  // Classes of a run's blocks, the first one lowest, known to be the same in all lanes. Of -1:
  // none.
  const std::uint32_t shifted = both << (laneId() % kLanesOfRun * 16);
  const auto classesOf = [&](unsigned run) -> std::uint32_t {
    if constexpr (kMeasured) {
      return __reduce_or_sync(kAllLanes, laneId() / kLanesOfRun == run ? shifted : 0u);
    } else {
      return run < kRuns ? 1 : 0;
    }
  };
  std::uint32_t classes = classesOf(kRuns - 1);
  if (classes != 0) {
    fetch(kRuns - 1);
  }
  commitCopies();
#pragma unroll 1
  for (int run = kRuns - 1; run >= 0; --run) {
    const std::uint32_t next = classesOf(static_cast<unsigned>(run - 1));
    if (next != 0) {
      fetch(static_cast<unsigned>(run - 1));
    }
    commitCopies();
    waitForGroups<1>();
    __syncwarp();
    if (classes != 0) {
      const T* at = staging + run % 2 * kRunValues + (kRunBlocks - 1) * kBlockValues + 2 * laneId();
#pragma unroll 1
      for (unsigned b = kRunBlocks; b > 0; --b, at -= kBlockValues, classes <<= 8) {
        std::uint32_t block_class = classes >> 24;
        if constexpr (kMeasured) {
          if (block_class == 0) {
            continue;
          }
        }
        const auto pair = *reinterpret_cast<const typename Pair<T>::Type*>(at);
        if constexpr (!kMeasured) {
          block_class = classOfPair<kMap>(pair);
          const unsigned block = static_cast<unsigned>(run) * kRunBlocks + b - 1;
          both |= laneId() == block / 2 ? block_class << (block % 2 * 8) : 0;
        }
        if (block_class != 0) {
          putBlock<kMap>(x, block_class, pair, steps, words);
        }
      }
    }
    classes = next;
    __syncwarp();
    if (uniform(words.left()) <= kSlackWords) {
      waitForGroups<0>();
      __syncwarp();
      return false;
    }
  }
  return true;
}

/// Returns the words of a chunk: as many as its values have when it would not be shorter.
template <class T, Map kMap, bool kMeasured>
__device__ __forceinline__ std::uint32_t encodeChunk(const EncodeArgs& args,
                                                     std::uint64_t n_values,
                                                     std::uint32_t chunk,
                                                     const ChunkGroups& groups,
                                                     const uint4* steps,
                                                     T* staging) {
  const std::uint64_t end = min(std::uint64_t{groups.end} * kGroupValues, n_values);
  constexpr std::uint32_t kValueWords = sizeof(T) / 2;
  const auto raw_words =
      static_cast<std::uint32_t>((end - std::uint64_t{groups.begin} * kGroupValues) * kValueWords);
  const std::uint32_t room = raw_words + kSlackWords;
  std::uint16_t* const slot_end =
      args.words + end * kValueWords + (std::uint64_t{chunk} + 1) * kSlackWords;
  WordsDown words(slot_end - room, room);
  std::uint32_t x = kLowState;
  const uint4* const class_steps = steps + kClassSteps;
  const auto classesOf = [&](std::uint32_t group) -> std::uint32_t {
    return kMeasured ? args.classes[std::uint64_t{group} * kLanes + laneId()] : 0;
  };
  std::uint32_t both = classesOf(groups.end - 1);
  for (std::uint32_t g = groups.end; g-- > groups.begin;) {
    // Those of the group before, ahead of time.
    const std::uint32_t next = g > groups.begin ? classesOf(g - 1) : 0;
    if (!putGroup<T, kMap, kMeasured>(args, n_values, g, steps, staging, both, x, words)) {
      return raw_words;
    }
    const std::uint32_t even = both & 255u;
    putSymbol<false>(x, class_steps[even * kClasses + (both >> 8)], 0, words);
    putSymbol<false>(x, class_steps[kFirstContext * kClasses + even], 0, words);
    both = next;
  }
  putStates(x, reinterpret_cast<std::uint32_t*>(staging), words);
  const std::uint32_t n_words = room - words.left();
  return n_words < raw_words ? n_words : raw_words;
}

template <class T, Map kMap, bool kMeasured>
__global__ void __launch_bounds__(kThreads, kEncodeBlocks)
    encodeKernel(const __grid_constant__ EncodeArgs args) {
  extern __shared__ uint4 shared_steps[];
  const auto n_chunks = uniform(static_cast<std::uint32_t>(args.plan->n_chunks));
  // Neighbouring chunks, which take about as long, go to different multiprocessors, and all of
  // these get as many.
  const std::uint32_t n_blocks = min(gridDim.x, n_chunks);
  if (blockIdx.x < n_blocks) {
    for (unsigned i = threadIdx.x; i < kSteps; i += kThreads) {
      shared_steps[i] = args.steps[i];
    }
    __syncthreads();
    const std::uint64_t n_values = args.plan->n_values;
    T* const staging =
        reinterpret_cast<T*>(shared_steps + kSteps) + uniform(warpId()) * (2 * kRunValues);
    std::uint32_t chunk = uniform(warpId()) * n_blocks + blockIdx.x;
    while (chunk < n_chunks) {
      const ChunkGroups groups{uniform(args.first_group[chunk]),
                               uniform(args.first_group[chunk + 1])};
      const std::uint32_t n_words =
          encodeChunk<T, kMap, kMeasured>(args, n_values, chunk, groups, shared_steps, staging);
      if (laneId() == 0) {
        args.chunk_words[chunk] = n_words;
        chunk = n_blocks * kWarps + atomicAdd(&args.plan->next_chunk, 1u);  // order-free: who
      }
      chunk = uniform(__shfl_sync(kAllLanes, chunk, 0));
    }
  }
  if (cuda::isLastBlock(args.n_blocks_done)) {
    if (threadIdx.x == 0) {
      *args.n_blocks_done = 0;
    }
    if (n_chunks != 0) {
      placeStream<T, kMap>(args);
    }
  }
}

}  // namespace

void launchEncode(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  const unsigned n_resident = kEncodeBlocks * cuda::multiprocessorCount();
  const unsigned n_blocks = std::min(cuda::gridFor(args.max_chunks, 1), n_resident);
  withTypeAndMap(value_bytes, args.map, [&]<class T, Map kMap>() {
    const auto kernel =
        args.is_counted ? encodeKernel<T, kMap, true> : encodeKernel<T, kMap, false>;
    constexpr std::size_t kSharedBytes = kSteps * sizeof(uint4) + kStagingBytes<T>;
    cuda::allowSharedBytes(reinterpret_cast<const void*>(kernel), kSharedBytes);
    call.launch("block_ans encode", kernel, n_blocks, kThreads, kSharedBytes, args);
  });
}

}  // namespace fz::block_ans
