// RZE on a device: alone, and as the coder of a fused group.
#include <algorithm>
#include <array>

#include "backends/cuda/padding.h"
#include "backends/cuda/zeroed_scratch.h"
#include "coders/rze/codec.h"
#include "coders/rze/cuda/kernels.h"
#include "coders/rze/rze_stage.h"
#include "core/require.h"
#include "core/size_limit.h"
#include "shared/bits.h"

namespace fz::rze {

namespace {

/// Chunks to launch for, at least one, so that sizes are published for empty inputs too.
std::uint32_t launchChunks(std::uint64_t n_bytes, std::size_t chunk_bytes) {
  const std::uint64_t n_most = std::clamp<std::uint64_t>(n_bytes, 1, kMaxInputBytes);
  return static_cast<std::uint32_t>(bits::ceilDiv(n_most, std::uint64_t{chunk_bytes}));
}

RzeArgs makeArgs(const cuda::Call& call,
                 std::uint32_t n_chunks,
                 int levels,
                 std::uint64_t* states) {
  return {call.inputs[0], call.outputs[0], call.record,
          states,         n_chunks,        static_cast<std::uint32_t>(levels)};
}

}  // namespace

class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(RZEStage& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override { return {{5, 4, kBytesSlot}}; }
  std::optional<std::uint32_t> quietValues() const override { return 0; }
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;
  void endGroup(const cuda::Call& call, const GroupRun& group) override;

 private:
  std::uint64_t* encodeStates(const cuda::Call& call, std::uint32_t n_chunks);
  std::uint64_t* decodeStates(const cuda::Call& call, std::uint32_t n_chunks, bool has_own_blocks);

  RZEStage& stage_;
  ZeroedScratch look_back_;
  Scratch places_;
};

/// RzeArgs::states of an encode; recordZero() when it is enqueued.
std::uint64_t* CudaSide::encodeStates(const cuda::Call& call, std::uint32_t n_chunks) {
  const std::size_t n_words = std::size_t{n_chunks} + kCounters;
  return reinterpret_cast<std::uint64_t*>(look_back_.get(call, n_words * sizeof(std::uint64_t)));
}
/// Those of a decode; has_own_blocks: with a thread block for each chunk.
std::uint64_t* CudaSide::decodeStates(const cuda::Call& call,
                                      std::uint32_t n_chunks,
                                      bool has_own_blocks) {
  return n_chunks <= kFewChunks && has_own_blocks
             ? nullptr
             : places_.get<std::uint64_t>(call.pool, 2 * std::size_t{n_chunks}).data();
}

void CudaSide::encode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  FZ_REQUIRE_SIZE(!size.isExact() || size.n_bytes <= kMaxInputBytes, stage_.getName(),
                  "input must be at most {} bytes, got {}", kMaxInputBytes, size.n_bytes);
  const std::uint32_t n_chunks = launchChunks(size.n_bytes, stage_.chunk_bytes_);
  launchEncode(makeArgs(call, n_chunks, stage_.levels_, encodeStates(call, n_chunks)),
               static_cast<std::uint32_t>(stage_.chunk_bytes_), call);
  look_back_.recordZero();
}

void CudaSide::finishEncode(const StageRecord& record) {
  stage_.original_bytes_ = static_cast<std::size_t>(record.value[kBytesSlot]);
}

void CudaSide::decode(const cuda::Call& call) {
  const DeviceSize& size = call.inputs[0].size;
  if (size.isExact()) {
    stage_.decodedBytes(
        std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
  }
  const std::uint32_t n_chunks = launchChunks(call.outputs[0].capacity_bytes, stage_.chunk_bytes_);
  launchDecode(makeArgs(call, n_chunks, stage_.levels_, decodeStates(call, n_chunks, true)),
               static_cast<std::uint32_t>(stage_.chunk_bytes_), call);
}

TileOp CudaSide::tileOp() const {
  return CoderOp{.tile_bytes = static_cast<std::uint32_t>(stage_.chunk_bytes_),
                 .warp_bytes = kWarpBytes,
                 .takes_lines = true};
}

std::string CudaSide::tileOpType() const {
  return fmt::format("fz::rze::RzeOp<{}>", stage_.chunk_bytes_);
}

std::string CudaSide::tileOpHeader() const {
  return "coders/rze/cuda/op/op.cuh";
}

void CudaSide::beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) {
  const DeviceSize& size = call.inputs[0].size;
  if (stage_.isInverse()) {
    if (size.isExact()) {
      stage_.decodedBytes(
          std::array{static_cast<std::size_t>(size.n_bytes)});  // says more than a kernel
    }
  } else {
    FZ_REQUIRE_SIZE(!size.isExact() || size.n_bytes <= kMaxInputBytes, stage_.getName(),
                    "input must be at most {} bytes, got {}", kMaxInputBytes, size.n_bytes);
  }
  const auto n_chunks = static_cast<std::uint32_t>(group.n_tiles);
  RzeArgs own = makeArgs(call, n_chunks, stage_.levels_,
                         stage_.isInverse()
                             ? decodeStates(call, n_chunks, group.shape.blocks_per_processor == 0)
                             : encodeStates(call, n_chunks));
  cuda::clearPadding(own);
  if (stage_.isInverse()) {
    launchPlaces(own, static_cast<std::uint32_t>(stage_.chunk_bytes_), call);
  }
  args.add(own);
}

void CudaSide::endGroup(const cuda::Call& /*call*/, const GroupRun& /*group*/) {
  if (!stage_.isInverse()) {
    look_back_.recordZero();
  }
}

void CudaSide::throwError(const StageRecord& record) const {
  FZ_REQUIRE_SIZE(stage_.isInverse(), stage_.getName(), "input must be at most {} bytes, got {}",
                  kMaxInputBytes, record.error_index);
  if (record.error_value == kHeaderIsWrong) {
    detail::throwError(
        ErrorCode::kCorrupt,
        fmt::format("RZE: config has {} bytes in chunks of {}, which the stream contradicts",
                    record.value[kBytesSlot], stage_.chunk_bytes_));
  }
  if (record.error_value != kChunkIsDamaged) {
    detail::throwError(ErrorCode::kCorrupt,
                       fmt::format("RZE: chunks end at byte {}, which is not the end of the stream",
                                   record.error_value));
  }
  detail::throwError(ErrorCode::kCorrupt,
                     fmt::format("RZE: chunk {} is damaged", record.error_index));
}

MakeCudaPart cudaPartMaker() {
  return [](SimpleStage& stage) -> std::unique_ptr<CudaPart> {
    return std::make_unique<CudaSide>(static_cast<RZEStage&>(stage));
  };
}

}  // namespace fz::rze
