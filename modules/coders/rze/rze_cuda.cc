#include "coders/rze/rze_cuda.h"

#include <algorithm>
#include <array>

#include <cuda_runtime_api.h>

#include "coders/rze/rze_codec.h"
#include "coders/rze/rze_op.h"
#include "coders/rze/rze_stage.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "cuda_check.h"
#include "shared/bits.h"

namespace fz {

namespace {

/// Chunks to launch for, at least one, so that sizes are published for empty inputs too.
std::uint32_t launchChunks(std::uint64_t n_bytes, std::size_t chunk_bytes) {
  const std::uint64_t n_most = std::clamp<std::uint64_t>(n_bytes, 1, rze::kMaxInputBytes);
  return static_cast<std::uint32_t>(bits::ceilDiv(n_most, std::uint64_t{chunk_bytes}));
}

rze::CudaArgs makeArgs(const CudaRun& run,
                       std::uint32_t n_chunks,
                       int levels,
                       std::uint64_t* states) {
  return {run.inputs[0], run.outputs[0], run.record,
          states,        n_chunks,       static_cast<std::uint32_t>(levels)};
}

}  // namespace

bool RZEStage::hasCuda() const {
  return true;
}

/// CudaArgs::states of an encode; noteZero() when it is enqueued.
std::uint64_t* RZEStage::encodeStates(const CudaRun& run, std::uint32_t n_chunks) {
  const std::size_t n_words = std::size_t{n_chunks} + rze::kCounters;
  return reinterpret_cast<std::uint64_t*>(look_back_.get(run, n_words * sizeof(std::uint64_t)));
}
/// Those of a decode; has_own_blocks: with a thread block for each chunk.
std::uint64_t* RZEStage::decodeStates(const CudaRun& run,
                                      std::uint32_t n_chunks,
                                      bool has_own_blocks) {
  return n_chunks <= rze::kFewChunks && has_own_blocks
             ? nullptr
             : places_.get<std::uint64_t>(run.pool, 2 * std::size_t{n_chunks}).data();
}

void RZEStage::encodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  FZ_REQUIRE_SIZE(!size.isExact() || size.n_bytes <= rze::kMaxInputBytes, getName(),
                  "input of at most {} bytes needed, {} came", rze::kMaxInputBytes, size.n_bytes);
  const std::uint32_t n_chunks = launchChunks(size.n_bytes, chunk_bytes_);
  rze::launchEncode(makeArgs(run, n_chunks, levels_, encodeStates(run, n_chunks)),
                    static_cast<std::uint32_t>(chunk_bytes_), run.stream);
  look_back_.noteZero();
}

void RZEStage::finishEncodeCuda(const StageRecord& record) {
  original_bytes_ = static_cast<std::size_t>(record.value[rze::kBytesSlot]);
}

void RZEStage::decodeCuda(const CudaRun& run) {
  const DeviceSize& size = run.inputs[0].size;
  if (size.isExact()) {
    decodedBytes(std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
  }
  const std::uint32_t n_chunks = launchChunks(run.outputs[0].capacity_bytes, chunk_bytes_);
  rze::launchDecode(makeArgs(run, n_chunks, levels_, decodeStates(run, n_chunks, true)),
                    static_cast<std::uint32_t>(chunk_bytes_), run.stream);
}

TileOp RZEStage::cudaTileOp() const {
  return {.role = TileRole::kCoder,
          .tile_bytes = static_cast<std::uint32_t>(chunk_bytes_),
          .warp_bytes = rze::kWarpBytes,
          .has_lines = true,
          .chunk_bytes = static_cast<std::uint32_t>(chunk_bytes_)};
}

std::string RZEStage::tileOpType() const {
  return fmt::format("fz::rze::RzeOp<{}>", chunk_bytes_);
}

std::string RZEStage::tileOpHeader() const {
  return "coders/rze/rze_op.cuh";
}

void RZEStage::beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) {
  const DeviceSize& size = run.inputs[0].size;
  if (isInverse()) {
    if (size.isExact()) {
      decodedBytes(std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
    }
  } else {
    FZ_REQUIRE_SIZE(!size.isExact() || size.n_bytes <= rze::kMaxInputBytes, getName(),
                    "input of at most {} bytes needed, {} came", rze::kMaxInputBytes, size.n_bytes);
  }
  const auto n_chunks = static_cast<std::uint32_t>(group.n_tiles);
  const rze::RzeArgs own =
      makeArgs(run, n_chunks, levels_,
               isInverse() ? decodeStates(run, n_chunks, group.shape.blocks_per_processor == 0)
                           : encodeStates(run, n_chunks));
  if (isInverse()) {
    rze::launchPlaces(own, static_cast<std::uint32_t>(chunk_bytes_), run.stream);
  }
  args.add(own);
}

void RZEStage::endGroupCuda(const CudaRun& /*run*/, const GroupRun& /*group*/) {
  if (!isInverse()) {
    look_back_.noteZero();
  }
}

void RZEStage::throwDeviceError(const StageRecord& record) const {
  FZ_REQUIRE_SIZE(isInverse(), getName(), "input of at most {} bytes needed, {} came",
                  rze::kMaxInputBytes, record.error_index);
  if (record.error_value == rze::kHeaderIsWrong) {
    detail::throwError(
        ErrorCode::kCorrupt,
        fmt::format("RZE: config has {} bytes in chunks of {}, the stream contradicts it",
                    record.value[rze::kBytesSlot], chunk_bytes_));
  }
  if (record.error_value != rze::kChunkIsDamaged) {
    detail::throwError(
        ErrorCode::kCorrupt,
        fmt::format("RZE: chunks end at byte {}, the stream does not", record.error_value));
  }
  detail::throwError(ErrorCode::kCorrupt,
                     fmt::format("RZE: chunk {} is damaged", record.error_index));
}

}  // namespace fz
