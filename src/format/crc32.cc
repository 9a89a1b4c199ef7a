#include "format/crc32.h"

#include <algorithm>
#include <array>
#include <libdeflate.h>

#include "backends/cpu/crc_fold.h"
#include "backends/cpu/parallel_for.h"
#include "shared/bits.h"
#include "shared/crc_remainder.h"

namespace fz {

namespace {

/// Less is done before another thread has woken up.
constexpr std::size_t kMinPieceBytes = 256 * 1024;
constexpr std::size_t kMaxPieces = 64;

}  // namespace

std::uint32_t crc32(ByteView bytes, std::uint32_t crc) {
  constexpr std::uint32_t kOfEmptyRegister = ~0u;
  const FoldedCrc folded = foldCrc(bytes, crc);
  if (folded.n_bytes != 0) {
    crc = libdeflate_crc32(kOfEmptyRegister, folded.bytes, sizeof(folded.bytes));
    bytes = bytes.subspan(folded.n_bytes);
  }
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32(ByteView bytes, const CpuExecutor& executor) {
  const std::size_t n_pieces =
      std::min({kMaxPieces, executor.threadCount(), bytes.size() / kMinPieceBytes});
  if (n_pieces < 2) {
    return crc32(bytes);
  }
  const std::size_t piece_bytes = bits::ceilDiv(bytes.size(), n_pieces);
  std::array<std::uint32_t, kMaxPieces> crcs = {};
  parallelFor(executor, n_pieces, [&](std::size_t i) {
    const std::size_t begin = i * piece_bytes;
    crcs[i] = crc32(bytes.subspan(begin, std::min(piece_bytes, bytes.size() - begin)));
  });
  const std::uint32_t power = crcPower(piece_bytes);
  std::uint32_t crc = crcs[0];
  for (std::size_t i = 1; i + 1 < n_pieces; ++i) {
    crc = crcJoin(crc, crcs[i], power);
  }
  return crcJoin(crc, crcs[n_pieces - 1], crcPower(bytes.size() - (n_pieces - 1) * piece_bytes));
}

}  // namespace fz
