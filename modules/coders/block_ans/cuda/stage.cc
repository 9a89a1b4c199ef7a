// BlockANS on a device.
#include <algorithm>
#include <array>

#include <cuda_runtime_api.h>

#include "backends/cuda/zeroed_scratch.h"
#include "coders/block_ans/block_ans_stage.h"
#include "coders/block_ans/book.h"
#include "coders/block_ans/book_codec.h"
#include "coders/block_ans/cuda/kernels.h"
#include "core/require.h"
#include "fz/cuda_part.h"
#include "fz/stage_descriptor.h"
#include "mem/scratch.h"

namespace fz::block_ans {

namespace {

/// The bank as kernels get it.
const BankTables& bankTables(std::size_t value_bytes) {
  const auto make = [](std::uint32_t n_bytes) {
    BankTables tables = {};
    std::uint32_t at = 0;
    for (std::uint32_t t = 0; t < kTables; ++t) {
      tables.begin[t] = static_cast<std::uint16_t>(at);
      const std::uint32_t limit = tableLimit(t, n_bytes);
      std::copy_n(bank(n_bytes).freq[t], limit, tables.freq + at);
      at += limit;
    }
    return tables;
  };
  static const BankTables kTables16 = make(2);
  static const BankTables kTables32 = make(4);
  return value_bytes == 2 ? kTables16 : kTables32;
}

/// The most chunks that so many groups or fewer are cut into.
std::uint64_t maxChunks(std::uint64_t n_groups, std::uint32_t setting, bool is_counted) {
  std::uint64_t n_chunks = 0;
  if (is_counted) {
    const std::uint64_t weight = setting != 0 ? setting : kMostWeight;
    n_chunks = n_groups * kMaxGroupWeight / weight + 1;
    n_chunks = setting != 0 ? n_chunks : std::max(n_chunks, kWantedChunks + 1);
  } else {
    const std::uint64_t weight = setting != 0 ? setting : kMostWeight;
    n_chunks = bits::ceilDiv(n_groups, weight / kAssumedGroupWeight);
    // A chunk has at least half of the groups that its weight stands for.
    n_chunks = setting != 0 ? n_chunks : std::max(n_chunks, 2 * kWantedChunks + 1);
  }
  return std::min({n_chunks, n_groups, kMaxChunks});
}

std::uint64_t groupsOf(std::uint64_t n_bytes, std::size_t value_bytes) {
  return bits::ceilDiv<std::uint64_t>(n_bytes / value_bytes, kGroupValues);
}

}  // namespace

class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(BlockAnsBase& stage) : stage_(stage) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override {
    stage_.settings_.n_values = record.value[kCountSlot];
  }
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override {
    return {{.config_offset = 8, .n_bytes = 8, .slot = kCountSlot}};
  }
  bool readsUnaligned(std::size_t /*input*/) const override { return stage_.isInverse(); }

 private:
  /// Words that kernels find at zero and leave so.
  struct Zeroed {
    std::uint64_t counts[kTables * kSymbols];
    std::uint64_t total_weight;
    std::uint64_t n_blocks_done;
  };
  struct EncodeTablesRoom {
    EncodePlan plan;
    alignas(16) uint4 steps[kSteps];
    std::uint8_t book[kTables * kMaxBookTableBytes];
  };
  struct DecodeTablesRoom {
    DecodePlan plan;
    alignas(16) std::uint32_t slots[kSymbolTables * kScale];
    std::uint16_t class_bounds[kContexts * kClassBounds];
    alignas(16) std::uint32_t tail[kGroupValues];
  };

  Map map() const { return static_cast<Map>(stage_.settings_.map); }

  BlockAnsBase& stage_;
  ZeroedScratch zeroed_;
  Scratch tables_;
  Scratch classes_;
  Scratch weights_;
  Scratch first_groups_;
  Scratch chunk_words_;
  Scratch chunks_;
  Scratch words_;
};

void CudaSide::encode(const cuda::Call& call) {
  const CudaInput& in = call.inputs[0];
  const std::size_t value_bytes = stage_.valueBytes();
  FZ_REQUIRE(!in.size.isExact() || in.size.n_bytes % value_bytes == 0, ErrorCode::kBadSize,
             "BlockANS: input size {} is not a multiple of {} bytes", in.size.n_bytes, value_bytes);
  if (in.size.n_bytes == 0) {
    return;  // a fresh record says: no bytes, no values
  }
  const bool is_counted = stage_.settings_.tables == BlockAnsTables::Counted;
  const std::uint64_t n_groups = std::max<std::uint64_t>(groupsOf(in.size.n_bytes, value_bytes), 1);
  const std::uint64_t n_chunks = maxChunks(n_groups, stage_.settings_.chunk_weight, is_counted);
  const std::uint64_t n_measured = is_counted ? bits::roundUp<std::uint64_t>(n_groups, 32) : 0;
  constexpr std::uint64_t kWords = sizeof(std::uint16_t);
  auto& zeroed = *reinterpret_cast<Zeroed*>(zeroed_.get(call, sizeof(Zeroed)));
  auto& tables = tables_.get<EncodeTablesRoom>(call.pool, 1)[0];
  const EncodeArgs args = {
      .in = in,
      .out = call.outputs[0],
      .record = call.record,
      .map = map(),
      .is_counted = is_counted,
      .chunk_setting = stage_.settings_.chunk_weight,
      .max_groups = n_groups,
      .max_chunks = n_chunks,
      .counts = zeroed.counts,
      .total_weight = &zeroed.total_weight,
      .n_blocks_done = &zeroed.n_blocks_done,
      .plan = &tables.plan,
      .classes = classes_.get<std::uint16_t>(call.pool, n_measured * kLanes).data(),
      .weights = weights_.get<std::uint16_t>(call.pool, n_measured).data(),
      .first_group = first_groups_.get<std::uint32_t>(call.pool, n_chunks + 1).data(),
      .chunk_words =
          chunk_words_.get<std::uint32_t>(call.pool, bits::roundUp<std::uint64_t>(n_chunks, 8))
              .data(),
      .chunk_at =
          chunks_.get<std::uint64_t>(call.pool, bits::roundUp<std::uint64_t>(n_chunks, 8)).data(),
      .steps = tables.steps,
      .book = tables.book,
      .words = words_
                   .get<std::uint16_t>(call.pool,
                                       in.size.n_bytes / kWords + (n_chunks + 1) * kSlackWords)
                   .data()};
  if (is_counted) {
    launchMeasure(args, value_bytes, call);
  }
  launchTables(args, bankTables(value_bytes), value_bytes, call);
  launchEncode(args, value_bytes, call);
  launchCompact(args, value_bytes, call);
  zeroed_.recordZero();
}

void CudaSide::decode(const cuda::Call& call) {
  const CudaInput& in = call.inputs[0];
  const CudaOutput& out = call.outputs[0];
  const std::size_t value_bytes = stage_.valueBytes();
  if (in.size.isExact()) {
    stage_.checkSize(in.size.n_bytes);  // says more than a kernel
  }
  // Streams with more chunks have more values than the output has room for.
  const std::uint64_t n_entries = in.size.n_bytes / kEntryBytes;
  const std::uint64_t n_groups = groupsOf(out.capacity_bytes, value_bytes) + 1;
  auto& done = *reinterpret_cast<std::uint64_t*>(zeroed_.get(call, sizeof(std::uint64_t)));
  auto& tables = tables_.get<DecodeTablesRoom>(call.pool, 1)[0];
  const std::uint64_t n_chunks = std::min({n_entries, n_groups, kMaxChunks});
  const DecodeArgs args = {.in = in,
                           .out = out,
                           .record = call.record,
                           .map = map(),
                           .max_chunks = n_chunks,
                           .n_blocks_done = &done,
                           .plan = &tables.plan,
                           .chunks = chunks_.get<ChunkBegin>(call.pool, n_chunks + 1).data(),
                           .slots = tables.slots,
                           .class_bounds = tables.class_bounds,
                           .tail = reinterpret_cast<std::uint8_t*>(tables.tail)};
  launchPrepare(args, bankTables(value_bytes), value_bytes, call);
  launchDecode(args, value_bytes, call);
  zeroed_.recordZero();
}

void CudaSide::throwError(const StageRecord& record) const {
  const auto reason = static_cast<Reason>(record.value[kReasonSlot]);
  switch (reason) {
    case Reason::kRaggedInput:
      detail::throwError(ErrorCode::kBadSize,
                         fmt::format("BlockANS: input size {} is not a multiple of {} bytes",
                                     record.error_index, stage_.valueBytes()));
    case Reason::kTooManyChunks:
      detail::throwError(ErrorCode::kBadSize, fmt::format("BlockANS: {} chunks, at most {}",
                                                          record.error_index, kMaxChunks));
    case Reason::kBadHeader:
      detail::throwError(
          ErrorCode::kCorrupt,
          fmt::format("BlockANS: {} values in a stream of {} bytes that contradicts itself",
                      record.value[kCountSlot], record.error_index));
    case Reason::kBadTable:
      detail::throwError(ErrorCode::kCorrupt,
                         fmt::format("BlockANS: table {} is damaged", record.error_index));
    case Reason::kBadDirectory:
      detail::throwError(ErrorCode::kCorrupt, "BlockANS: the directory contradicts itself");
    case Reason::kBadPacked:
      detail::throwError(ErrorCode::kCorrupt, "BlockANS: packed values are damaged");
    default:
      detail::throwError(ErrorCode::kCorrupt,
                         fmt::format("BlockANS: chunk {} is damaged", record.error_index));
  }
}

MakeCudaPart cudaPartMaker() {
  return [](SimpleStage& stage) -> std::unique_ptr<CudaPart> {
    return std::make_unique<CudaSide>(dynamic_cast<BlockAnsBase&>(stage));
  };
}

}  // namespace fz::block_ans
