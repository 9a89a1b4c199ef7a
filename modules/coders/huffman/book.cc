#include "coders/huffman/book.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/require.h"
#include "fz/byte_io.h"

namespace fz::huffman {

namespace {

constexpr std::uint32_t kMaxDepth = 64;  // 2^64 values would be needed for a deeper tree

struct HeapItem {
  std::uint64_t weight;
  std::uint32_t node;
};

/// Binary min-heap whose treatment of equal weights is part of the format: it decides which of
/// several optimal books is written.
class MinHeap {
 public:
  explicit MinHeap(std::span<HeapItem> items) : items_(items) {}
  std::size_t size() const { return n_items_; }

  void push(HeapItem item) {
    std::size_t at = n_items_++;
    while (at > 0 && items_[(at - 1) / 2].weight > item.weight) {
      items_[at] = items_[(at - 1) / 2];
      at = (at - 1) / 2;
    }
    items_[at] = item;
  }

  HeapItem pop() {
    const HeapItem top = items_[0];
    const HeapItem moved = items_[--n_items_];
    std::size_t at = 0;
    for (std::size_t child = 1; child < n_items_; child = 2 * at + 1) {
      if (child + 1 < n_items_ && items_[child + 1].weight < items_[child].weight) {
        ++child;
      }
      if (moved.weight <= items_[child].weight) {
        break;
      }
      items_[at] = items_[child];
      at = child;
    }
    items_[at] = moved;
    return top;
  }

 private:
  std::span<HeapItem> items_;
  std::size_t n_items_ = 0;
};

/// Depth of every leaf; leaf i carries weights[symbols[i]].
void treeDepths(std::span<const std::uint64_t> counts,
                std::span<const std::uint32_t> symbols,
                MemoryPool* pool,
                BookScratch& scratch,
                std::span<std::uint32_t> depths) {
  const std::size_t n_leaves = symbols.size();
  const std::span<std::uint32_t> parents = scratch.parents.get<std::uint32_t>(pool, 2 * n_leaves);
  MinHeap heap(scratch.heap.get<HeapItem>(pool, n_leaves));
  for (std::size_t i = 0; i < n_leaves; ++i) {
    heap.push({counts[symbols[i]], static_cast<std::uint32_t>(i)});
  }
  auto node = static_cast<std::uint32_t>(n_leaves);
  for (; heap.size() > 1; ++node) {
    const HeapItem a = heap.pop();
    const HeapItem b = heap.pop();
    parents[a.node] = node;
    parents[b.node] = node;
    heap.push({a.weight + b.weight, node});
  }
  depths[node - 1] = 0;  // a parent's number is above its children's, so one sweep does
  for (std::uint32_t i = node - 1; i-- > 0;) {
    depths[i] = depths[parents[i]] + 1;
  }
}

/// Hands out the lengths of n_codes anew: short ones to frequent symbols, ties by symbol.
void reassignDepths(std::span<const std::uint64_t> counts,
                    std::span<const std::uint32_t> symbols,
                    std::span<const std::uint32_t> n_codes,
                    std::span<std::uint32_t> order,
                    std::span<std::uint32_t> depths) {
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t count_a = counts[symbols[a]];
    const std::uint64_t count_b = counts[symbols[b]];
    return count_a != count_b ? count_a > count_b : a < b;
  });
  std::size_t next = 0;
  for (std::uint32_t l = 1; l <= kMaxCodeBits; ++l) {
    for (std::uint32_t i = 0; i < n_codes[l]; ++i) {
      depths[order[next++]] = l;
    }
  }
  FZ_ASSERT(next == order.size());
}

}  // namespace

void limitLengths(std::span<std::uint32_t> n_codes) {
  for (std::size_t l = kMaxCodeBits + 1; l < n_codes.size(); ++l) {
    n_codes[kMaxCodeBits] += n_codes[l];
    n_codes[l] = 0;
  }
  std::uint64_t kraft = 0;  // in units of the longest code
  for (std::uint32_t l = 1; l <= kMaxCodeBits; ++l) {
    kraft += static_cast<std::uint64_t>(n_codes[l]) << (kMaxCodeBits - l);
  }
  for (; kraft > std::uint64_t{1} << kMaxCodeBits; --kraft) {
    // A longest code moves next to the deepest shorter one, which steps down a level for it: the
    // sum falls by exactly one unit, so the book ends complete.
    std::uint32_t l = kMaxCodeBits - 1;
    while (n_codes[l] == 0) {
      --l;
    }
    --n_codes[l];
    n_codes[l + 1] += 2;
    --n_codes[kMaxCodeBits];
  }
}

Book buildBook(std::span<const std::uint64_t> counts, MemoryPool* pool, BookScratch& scratch) {
  const std::span<std::uint32_t> symbols_room =
      scratch.symbols.get<std::uint32_t>(pool, counts.size());
  std::size_t n_symbols = 0;
  for (std::uint32_t s = 0; s < counts.size(); ++s) {
    symbols_room[n_symbols] = s;
    n_symbols += counts[s] != 0 ? 1 : 0;
  }
  FZ_ASSERT(n_symbols > 0);
  const std::span<const std::uint32_t> symbols = symbols_room.first(n_symbols);
  const std::span<std::uint32_t> depths = scratch.depths.get<std::uint32_t>(pool, 2 * n_symbols);
  if (n_symbols == 1) {
    depths[0] = 1;  // a lone leaf is the root; it still needs a bit per value
  } else {
    treeDepths(counts, symbols, pool, scratch, depths);
  }

  std::uint32_t n_codes[kMaxDepth] = {};
  bool too_deep = false;
  for (std::size_t i = 0; i < n_symbols; ++i) {
    FZ_ASSERT(depths[i] < kMaxDepth);
    ++n_codes[depths[i]];
    too_deep = too_deep || depths[i] > kMaxCodeBits;
  }
  if (too_deep) {
    limitLengths(n_codes);
    reassignDepths(counts, symbols, n_codes, scratch.order.get<std::uint32_t>(pool, n_symbols),
                   depths);
  }

  Book book;
  makeTables(n_codes, book.tables);
  const std::span<std::uint32_t> codes = scratch.codes.get<std::uint32_t>(pool, counts.size());
  std::fill(codes.begin(), codes.end(), 0u);
  std::uint32_t next[kLengthSlots];
  std::copy_n(book.tables.first, kLengthSlots, next);
  for (std::size_t i = 0; i < n_symbols; ++i) {
    codes[symbols[i]] = packCode(next[depths[i]]++, depths[i]);
  }
  book.codes = codes;
  return book;
}

void writeBook(const Book& book, std::size_t value_bytes, MutableByteView out) {
  ByteWriter tables(out);
  for (const std::uint32_t first : book.tables.first) {
    tables.u32(first);
  }
  for (const std::uint32_t entry : book.tables.entry) {
    tables.u32(entry);
  }
  const MutableByteView keys = out.subspan(tables.position());
  FZ_ASSERT(keys.size() == book.codes.size() * value_bytes);
  std::fill(keys.begin(), keys.end(), std::uint8_t{0});
  for (std::uint32_t symbol = 0; symbol < book.codes.size(); ++symbol) {
    const std::uint32_t l = codeBits(book.codes[symbol]);
    if (l != 0) {
      const std::uint32_t rank = codeOf(book.codes[symbol]) - book.tables.first[l];
      // A coded symbol occurred, so it fits value_bytes.
      std::memcpy(&keys[value_bytes * (book.tables.entry[l] + rank)], &symbol, value_bytes);
    }
  }
}

BookTables readBook(ByteView stored, std::size_t value_bytes, std::uint32_t bklen) {
  ByteReader in(stored);
  std::uint32_t first[kLengthSlots];
  std::uint32_t entry[kLengthSlots];
  for (std::uint32_t& v : first) {
    v = in.u32();
  }
  for (std::uint32_t& v : entry) {
    v = in.u32();
  }
  std::uint32_t n_codes[kLengthSlots];
  BookTables book;
  const BookCheck check = checkBook(first, entry, bklen, n_codes, book);
  const BookFault fault = check.fault;
  const std::uint32_t l = check.n_bits;
  FZ_REQUIRE(
      fault != BookFault::kNoBits, ErrorCode::kCorrupt,
      "Huffman: book with {} codes of zero bits (a constant input, which the original system did not keep)",
      entry[1]);
  FZ_REQUIRE(fault != BookFault::kKeyRange, ErrorCode::kCorrupt,
             "Huffman: book has keys {} to {} for length {}, of {} keys", entry[l], entry[l + 1], l,
             bklen);
  FZ_REQUIRE(fault != BookFault::kNoCodes, ErrorCode::kCorrupt, "Huffman: book without codes");
  FZ_REQUIRE(fault != BookFault::kTooMany, ErrorCode::kCorrupt,
             "Huffman: book has more codes than {} bits can tell apart", l);
  FZ_REQUIRE(fault != BookFault::kFirst, ErrorCode::kCorrupt,
             "Huffman: first code of length {} must be {}, not {}", l, book.first[l], first[l]);
  for (std::uint32_t i = 0; i < entry[kLengthSlots - 1]; ++i) {
    std::uint32_t key = 0;
    std::memcpy(&key, stored.data() + in.position() + i * value_bytes, value_bytes);
    FZ_REQUIRE(key < bklen, ErrorCode::kCorrupt, "Huffman: key {} is {}, but the book length is {}",
               i, key, bklen);
  }
  return book;
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
                  n_slots, packCode(key, l));
    }
  }
}

}  // namespace fz::huffman
