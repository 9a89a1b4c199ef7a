// Tables, by a warp each, as makeBook() of book.cc makes them; and how groups are cut into chunks.
#include "backends/cuda/launch.h"
#include "coders/block_ans/book.h"
#include "coders/block_ans/book_codec.h"
#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::block_ans {

namespace {

constexpr unsigned kThreads = kTableThreads;
constexpr unsigned kPerLane = kSymbols / kWarp;  // lane l has symbols 4l to 4l + 3
// The longest table that could be: too long to be used, but written.
constexpr unsigned kTableWords = (7 + kSymbols * (2 * kMaxLength + 1 + kMaxLength)) / 32 + 2;

/// A full warp: the largest of all lanes' values.
template <class T>
__device__ __forceinline__ T warpMax(T value) {
#pragma unroll
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kAllLanes, value, step);
    value = other > value ? other : value;
  }
  return value;
}

template <class T>
__device__ __forceinline__ T largestOf(const T (&of)[kPerLane]) {
  T largest = of[0];
#pragma unroll
  for (unsigned k = 1; k < kPerLane; ++k) {
    largest = of[k] > largest ? of[k] : largest;
  }
  return largest;
}

/// The first symbol whose number is `value`, which there is.
template <class T>
__device__ __forceinline__ std::uint32_t firstOf(const T (&of)[kPerLane], T value) {
  std::uint32_t k = kPerLane;
#pragma unroll
  for (unsigned i = kPerLane; i-- > 0;) {
    k = of[i] == value ? i : k;
  }
  const std::uint32_t lanes = __ballot_sync(kAllLanes, k != kPerLane);
  const int lane = __ffs(static_cast<int>(lanes)) - 1;
  return static_cast<std::uint32_t>(lane) * kPerLane + __shfl_sync(kAllLanes, k, lane);
}

template <class T>
__device__ __forceinline__ T sumOf(const T (&of)[kPerLane]) {
  T sum = of[0];
#pragma unroll
  for (unsigned k = 1; k < kPerLane; ++k) {
    sum += of[k];
  }
  return sum;
}

__device__ __forceinline__ std::uint32_t symbolAt(unsigned k) {
  return laneId() * kPerLane + k;
}

/// normalise() of book.h.
__device__ void normaliseByWarp(const std::uint64_t (&count)[kPerLane],
                                std::uint64_t total,
                                std::uint32_t (&freq)[kPerLane]) {
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    freq[k] = shareOf(count[k], total);
  }
  std::uint32_t sum = cuda::warpSum(sumOf(freq));
  if (sum < kScale) {
    const std::uint32_t top = firstOf(count, warpMax(largestOf(count)));
#pragma unroll
    for (unsigned k = 0; k < kPerLane; ++k) {
      freq[k] += symbolAt(k) == top ? kScale - sum : 0;
    }
  }
  while (sum > kScale) {
    const std::uint32_t largest = warpMax(largestOf(freq));
    const std::uint32_t top = firstOf(freq, largest);
    const std::uint32_t n_taken = taken(largest, sum - kScale);
#pragma unroll
    for (unsigned k = 0; k < kPerLane; ++k) {
      freq[k] -= symbolAt(k) == top ? n_taken : 0;
    }
    sum -= n_taken;
  }
}

/// Bits of a table, put together in shared memory that is zero.
__device__ __forceinline__ void putBits(std::uint32_t* words,
                                        std::uint32_t at,
                                        std::uint32_t bits) {
  const std::uint64_t both = std::uint64_t{bits} << (at % 32);
  atomicOr(words + at / 32, static_cast<std::uint32_t>(both));  // order-free: bits of their own
  if (both >> 32 != 0) {
    atomicOr(words + at / 32 + 1, static_cast<std::uint32_t>(both >> 32));  // order-free: as above
  }
}

/// writeTable() of book.cc: bytes of a table, 0 when they are too many.
__device__ std::uint32_t writeTable(const std::uint32_t (&freq)[kPerLane],
                                    std::uint32_t table,
                                    std::uint32_t* words) {
  for (unsigned i = laneId(); i < kTableWords; i += kWarp) {
    words[i] = 0;
  }
  std::uint32_t length[kPerLane];
  std::uint32_t n_symbols = 0;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    length[k] = bits::bitWidth(freq[k]);
    n_symbols = freq[k] != 0 ? symbolAt(k) + 1 : n_symbols;
  }
  n_symbols = warpMax(n_symbols);
  __syncwarp();
  if (laneId() == 0) {
    putBits(words, 0, n_symbols - 1);
  }
  // Lengths: so many zeros, then a one.
  std::uint32_t before = __shfl_up_sync(kAllLanes, length[kPerLane - 1], 1);
  before = laneId() == 0 ? kFirstLength : before;
  std::uint32_t n_bits[kPerLane];
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    const auto change = static_cast<std::int32_t>(length[k] - before);
    n_bits[k] = symbolAt(k) < n_symbols ? bits::zigzag(change) + 1 : 0;
    before = length[k];
  }
  std::uint32_t own = sumOf(n_bits);
  std::uint32_t until = cuda::warpInclusiveSum(own);
  std::uint32_t at = countBits(table) + until - own;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    at += n_bits[k];
    if (n_bits[k] != 0) {
      putBits(words, at - 1, 1);
    }
  }
  const std::uint32_t mantissas_at = countBits(table) + __shfl_sync(kAllLanes, until, kWarp - 1);
  const std::uint32_t implied = firstOf(length, warpMax(largestOf(length)));
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    n_bits[k] = symbolAt(k) != implied && length[k] > 1 ? length[k] - 1 : 0;
  }
  own = sumOf(n_bits);
  until = cuda::warpInclusiveSum(own);
  at = mantissas_at + until - own;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    if (n_bits[k] != 0) {
      putBits(words, at, lowBits(freq[k], n_bits[k]));
    }
    at += n_bits[k];
  }
  __syncwarp();
  const std::uint32_t n_bytes = (mantissas_at + __shfl_sync(kAllLanes, until, kWarp - 1) + 7) / 8;
  return n_bytes <= kMaxTableBytes ? n_bytes : 0;
}

__device__ __forceinline__ std::uint64_t costOf(const std::uint64_t (&count)[kPerLane],
                                                const std::uint32_t (&freq)[kPerLane]) {
  std::uint64_t cost = 0;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    cost += count[k] * symbolCost(freq[k]);
  }
  return cuda::warpSum(cost) >> kCostBits;
}

__device__ __forceinline__ uint4 packed(const EncodeStep& step, std::uint32_t n_raw) {
  return make_uint4(step.reciprocal, step.threshold, step.factor << 16 | step.shift,
                    step.bias << 16 | n_raw);
}

/// What an encoder looks up.
__device__ void storeSteps(const EncodeArgs& args,
                           std::uint32_t table,
                           const std::uint32_t (&freq)[kPerLane]) {
  const std::uint32_t own = sumOf(freq);
  std::uint32_t start = cuda::warpInclusiveSum(own) - own;
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    const std::uint32_t symbol = symbolAt(k);
    if (table >= kSymbolTables) {
      if (symbol < kClasses) {
        args.steps[kClassSteps + (table - kSymbolTables) * kClasses + symbol] =
            packed(encodeStep(freq[k], start, 0), 0);
      }
    } else if (table < symbolTable(kMaxDirectClass + 1)) {
      if (symbol < 16) {
        const std::uint32_t low_bits =
            args.map == Map::kNone ? symbol : valueOf<Map::kZigzag>(symbol) & 15u;
        args.steps[table * kSymbols + low_bits] = packed(encodeStep(freq[k], start, 0), 0);
      }
    } else {
      const std::uint32_t n_raw = mergedRaw(rawBits(symbol));
      args.steps[table * kSymbols + symbol] = packed(encodeStep(freq[k], start, n_raw), n_raw);
    }
    start += freq[k];
  }
}

/// A full warp: the counted table or that of the bank.
__device__ void makeTable(const EncodeArgs& args,
                          const BankTables& bank,
                          std::uint32_t value_bytes,
                          std::uint32_t table,
                          std::uint32_t* words) {
  const std::uint32_t limit = tableLimit(table, value_bytes);
  std::uint64_t count[kPerLane];
  std::uint32_t of_bank[kPerLane];
#pragma unroll
  for (unsigned k = 0; k < kPerLane; ++k) {
    const std::uint32_t symbol = symbolAt(k);
    std::uint64_t& counted = args.counts[table * kSymbols + symbol];
    count[k] = args.is_counted && symbol < limit ? counted : 0;
    of_bank[k] = symbol < limit ? bank.freq[bank.begin[table] + symbol] : 0;
    if (args.is_counted) {
      counted = 0;
    }
  }
  const std::uint64_t total = cuda::warpSum(sumOf(count));
  std::uint32_t n_bytes = 0;
  if (total != 0) {
    std::uint32_t freq[kPerLane];
    normaliseByWarp(count, total, freq);
    n_bytes = writeTable(freq, table, words);
    if (8 * n_bytes + costOf(count, freq) >= costOf(count, of_bank)) {
      n_bytes = 0;
    }
#pragma unroll
    for (unsigned k = 0; k < kPerLane; ++k) {
      of_bank[k] = n_bytes != 0 ? freq[k] : of_bank[k];
    }
  }
  storeSteps(args, table, of_bank);
  auto* book = reinterpret_cast<std::uint32_t*>(args.book + table * kMaxBookTableBytes);
  for (unsigned i = laneId(); 4 * i < n_bytes; i += kWarp) {
    book[i] = words[i];
  }
  if (laneId() == 0) {
    args.plan->table_bytes[table] = n_bytes;
  }
}

constexpr unsigned kThreadGroups = 32;

/// Weights of 32 groups from g on, a multiple of that; 0 past the end.
__device__ __forceinline__ void loadWeights(const EncodeArgs& args,
                                            std::uint64_t g,
                                            std::uint64_t n_groups,
                                            std::uint32_t* weight) {
#pragma unroll
  for (unsigned i = 0; i < kThreadGroups; i += 8) {
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (g + i < n_groups) {
      eight = *reinterpret_cast<const uint4*>(args.weights + g + i);
    }
    const std::uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (unsigned j = 0; j < 8; ++j) {
      const std::uint32_t w = pairs[j / 2] >> (j % 2 * 16) & 0xFFFFu;
      weight[i + j] = g + i + j < n_groups ? w : 0;
    }
  }
}

/// A whole thread block: chunks of about the same weight.
__device__ void cutByWeight(const EncodeArgs& args,
                            std::uint64_t n_groups,
                            std::uint32_t chunk_weight,
                            std::uint32_t* warp_sums) {
  std::uint64_t carry = 0;
  for (std::uint64_t tile = 0; tile < n_groups; tile += kThreads * kThreadGroups) {
    const std::uint64_t g = tile + threadIdx.x * kThreadGroups;
    std::uint32_t weight[kThreadGroups];
    loadWeights(args, g, n_groups, weight);
    std::uint32_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < kThreadGroups; ++i) {
      sum += weight[i];
    }
    std::uint32_t of_tile = 0;
    std::uint64_t before = carry + cuda::blockExclusiveSum<kThreads>(sum, warp_sums, &of_tile);
    if (g < n_groups) {
      std::uint64_t chunk = before / chunk_weight;
      std::uint64_t next = (chunk + 1) * chunk_weight;
      if (g == 0 || (before - args.weights[g - 1]) / chunk_weight != chunk) {
        args.first_group[chunk] = static_cast<std::uint32_t>(g);
      }
#pragma unroll
      for (unsigned i = 0; i < kThreadGroups; ++i) {
        before += weight[i];
        if (i + 1 < kThreadGroups && g + i + 1 < n_groups && before >= next) {
          ++chunk;
          next += chunk_weight;
          args.first_group[chunk] = static_cast<std::uint32_t>(g + i + 1);
        }
      }
    }
    carry += of_tile;
    __syncthreads();
  }
}

/// A whole thread block: chunks for an encoder.
__device__ void makeChunks(const EncodeArgs& args, std::uint32_t value_bytes) {
  __shared__ std::uint32_t warp_sums[kThreads / kWarp];
  const std::uint64_t n_bytes = cuda::load(args.in.size);
  const std::uint64_t n_values = n_bytes / value_bytes;
  const std::uint64_t n_groups = groupsOf(n_values);
  const std::uint64_t total = *args.total_weight;
  EncodePlan& plan = *args.plan;
  std::uint32_t chunk_weight = 0;
  std::uint64_t n_chunks = 0;
  std::uint64_t groups_each = 0;
  if (n_groups != 0 && args.is_counted) {
    chunk_weight = chunkWeight(args.chunk_setting, total);
    n_chunks = (total - args.weights[n_groups - 1]) / chunk_weight + 1;
  } else if (n_groups != 0) {
    groups_each =
        chunkWeight(args.chunk_setting, n_groups * kAssumedGroupWeight) / kAssumedGroupWeight;
    n_chunks = bits::ceilDiv(n_groups, groups_each);
  }
  const bool is_ragged = n_bytes % value_bytes != 0;
  const bool is_good = n_values != 0 && !is_ragged && n_chunks <= kMaxChunks;
  __syncthreads();
  if (threadIdx.x == 0) {
    *args.total_weight = 0;
    plan.n_values = n_values;
    plan.n_chunks = is_good ? n_chunks : 0;
    plan.form = EncodePlan::kNothing;
    plan.next_chunk = 0;
    args.record->value[kCountSlot] = n_values;
    if (is_ragged) {
      recordReason(args.record, DeviceError::kDoesNotFit, Reason::kRaggedInput, n_bytes);
    } else if (!is_good && n_values != 0) {
      recordReason(args.record, DeviceError::kDoesNotFit, Reason::kTooManyChunks, n_chunks);
    } else if (!is_good) {
      cuda::publishSize(args.record, 0, 0, args.out.capacity_bytes);
    } else {
      args.first_group[n_chunks] = static_cast<std::uint32_t>(n_groups);
    }
  }
  if (!is_good) {
    return;
  }
  if (args.is_counted) {
    cutByWeight(args, n_groups, chunk_weight, warp_sums);
  } else {
    for (std::uint64_t c = threadIdx.x; c < n_chunks; c += kThreads) {
      args.first_group[c] = static_cast<std::uint32_t>(c * groups_each);
    }
  }
}

__global__ void __launch_bounds__(kThreads) tablesKernel(const __grid_constant__ EncodeArgs args,
                                                         const __grid_constant__ BankTables bank,
                                                         std::uint32_t value_bytes) {
  __shared__ std::uint32_t words[kTableWords];
  if (blockIdx.x == 0) {
    makeChunks(args, value_bytes);
  } else if (warpId() == 0) {
    makeTable(args, bank, value_bytes, blockIdx.x - 1, words);
  }
}

}  // namespace

void launchTables(const EncodeArgs& args,
                  const BankTables& bank,
                  std::size_t value_bytes,
                  const cuda::Call& call) {
  call.launch("block_ans tables", tablesKernel, 1 + kTables, kThreads, 0, args, bank,
              static_cast<std::uint32_t>(value_bytes));
}

}  // namespace fz::block_ans
