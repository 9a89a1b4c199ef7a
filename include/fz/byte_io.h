#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fz {

/// Little-endian writer over a fixed buffer. Writing past the end sets overflowed() and writes
/// nothing; it never touches memory outside the buffer.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::uint8_t> out) : out_(out) {}

  ByteWriter& u8(std::uint8_t v) { return put(v, 1); }
  ByteWriter& u16(std::uint16_t v) { return put(v, 2); }
  ByteWriter& u32(std::uint32_t v) { return put(v, 4); }
  ByteWriter& u64(std::uint64_t v) { return put(v, 8); }
  ByteWriter& f32(float v) { return u32(__builtin_bit_cast(std::uint32_t, v)); }
  ByteWriter& f64(double v) { return u64(__builtin_bit_cast(std::uint64_t, v)); }
  ByteWriter& zeros(std::size_t n_bytes) {
    for (std::size_t i = 0; i < n_bytes; ++i) {
      u8(0);
    }
    return *this;
  }
  ByteWriter& raw(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t b : bytes) {
      u8(b);
    }
    return *this;
  }

  std::size_t position() const { return position_; }
  bool overflowed() const { return overflowed_; }

 private:
  ByteWriter& put(std::uint64_t v, std::size_t n_bytes) {
    if (overflowed_ || out_.size() - position_ < n_bytes) {
      overflowed_ = true;
      return *this;
    }
    for (std::size_t i = 0; i < n_bytes; ++i) {
      out_[position_ + i] = static_cast<std::uint8_t>(v >> (8 * i));
    }
    position_ += n_bytes;
    return *this;
  }

  std::span<std::uint8_t> out_;
  std::size_t position_ = 0;
  bool overflowed_ = false;
};

/// Little-endian reader over untrusted bytes. Reading past the end sets failed() and yields zeros.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> in) : in_(in) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(get(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(get(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(get(4)); }
  std::uint64_t u64() { return get(8); }
  float f32() { return __builtin_bit_cast(float, u32()); }
  double f64() { return __builtin_bit_cast(double, u64()); }
  void skip(std::size_t n_bytes) {
    if (remaining() < n_bytes) {
      failed_ = true;
      position_ = in_.size();
      return;
    }
    position_ += n_bytes;
  }

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return in_.size() - position_; }
  bool failed() const { return failed_; }

 private:
  std::uint64_t get(std::size_t n_bytes) {
    if (remaining() < n_bytes) {
      failed_ = true;
      position_ = in_.size();
      return 0;
    }
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < n_bytes; ++i) {
      v |= static_cast<std::uint64_t>(in_[position_ + i]) << (8 * i);
    }
    position_ += n_bytes;
    return v;
  }

  std::span<const std::uint8_t> in_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

/// Unaligned little-endian loads and stores of one value, for hot loops over byte streams.
template <class T>
inline T loadLe(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
template <class T>
inline void storeLe(std::uint8_t* p, T v) {
  std::memcpy(p, &v, sizeof(T));
}

}  // namespace fz
