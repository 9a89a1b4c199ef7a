#include "coders/huffman/huffman_cpu.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "coders/huffman/huffman_codec.h"
#include "shared/byte_io.h"

// Compiled once per vector target for the sake of its three-operand shifts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "coders/huffman/huffman_cpu.cc"  // NOLINT
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

template <class T>
std::uint32_t sumBits(const T* in, std::uint32_t n, const std::uint32_t* codes) {
  std::uint32_t sums[4] = {};
  std::uint32_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::uint32_t j = 0; j < 4; ++j) {
      sums[j] += codeBits(codes[in[i + j]]);
    }
  }
  return sums[0] + sums[1] + sums[2] + sums[3] + partitionBits(in + i, n - i, codes);
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

/// Collects codes from the top of a 64-bit word downwards.
class WordSink {
 public:
  void start(std::uint8_t* out) {
    out_ = out;
    pending_ = 0;
    n_pending_ = 0;
  }
  /// Bits since the last flush, plus 31, must stay below 64.
  HWY_INLINE void append(std::uint32_t packed) {
    n_pending_ += codeBits(packed);
    pending_ |= static_cast<std::uint64_t>(codeOf(packed)) << (64 - n_pending_);
  }
  /// Stores the word that is being filled, full or not, and moves on when it is full: no branch to
  /// mispredict. There are pending bits, so that word is one of this partition.
  HWY_INLINE void flush() {
    storeLe(out_, static_cast<std::uint32_t>(pending_ >> 32));
    const std::uint32_t full = n_pending_ & 32u;
    out_ += full / 8;
    pending_ <<= full;
    n_pending_ &= 31u;
  }
  HWY_INLINE void finish() {
    if (n_pending_ > 0) {
      storeLe(out_, static_cast<std::uint32_t>(pending_ >> 32));
    }
  }

 private:
  std::uint8_t* out_ = nullptr;
  std::uint64_t pending_ = 0;
  std::uint32_t n_pending_ = 0;
};

/// kStreams partitions of n values side by side, so that their dependency chains overlap.
template <class T, int kStreams, int kPerFlush>
void writeGroup(const T* in, std::uint32_t n, std::uint64_t p, const EncodeJob& job) {
  WordSink sinks[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    sinks[s].start(job.words + 4 * std::uint64_t{job.offsets[p + static_cast<std::uint64_t>(s)]});
  }
  std::uint32_t i = 0;
  for (; i + kPerFlush <= n; i += kPerFlush) {
    for (int s = 0; s < kStreams; ++s) {
      const T* from = in + static_cast<std::size_t>(s) * n + i;
      for (int k = 0; k < kPerFlush; ++k) {
        sinks[s].append(job.codes[from[k]]);
      }
      sinks[s].flush();
    }
  }
  for (int s = 0; s < kStreams; ++s) {
    for (std::uint32_t k = i; k < n; ++k) {
      sinks[s].append(job.codes[in[static_cast<std::size_t>(s) * n + k]]);
      sinks[s].flush();
    }
    sinks[s].finish();
  }
}

template <class T, int kPerFlush>
void writeRange(const ValueView& in, Range partitions, const EncodeJob& job) {
  constexpr std::uint64_t kStreams = 4;
  const T* values = static_cast<const T*>(in.values);
  const std::uint32_t full = in.partition_values;
  std::uint64_t p = partitions.begin;
  for (; p + kStreams <= partitions.end && (p + kStreams) * full <= in.n_values; p += kStreams) {
    writeGroup<T, kStreams, kPerFlush>(values + p * full, full, p, job);
  }
  for (; p < partitions.end; ++p) {
    writeGroup<T, 1, kPerFlush>(values + p * full, valuesIn(p, full, in.n_values), p, job);
  }
}

void write(const ValueView& in, Range partitions, const EncodeJob& job) {
  withType(in.value_bytes, [&]<class T>(T) {
    if (job.longest <= 8) {
      writeRange<T, 4>(in, partitions, job);
    } else if (job.longest <= 10) {
      writeRange<T, 3>(in, partitions, job);
    } else if (job.longest <= 16) {
      writeRange<T, 2>(in, partitions, job);
    } else {
      writeRange<T, 1>(in, partitions, job);
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
  const BookTables& book = *job.book;
  const bool is_longer = (bits >> (64 - kTableBits)) < book.first[kTableBits];
  for (std::uint32_t l = is_longer ? kTableBits + 1 : 1; l <= book.longest; ++l) {
    const auto code = static_cast<std::uint32_t>(bits >> (64 - l));
    if (code >= book.first[l]) {
      const std::uint32_t rank = code - book.first[l];
      if (rank >= codesOfLength(book, l)) {
        return 0;
      }
      const std::uint32_t key = loadLe<T>(job.keys + sizeof(T) * (book.entry[l] + rank));
      return l << 16 | key;
    }
  }
  return 0;
}

/// One partition being read.
template <class T, bool kBounded>
struct Cursor {
  std::uint64_t at;
  std::uint64_t end;
  T* out;

  /// One symbol from `bits`, which are those at `at`; false for a code that is not in the book.
  HWY_INLINE bool next(const DecodeJob& job, const DecodeTable& table, std::uint64_t& bits) {
    std::uint32_t found = table[bits >> (64 - kTableBits)];
    if (found >> 16 == 0) [[unlikely]] {
      found = longCode<T>(job, peek<kBounded>(job, at));
      at += found >> 16;
      bits = peek<kBounded>(job, at);
      *out++ = static_cast<T>(found & 0xFFFFu);
      return found != 0;
    }
    bits <<= found >> 16;
    at += found >> 16;
    *out++ = static_cast<T>(found & 0xFFFFu);
    return true;
  }
};

template <class T, bool kBounded>
Cursor<T, kBounded> cursorAt(const DecodeJob& job, std::uint64_t p) {
  const std::uint64_t begin = 32 * std::uint64_t{loadWord(job.partition_offsets, p)};
  return {begin, begin + loadWord(job.partition_bits, p),
          static_cast<T*>(job.out) + p * job.partition_values};
}

/// kStreams partitions of n values side by side; false when one is damaged.
template <class T, int kStreams, bool kBounded>
bool readGroup(const DecodeJob& job, std::uint64_t p, std::uint32_t n) {
  constexpr std::uint32_t kPerPeek = 33 / kTableBits;
  const DecodeTable& table = *job.table;
  Cursor<T, kBounded> cursors[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    cursors[s] = cursorAt<T, kBounded>(job, p + static_cast<std::uint64_t>(s));
  }
  bool good = true;
  std::uint32_t i = 0;
  for (; i + kPerPeek <= n && good; i += kPerPeek) {
    for (int s = 0; s < kStreams; ++s) {
      std::uint64_t bits = peek<kBounded>(job, cursors[s].at);
      for (std::uint32_t k = 0; k < kPerPeek; ++k) {
        good &= cursors[s].next(job, table, bits);
      }
    }
  }
  for (; i < n && good; ++i) {
    for (auto& cursor : cursors) {
      std::uint64_t bits = peek<kBounded>(job, cursor.at);
      good &= cursor.next(job, table, bits);
    }
  }
  for (const auto& cursor : cursors) {
    good &= cursor.at <= cursor.end;
  }
  return good;
}

template <class T>
std::uint64_t readRange(const DecodeJob& job, Range partitions) {
  constexpr int kStreams = 4;
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

void makeDecodeTable(const BookTables& book,
                     const std::uint8_t* keys,
                     std::size_t value_bytes,
                     DecodeTable& table) {
  table.fill(0);
  for (std::uint32_t l = 1; l <= std::min(book.longest, kTableBits); ++l) {
    for (std::uint32_t rank = 0; rank < codesOfLength(book, l); ++rank) {
      std::uint32_t key = 0;
      std::memcpy(&key, keys + value_bytes * (book.entry[l] + rank), value_bytes);
      const std::size_t n_slots = std::size_t{1} << (kTableBits - l);
      std::fill_n(table.begin() + static_cast<std::ptrdiff_t>((book.first[l] + rank) * n_slots),
                  n_slots, l << 16 | key);
    }
  }
}

}  // namespace fz::huffman
#endif
