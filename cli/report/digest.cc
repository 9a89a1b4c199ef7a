#include "report/digest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

namespace fz::report {

namespace {

constexpr std::size_t kBlockBytes = 64;
using State = std::array<std::uint32_t, 8>;

constexpr std::array<std::uint32_t, 64> firstPrimes() {
  std::array<std::uint32_t, 64> primes{};
  std::size_t n = 0;
  for (std::uint32_t candidate = 2; n < primes.size(); ++candidate) {
    bool is_prime = true;
    for (std::uint32_t d = 2; d * d <= candidate; ++d) {
      is_prime = is_prime && candidate % d != 0;
    }
    if (is_prime) {
      primes[n++] = candidate;
    }
  }
  return primes;
}

/// First 32 bits after the point of the root of `n` of the given degree, by bisection on integers.
constexpr std::uint32_t rootFraction(std::uint32_t n, int degree) {
  std::uint64_t root = 0;  // in units of 2^-32
  for (int bit = 35; bit >= 0; --bit) {
    const std::uint64_t trial = root | (std::uint64_t{1} << bit);
    // trial < 2^36, so its cube needs 108 bits.
    unsigned __int128 power = trial;
    for (int i = 1; i < degree; ++i) {
      power *= trial;
    }
    if (power <= static_cast<unsigned __int128>(n) << (32 * degree)) {
      root = trial;
    }
  }
  return static_cast<std::uint32_t>(root);
}

constexpr std::array<std::uint32_t, 64> makeConstants() {
  const std::array<std::uint32_t, 64> primes = firstPrimes();
  std::array<std::uint32_t, 64> constants{};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    constants[i] = rootFraction(primes[i], 3);
  }
  return constants;
}

State firstState() {
  State state{};
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] = rootFraction(firstPrimes()[i], 2);
  }
  return state;
}

void addBlock(State& state, const std::uint8_t* block) {
  static const std::array<std::uint32_t, 64> kConstants = makeConstants();
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
           std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  State s = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t sum_e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const std::uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const std::uint32_t first = s[7] + sum_e + choice + kConstants[i] + w[i];
    const std::uint32_t sum_a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const std::uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    s = {first + sum_a + majority, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] += s[i];
  }
}

}  // namespace

std::string sha256Hex(ByteView bytes) {
  State state = firstState();
  std::size_t done = 0;
  for (; bytes.size() - done >= kBlockBytes; done += kBlockBytes) {
    addBlock(state, bytes.data() + done);
  }
  std::array<std::uint8_t, 2 * kBlockBytes> tail{};
  const std::size_t n_left = bytes.size() - done;
  std::copy_n(bytes.data() + done, n_left, tail.begin());
  tail[n_left] = 0x80;
  const std::size_t n_tail = n_left + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  const std::uint64_t n_bits = std::uint64_t{bytes.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) {
    tail[n_tail - 1 - i] = static_cast<std::uint8_t>(n_bits >> (8 * i));
  }
  for (std::size_t i = 0; i < n_tail; i += kBlockBytes) {
    addBlock(state, tail.data() + i);
  }
  std::string text;
  for (const std::uint32_t word : state) {
    text += fmt::format("{:08x}", word);
  }
  return text;
}

}  // namespace fz::report
