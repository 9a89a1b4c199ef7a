#include "coders/huffman/cpu/chunks.h"

#include <algorithm>
#include <limits>

#include "coders/huffman/codec.h"
#include "fz/byte_io.h"

// Compiled once per vector target for the sake of its three-operand shifts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/huffman/cpu/chunks.cc"  // NOLINT
#include "backends/cpu/simd_targets.h"
// clang-format off: foreach_target must come before highway.h
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace fz::huffman::HWY_NAMESPACE {  // NOLINT

template <class F>
void withType(std::size_t value_bytes, F f) {
  switch (value_bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    default:
      return f(std::uint32_t{});
  }
}

template <class T, bool kClamp>
void countLoop(
    const T* in, std::size_t n, std::uint32_t limit, std::size_t stride, std::uint32_t* counts) {
  const auto slot = [limit](T v) -> std::size_t {
    return kClamp ? std::min<std::uint32_t>(v, limit) : v;
  };
  std::uint32_t* const c1 = counts + stride;
  std::uint32_t* const c2 = c1 + stride;
  std::uint32_t* const c3 = c2 + stride;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    ++counts[slot(in[i])];
    ++c1[slot(in[i + 1])];
    ++c2[slot(in[i + 2])];
    ++c3[slot(in[i + 3])];
  }
  for (; i < n; ++i) {
    ++counts[slot(in[i])];
  }
}

void count(const ValueView& in,
           Range values,
           std::uint32_t limit,
           std::size_t stride,
           std::uint32_t* counts) {
  withType(in.value_bytes, [&]<class T>(T) {
    const T* from = static_cast<const T*>(in.values) + values.begin;
    const auto n = static_cast<std::size_t>(values.end - values.begin);
    if (limit > std::uint32_t{std::numeric_limits<T>::max()}) {
      countLoop<T, false>(from, n, limit, stride, counts);
    } else {
      countLoop<T, true>(from, n, limit, stride, counts);
    }
  });
}

/// Values of partition p, which is short at the end of the input.
inline std::uint32_t valuesIn(std::uint64_t p,
                              std::uint32_t partition_values,
                              std::uint64_t n_values) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(partition_values, n_values - p * partition_values));
}

/// Keeps a loop of table look-ups scalar: compilers make it a vector of single loads, which is
/// slower.
HWY_INLINE void keepScalar(std::uint32_t& value) {
  asm volatile("" : "+r"(value));
}

template <class T>
std::uint32_t sumBits(const T* in, std::uint32_t n, const std::uint32_t* codes) {
  std::uint32_t sum = 0;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    sum += (codeBits(codes[in[i]]) + codeBits(codes[in[i + 1]])) +
           (codeBits(codes[in[i + 2]]) + codeBits(codes[in[i + 3]]));
    keepScalar(sum);
  }
  for (; i < n; ++i) {
    sum += codeBits(codes[in[i]]);
    keepScalar(sum);
  }
  return sum;
}

void countBits(const ValueView& in,
               Range partitions,
               const std::uint32_t* codes,
               std::uint32_t* bits) {
  withType(in.value_bytes, [&]<class T>(T) {
    const T* from = static_cast<const T*>(in.values);
    for (std::uint64_t p = partitions.begin; p < partitions.end; ++p) {
      bits[p] = sumBits(from + p * in.partition_values,
                        valuesIn(p, in.partition_values, in.n_values), codes);
    }
  });
}

/// Gathers codes and stores words. Built so that no step depends on a branch: lengths travel in the
/// low bits of a packed code, where shifts and sums take them without unpacking.
class WordSink {
 public:
  HWY_INLINE void start(std::uint8_t* out) { out_ = out; }
  /// Appends at most 32 bits since the last flush.
  HWY_INLINE void append(std::uint32_t packed) {
    pending_ = pending_ << (packed & 63u) | codeOf(packed);
    position_ += packed;
  }
  /// Stores the oldest 32 pending bits and moves on when there are so many. Otherwise the word is
  /// stored half-baked, to be overwritten; something is pending, so it is one of this partition.
  HWY_INLINE void flush() {
    storeLe(out_, static_cast<std::uint32_t>(pending_ >> (position_ & 63u)));
    out_ += (~position_ & 32u) / 8;
    position_ |= 32u;
  }
  HWY_INLINE void finish() {
    const std::uint32_t n_pending = position_ & 31u;
    if (n_pending > 0) {
      storeLe(out_, static_cast<std::uint32_t>(pending_ << (32 - n_pending)));
    }
  }

 private:
  std::uint8_t* out_ = nullptr;
  std::uint64_t pending_ = 0;
  // Pending bits + 32 modulo 64, in the low 6 bits: the shift that brings the oldest 32 down.
  std::uint32_t position_ = 32;
};

/// kPerFlush codes from `from`. kChecked: they may have more than 32 bits, but rarely.
template <class T, int kPerFlush, bool kChecked>
HWY_INLINE void writeCodes(const T* from, const std::uint32_t* codes, WordSink& sink) {
  std::uint32_t packed[kPerFlush];
  std::uint32_t sum = 0;
  for (int k = 0; k < kPerFlush; ++k) {
    packed[k] = codes[from[k]];
    sum += packed[k];
  }
  const bool flush_each = kChecked && codeBits(sum) > 32;
  if (flush_each) [[unlikely]] {
    for (int k = 0; k < kPerFlush; ++k) {
      sink.append(packed[k]);
      sink.flush();
    }
    return;
  }
  for (int k = 0; k < kPerFlush; ++k) {
    sink.append(packed[k]);
  }
  sink.flush();
}

/// kStreams partitions of n values side by side, so that their dependency chains overlap.
template <class T, int kStreams, int kPerFlush, bool kChecked>
void writeGroup(const T* in, std::uint32_t n, std::uint64_t p, const EncodeJob& job) {
  const std::uint32_t* codes = job.codes;
  WordSink sinks[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    sinks[s].start(job.words + 4 * std::uint64_t{job.offsets[p + static_cast<std::uint64_t>(s)]});
  }
  std::size_t i = 0;
  for (; i + kPerFlush <= n; i += kPerFlush) {
    for (int s = 0; s < kStreams; ++s) {
      writeCodes<T, kPerFlush, kChecked>(in + static_cast<std::size_t>(s) * n + i, codes, sinks[s]);
    }
  }
  for (int s = 0; s < kStreams; ++s) {
    for (std::size_t k = i; k < n; ++k) {
      writeCodes<T, 1, false>(in + static_cast<std::size_t>(s) * n + k, codes, sinks[s]);
    }
    sinks[s].finish();
  }
}

template <class T, int kPerFlush, bool kChecked>
void writeRange(const ValueView& in, Range partitions, const EncodeJob& job) {
  constexpr std::uint64_t kStreams = 2;
  const T* values = static_cast<const T*>(in.values);
  const std::uint32_t full = in.partition_values;
  std::uint64_t p = partitions.begin;
  for (; p + kStreams <= partitions.end && (p + kStreams) * full <= in.n_values; p += kStreams) {
    writeGroup<T, kStreams, kPerFlush, kChecked>(values + p * full, full, p, job);
  }
  for (; p < partitions.end; ++p) {
    writeGroup<T, 1, kPerFlush, kChecked>(values + p * full, valuesIn(p, full, in.n_values), p,
                                          job);
  }
}

void write(const ValueView& in, Range partitions, const EncodeJob& job) {
  withType(in.value_bytes, [&]<class T>(T) {
    if (job.longest <= 8) {
      writeRange<T, 4, false>(in, partitions, job);
    } else if (job.mean_bits <= 4) {
      writeRange<T, 4, true>(in, partitions, job);
    } else if (job.mean_bits <= 7) {
      writeRange<T, 3, true>(in, partitions, job);
    } else if (job.longest <= 16) {
      writeRange<T, 2, false>(in, partitions, job);
    } else {
      writeRange<T, 2, true>(in, partitions, job);
    }
  });
}

/// The bits from `at` on, at the top; at least 33 of them. kBounded reads zeros behind the end.
template <bool kBounded>
HWY_INLINE std::uint64_t peek(const DecodeJob& job, std::uint64_t at) {
  const std::uint64_t word = at / 32;
  std::uint64_t two = 0;
  if (!kBounded || word + 2 <= job.n_words) {
    two = loadLe<std::uint64_t>(job.words + 4 * word);
  } else if (word < job.n_words) {
    two = loadWord(job.words, word);
  }
  return (two << 32 | two >> 32) << (at % 32);
}

/// Code at the top of `bits` that the table does not resolve; in the form of a table entry, 0 when
/// it is none of the book.
template <class T>
HWY_NOINLINE std::uint32_t longCode(const DecodeJob& job, std::uint64_t bits) {
  const std::uint32_t found = findLongCode(*job.book, bits, kTableBits);
  if (found == 0) {
    return 0;
  }
  return packCode(loadLe<T>(job.keys + sizeof(T) * codeOf(found)), codeBits(found));
}

/// kPerPeek values from bit `at` on; false for a code that is not in the book.
template <class T, int kPerPeek, bool kBounded>
HWY_INLINE bool readCodes(const DecodeJob& job,
                          const std::uint32_t* table,
                          std::uint64_t& at,
                          T* out) {
  std::uint64_t bits = peek<kBounded>(job, at);
  std::uint32_t used = 0;
  for (int k = 0; k < kPerPeek; ++k) {
    std::uint32_t found = table[bits >> (64 - kTableBits)];
    if (found == 0) [[unlikely]] {
      at += codeBits(used);
      found = longCode<T>(job, peek<kBounded>(job, at));
      if (found == 0) {
        return false;
      }
      at += codeBits(found);
      used = 0;
      bits = peek<kBounded>(job, at);
    } else {
      bits <<= found & 63u;
      used += found;
    }
    out[k] = static_cast<T>(found >> 8);
  }
  at += codeBits(used);
  return true;
}

/// kStreams partitions of n values side by side; false when one is damaged.
template <class T, int kStreams, bool kBounded>
bool readGroup(const DecodeJob& job, std::uint64_t p, std::uint32_t n) {
  constexpr int kPerPeek = 33 / kTableBits;
  const std::uint32_t* table = job.table->data();
  T* const out = static_cast<T*>(job.out) + p * job.partition_values;
  std::uint64_t at[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    at[s] = 32 * std::uint64_t{loadWord(job.partition_offsets, p + static_cast<std::uint64_t>(s))};
  }
  std::size_t i = 0;
  // The streams jump from group to group, which the hardware does not foresee.
  const bool has_next = (p + 2 * kStreams) * n <= job.n_values;
  const T* const next = has_next ? out + std::size_t{kStreams} * n : out;
  for (; i + kPerPeek <= n; i += kPerPeek) {
    __builtin_prefetch(next + kStreams * i, 1);
    for (int s = 0; s < kStreams; ++s) {
      T* const to = out + static_cast<std::size_t>(s) * n + i;
      if (!readCodes<T, kPerPeek, kBounded>(job, table, at[s], to)) {
        return false;
      }
    }
  }
  for (int s = 0; s < kStreams; ++s) {
    for (std::size_t k = i; k < n; ++k) {
      T* const to = out + static_cast<std::size_t>(s) * n + k;
      if (!readCodes<T, 1, kBounded>(job, table, at[s], to)) {
        return false;
      }
    }
    const std::uint64_t q = p + static_cast<std::uint64_t>(s);
    const std::uint64_t begin = 32 * std::uint64_t{loadWord(job.partition_offsets, q)};
    if (at[s] > begin + loadWord(job.partition_bits, q)) {
      return false;
    }
  }
  return true;
}

template <class T>
std::uint64_t readRange(const DecodeJob& job, Range partitions) {
  constexpr int kStreams = 8;
  const std::uint32_t full = job.partition_values;
  // Bits that a partition of well-formed or damaged codes can run through, and one peek more.
  const std::uint64_t reach = std::uint64_t{full} * job.book->longest + 64;
  const std::uint64_t n_bits = 32 * job.n_words;
  std::uint64_t p = partitions.begin;
  while (p < partitions.end) {
    const std::uint64_t last = p + kStreams - 1;
    if (last < partitions.end && (last + 1) * full <= job.n_values &&
        32 * std::uint64_t{loadWord(job.partition_offsets, last)} + reach <= n_bits &&
        readGroup<T, kStreams, false>(job, p, full)) {
      p += kStreams;
      continue;
    }
    // The end of the stream, or damage that is looked at one partition at a time.
    for (std::uint64_t stop = std::min(p + kStreams, partitions.end); p < stop; ++p) {
      if (!readGroup<T, 1, true>(job, p, valuesIn(p, full, job.n_values))) {
        return p;
      }
    }
  }
  return kAllGood;
}

std::uint64_t read(const DecodeJob& job, Range partitions) {
  std::uint64_t bad = kAllGood;
  withType(job.value_bytes, [&]<class T>(T) { bad = readRange<T>(job, partitions); });
  return bad;
}

}  // namespace fz::huffman::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fz::huffman {

HWY_EXPORT(count);
HWY_EXPORT(countBits);
HWY_EXPORT(write);
HWY_EXPORT(read);

void countValues(const ValueView& in,
                 Range values,
                 std::uint32_t limit,
                 std::size_t stride,
                 std::uint32_t* counts) {
  HWY_DYNAMIC_DISPATCH(count)(in, values, limit, stride, counts);
}
void countPartitionBits(const ValueView& in,
                        Range partitions,
                        const std::uint32_t* codes,
                        std::uint32_t* bits) {
  HWY_DYNAMIC_DISPATCH(countBits)(in, partitions, codes, bits);
}
void writePartitions(const ValueView& in, Range partitions, const EncodeJob& job) {
  HWY_DYNAMIC_DISPATCH(write)(in, partitions, job);
}
std::uint64_t readPartitions(const DecodeJob& job, Range partitions) {
  return HWY_DYNAMIC_DISPATCH(read)(job, partitions);
}

}  // namespace fz::huffman
#endif
