#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "coders/block_ans/codec.h"
#include "fz/span.h"
#include "shared/bits.h"

/// Bytes around the chunks: forms of a stream, the directory, the states at the front of a chunk.
namespace fz::block_ans {

/// First byte of a stream.
enum class Form : std::uint8_t {
  kStored,  ///< the values
  kPacked,  ///< blocks of one width, at most kMaxPackedValues values
  kBank,    ///< chunks with the tables of the bank
  kCounted  ///< tables, then chunks
};

inline constexpr std::size_t kHeaderBytes = 4;  // form, and in the upper 24 bits: chunks
inline constexpr std::size_t kEntryBytes =
    4;  // of the directory: 10 bits groups - 1, 22 bits words
inline constexpr std::uint64_t kMaxChunks = (1u << 24) - 1;
inline constexpr std::uint64_t kMaxPackedValues = kGroupValues;
/// What no stream can exceed by more.
inline constexpr std::size_t kMaxExtraBytes = kHeaderBytes;

/// Bits from the lowest of a byte on. Writing past the end is remembered, not done.
class BitWriter {
 public:
  explicit BitWriter(MutableByteView out) : out_(out) {}

  /// The low n_bits of value, which has no others; at most 32.
  void put(std::uint32_t value, std::uint32_t n_bits) {
    pending_ |= std::uint64_t{value} << n_pending_;
    n_pending_ += n_bits;
    if (n_pending_ >= 32) {
      bytes(4);
      pending_ >>= 32;
      n_pending_ -= 32;
    }
  }
  /// So many zeros, then a one.
  void putUnary(std::uint32_t n_zeros) { put(1u << n_zeros, n_zeros + 1); }
  /// Fills up the last byte with zeros; bytes written, or 0 when they had no room.
  std::size_t finish() {
    bytes((n_pending_ + 7) / 8);
    return at_ <= out_.size() ? at_ : 0;
  }

 private:
  void bytes(std::size_t n_bytes) {
    if (at_ + n_bytes <= out_.size()) {
      std::memcpy(out_.data() + at_, &pending_, n_bytes);
    }
    at_ += n_bytes;
  }

  MutableByteView out_;
  std::size_t at_ = 0;
  std::uint64_t pending_ = 0;
  std::uint32_t n_pending_ = 0;
};

/// Reads what a BitWriter wrote; past the end come zeros, and isAtEnd() is false.
class BitReader {
 public:
  explicit BitReader(ByteView in) : in_(in) {}

  /// At most 32 bits.
  std::uint32_t get(std::uint32_t n_bits) {
    const std::uint64_t value = word(at_ / 8) >> (at_ % 8);
    at_ += n_bits;
    return static_cast<std::uint32_t>(value & ((std::uint64_t{1} << n_bits) - 1));
  }
  /// Zeros before the next one; more than `max` count as max + 1.
  std::uint32_t getUnary(std::uint32_t max) {
    std::uint32_t n_zeros = 0;
    while (n_zeros <= max && bitAt(at_++) == 0) {
      ++n_zeros;
    }
    return n_zeros;
  }
  /// Nothing is left but zeros that fill up the last byte.
  bool isAtEnd() const {
    std::uint32_t rest = 0;
    for (std::uint64_t at = at_; at < 8 * in_.size(); ++at) {
      rest |= bitAt(at);
    }
    return rest == 0 && (at_ + 7) / 8 == in_.size();
  }

 private:
  /// Eight bytes from a place on; zeros past the end.
  std::uint64_t word(std::uint64_t byte) const {
    std::uint64_t bytes = 0;
    if (byte + 8 <= in_.size()) {
      std::memcpy(&bytes, in_.data() + byte, 8);
    } else if (byte < in_.size()) {
      std::memcpy(&bytes, in_.data() + byte, static_cast<std::size_t>(in_.size() - byte));
    }
    return bytes;
  }
  std::uint32_t bitAt(std::uint64_t at) const {
    return at < 8 * in_.size() ? in_[static_cast<std::size_t>(at / 8)] >> (at % 8) & 1u : 0;
  }

  ByteView in_;
  std::uint64_t at_ = 0;
};

/// Where a chunk lies, in the values and in the stream.
struct Chunk {
  std::uint64_t first_value;
  std::uint64_t n_values;
  std::uint64_t byte_offset;  ///< in the stream
  std::uint32_t n_groups;
  std::uint32_t n_words;  ///< of 16 bits; as many as the values have: they are stored as they are
};

/// Words that the values themselves take.
inline std::uint64_t rawWords(std::uint64_t n_values, std::size_t value_bytes) {
  return n_values * (value_bytes / 2);
}
inline bool isStored(const Chunk& chunk, std::size_t value_bytes) {
  return chunk.n_words == rawWords(chunk.n_values, value_bytes);
}

/// The front of a chunk is the states that the encoder ended with: for each lane 4 bits, the length
/// of its state less kMinStateLength, then for each lane the bits below the first one.
inline constexpr std::uint32_t kMinStateLength = 16;
inline constexpr std::uint32_t kStateLengthBits = 4;
inline constexpr std::size_t kMinStateBytes = kLanes * (kStateLengthBits + kMinStateLength - 1) / 8;
inline constexpr std::size_t kMaxStateBytes = kLanes * (kStateLengthBits + kStateBits - 1) / 8;

/// Writes them; returns their bytes, an even number.
std::size_t writeStates(const std::uint32_t* x, MutableByteView out);
/// Reads them from the front of untrusted bytes; returns how many they took, 0 when they are none.
std::size_t readStates(ByteView in, std::uint32_t* x);

/// Form and number of chunks.
void writeHeader(Form form, std::uint64_t n_chunks, MutableByteView out);
struct Header {
  Form form;
  std::uint64_t n_chunks;
};
/// Throws Error(kCorrupt) for a form that there is not, and for chunks that have no room in the
/// stream.
Header readHeader(ByteView stream);

void writeEntry(const Chunk& chunk, std::uint8_t* out);

/// Reads an untrusted directory that begins at `offset` of the stream: the chunks follow each other
/// and hold n_values values and all bytes behind it. `chunks` has header.n_chunks elements. Throws
/// Error(kCorrupt).
void readDirectory(ByteView stream,
                   std::size_t offset,
                   std::uint64_t n_values,
                   std::size_t value_bytes,
                   std::span<Chunk> chunks);

/// Bytes of the form kPacked for numbers whose widths are those of its blocks.
std::size_t packedBytes(std::span<const std::uint32_t> u);
void writePacked(std::span<const std::uint32_t> u, MutableByteView out);
/// Throws Error(kCorrupt).
void readPacked(ByteView stream, std::size_t value_bytes, std::span<std::uint32_t> u);

}  // namespace fz::block_ans
