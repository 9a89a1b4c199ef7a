// The tables that the kernels of frames sum up checksums with, by a warp that is played here.
#include <array>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "backends/cpu/parallel_for.h"
#include "backends/cuda/crc32.cuh"
#include "format/crc32.h"

namespace fz::test {
namespace {

constexpr unsigned kWarps = 8;
constexpr unsigned kSteps = 2;
constexpr unsigned kStepBytes = kWarps * 512;

/// What lanes of one group have in common with one row of a matrix, as mma.m16n8k256 counts it:
/// `words` are the four words of each of the four lanes of a column.
unsigned commonBits(const cuda::CrcMatrices<kSteps>& matrices,
                    unsigned step,
                    unsigned row,
                    const std::array<std::array<std::uint32_t, 4>, 4>& words) {
  unsigned n = 0;
  for (unsigned lane = 0; lane < 4; ++lane) {
    for (unsigned w = 0; w < 4; ++w) {
      const std::uint32_t of_matrix =
          matrices.word[step][w / 2][row / 16][row % 8 * 4 + lane][w % 2 * 2 + row / 8 % 2];
      n += static_cast<unsigned>(std::popcount(of_matrix & words[lane][w]));
    }
  }
  return n;
}

/// The remainder of two steps of a thread block.
std::uint32_t remainderOf(const std::vector<std::uint8_t>& bytes) {
  const auto matrices = cuda::makeCrcMatrices<kSteps>(kStepBytes);
  const auto places = cuda::makeCrcPlaces<kWarps>();
  std::uint32_t remainder = 0;
  for (unsigned warp = 0; warp < kWarps; ++warp) {
    for (unsigned column = 0; column < cuda::kCrcColumns; ++column) {
      for (unsigned row = 0; row < 32; ++row) {
        unsigned n = 0;
        for (unsigned step = 0; step < kSteps; ++step) {
          std::array<std::array<std::uint32_t, 4>, 4> words;
          std::memcpy(&words, bytes.data() + step * kStepBytes + warp * 512 + column * 64, 64);
          n += commonBits(matrices, step, row, words);
        }
        const unsigned lane = row % 8 * 4 + column / 2;
        const unsigned sum = row / 16 * 4 + row / 8 % 2 * 2 + column % 2;
        remainder ^= n % 2 != 0 ? places.part[warp][lane][sum] : 0u;
      }
    }
  }
  return remainder;
}

TEST(CrcTables, MatricesOfBitsGiveTheChecksum) {
  std::vector<std::uint8_t> bytes(kSteps * kStepBytes);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  const std::uint32_t expected = crc32(bytes);
  for (unsigned i = 0; i < 4; ++i) {  // the start value
    bytes[i] = static_cast<std::uint8_t>(~bytes[i]);
  }
  EXPECT_EQ(~remainderOf(bytes), expected);
}

TEST(CrcTables, MovesGoAsFarAsTheyAreToldTo) {
  const auto moves = cuda::makeCrcMoves();
  for (unsigned digit = 1; digit < 16; ++digit) {
    for (unsigned k = 0; k < 6; ++k) {
      const std::uint64_t n_bytes = std::uint64_t{digit} << (4 * k);
      for (unsigned i = 0; i < 32; i += 7) {
        EXPECT_EQ(moves.image[k][digit][i], crcMultiply(kCrcOne >> i, crcPower(n_bytes)))
            << "x^" << i << ", " << n_bytes << " bytes";
      }
    }
  }
}

TEST(Crc, ThreadsGiveTheChecksumOfOne) {
  std::vector<std::uint8_t> bytes(3'000'001);
  std::uint32_t state = 5;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  for (const std::size_t n_threads : {1, 2, 3, 7, 100}) {
    const auto executor = makeCpuExecutor(n_threads, ThreadBackend::kStd);
    for (const std::size_t n : {0, 1, 524'287, 524'288, 524'289, 1'000'000, 3'000'001}) {
      const ByteView part(bytes.data(), n);
      EXPECT_EQ(crc32(part, *executor), crc32(part)) << n << " bytes, " << n_threads << " threads";
    }
  }
}

}  // namespace
}  // namespace fz::test
