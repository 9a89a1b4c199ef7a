// Puts header, tables, directory and chunks together.
#include "backends/cuda/launch.h"
#include "coders/block_ans/cuda/policy.h"
#include "coders/block_ans/cuda/values.cuh"
#include "fz/cuda_part.h"

namespace fz::block_ans {

namespace {

constexpr unsigned kThreads = kCompactThreads;

/// Words of 16 bits, aligned to that only.
__device__ __forceinline__ void copyWords(const std::uint16_t* from,
                                          std::uint32_t n_words,
                                          std::uint16_t* to) {
  if (reinterpret_cast<std::uintptr_t>(to) % 4 != 0) {
    if (threadIdx.x == 0) {
      to[0] = from[0];
    }
    ++from;
    ++to;
    --n_words;
  }
  auto* out = reinterpret_cast<std::uint32_t*>(to);
  std::uint32_t n_pairs = n_words / 2;
  if (reinterpret_cast<std::uintptr_t>(from) % 4 == 0) {
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(from);
    storeWords(threadIdx.x, kThreads, n_pairs, out, [&](std::uint64_t i) { return pairs[i]; });
  } else {
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(from - 1);
    n_pairs = n_words == 0 ? 0 : (n_words - 1) / 2;  // the word behind the last may not be there
    storeWords(threadIdx.x, kThreads, n_pairs, out,
               [&](std::uint64_t i) { return __funnelshift_r(pairs[i], pairs[i + 1], 16); });
  }
  const std::uint32_t rest = 2 * n_pairs + threadIdx.x;
  if (rest < n_words) {
    to[rest] = from[rest];
  }
}

__device__ void writeFront(const EncodeArgs& args, const EncodePlan& plan) {
  std::uint8_t* const out = args.out.data;
  if (threadIdx.x == 0) {
    const bool is_stored = plan.form == static_cast<std::uint32_t>(Form::kStored);
    *reinterpret_cast<std::uint32_t*>(out) =
        plan.form | (is_stored ? 0u : static_cast<std::uint32_t>(plan.n_chunks) << 8);
  }
  if (plan.form != static_cast<std::uint32_t>(Form::kCounted)) {
    return;
  }
  std::uint32_t at = kHeaderBytes + kTables;
  for (std::uint32_t t = 0; t < kTables; ++t) {
    const std::uint32_t n_bytes = plan.table_bytes[t];
    if (threadIdx.x == 0) {
      out[kHeaderBytes + t] = static_cast<std::uint8_t>(n_bytes);
    }
    for (std::uint32_t i = threadIdx.x; i < n_bytes; i += kThreads) {
      out[at + i] = args.book[t * kMaxBookTableBytes + i];
    }
    at += n_bytes;
  }
  if (at + threadIdx.x < kHeaderBytes + plan.n_book_bytes) {
    out[at + threadIdx.x] = 0;
  }
}

__global__ void __launch_bounds__(kThreads)
    compactKernel(const __grid_constant__ EncodeArgs args, std::uint32_t value_bytes) {
  const EncodePlan& plan = *args.plan;
  const std::uint32_t form = plan.form;
  if (form == EncodePlan::kNothing || form == static_cast<std::uint32_t>(Form::kPacked)) {
    return;
  }
  if (blockIdx.x == 0) {
    writeFront(args, plan);
  }
  if (form == static_cast<std::uint32_t>(Form::kStored)) {
    copyBytes(blockIdx.x * kThreads + threadIdx.x, gridDim.x * kThreads, args.in.data,
              plan.n_values * value_bytes, args.out.data + kHeaderBytes);
    return;
  }
  const std::uint64_t n_chunks = plan.n_chunks;
  std::uint8_t* const directory = args.out.data + kHeaderBytes + plan.n_book_bytes;
  std::uint8_t* const words = directory + kEntryBytes * n_chunks;
  for (std::uint64_t c = blockIdx.x; c < n_chunks; c += gridDim.x) {
    const std::uint32_t n_words = args.chunk_words[c];
    const std::uint64_t first = args.first_group[c];
    const std::uint64_t last = args.first_group[c + 1];
    const std::uint64_t end = min(last * kGroupValues, plan.n_values);
    const std::uint64_t begin = first * kGroupValues;
    const std::uint32_t value_words = value_bytes / 2;
    auto* const to = reinterpret_cast<std::uint16_t*>(words + args.chunk_at[c]);
    if (n_words == (end - begin) * value_words) {
      copyWords(reinterpret_cast<const std::uint16_t*>(args.in.data) + begin * value_words, n_words,
                to);
    } else {
      copyWords(args.words + end * value_words + (c + 1) * kSlackWords - n_words, n_words, to);
    }
    if (threadIdx.x == 0) {
      reinterpret_cast<std::uint32_t*>(directory)[c] =
          n_words << 10 | static_cast<std::uint32_t>(last - first - 1);
    }
  }
}

}  // namespace

void launchCompact(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call) {
  const unsigned n_resident = kCompactBlocks * cuda::multiprocessorCount();
  const unsigned n_blocks = std::min(cuda::gridFor(args.max_chunks, 1), n_resident);
  call.launch("block_ans compact", compactKernel, n_blocks, kThreads, 0, args,
              static_cast<std::uint32_t>(value_bytes));
}

}  // namespace fz::block_ans
