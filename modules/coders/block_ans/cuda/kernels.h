#pragma once

#include <cstddef>
#include <cstdint>
#include <vector_types.h>

#include "coders/block_ans/codec.h"
#include "coders/block_ans/stream.h"
#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

/// Launchers; every one only enqueues. Value types have 2 or 4 bytes.
namespace fz::block_ans {

/// Slots of StageRecord::value.
inline constexpr std::uint32_t kCountSlot = 0;   ///< number of values, a field of the config
inline constexpr std::uint32_t kReasonSlot = 1;  ///< a Reason, when an error was recorded

/// Why a run on a device failed. The largest one is reported.
enum class Reason : std::uint64_t {
  kNone,
  kRaggedInput,    ///< encoding: error_index bytes are not a multiple of a value
  kTooManyChunks,  ///< encoding: error_index
  kBadChunk,       ///< decoding: error_index is the first
  kBadDirectory,
  kBadTable,  ///< error_index
  kBadPacked,
  kBadHeader,
};

/// Frequencies of the bank, an argument of kernels: tables one after the other, each with the
/// symbols below its limit.
struct BankTables {
  static constexpr std::size_t kMaxSymbols = 1024;
  std::uint16_t begin[kTables];
  std::uint16_t freq[kMaxSymbols];
};

// Steps of an encoder as it keeps them in shared memory: reciprocal, threshold, factor << 16 |
// shift, bias << 16 | merged raw bits. Those of symbols have kSymbols of a table each; in tables
// without raw bits the low bits of a value say which.
inline constexpr std::uint32_t kClassSteps =
    kSymbolTables * kSymbols;  // where those of classes are
inline constexpr std::uint32_t kSteps = kClassSteps + kContexts * kClasses;

// Words of a chunk are written towards the front of a slot that has room for its values and for
// what can come on top before an encoder notices that there are too many.
inline constexpr std::uint32_t kRunBlocks = 4;  // that it fetches at a time
inline constexpr std::uint32_t kRunValues = kRunBlocks * kBlockValues;
inline constexpr std::uint32_t kSlackWords = 912;
static_assert(kSlackWords >= kRunBlocks * 6 * kLanes + 2 * kLanes + kMaxStateBytes / 2);

inline constexpr std::uint32_t kMaxBookTableBytes = 256;  // at which a table's bytes are kept

/// What kernels of an encoder tell each other.
struct EncodePlan {
  static constexpr std::uint32_t kNothing = 255;  ///< no chunks, or no room for the stream

  std::uint64_t n_values;
  std::uint64_t n_chunks;
  std::uint32_t form;  ///< a Form, or kNothing
  std::uint32_t n_book_bytes;
  std::uint32_t next_chunk;            ///< that no warp has taken
  std::uint32_t table_bytes[kTables];  ///< 0: from the bank
};

struct EncodeArgs {
  CudaInput in;
  CudaOutput out;
  StageRecord* record;
  Map map;
  bool is_counted;
  std::uint32_t chunk_setting;
  std::uint64_t max_groups;  ///< of the launch: the input has no more
  std::uint64_t max_chunks;

  // Zero before and after.
  std::uint64_t* counts;        ///< kTables * kSymbols
  std::uint64_t* total_weight;  ///< of all groups
  std::uint64_t* n_blocks_done;

  EncodePlan* plan;
  std::uint16_t* classes;      ///< if counted: kLanes of each group: two of a lane
  std::uint16_t* weights;      ///< if counted: of groups, a multiple of 32
  std::uint32_t* first_group;  ///< of each chunk, and the number of groups behind the last
  std::uint32_t* chunk_words;  ///< a multiple of 8
  std::uint64_t* chunk_at;     ///< bytes before each chunk, among chunks; a multiple of 8
  uint4* steps;                ///< kSteps
  std::uint8_t* book;          ///< kMaxBookTableBytes for each table
  std::uint16_t* words;        ///< slots of chunks
};

/// Classes, weights and counts, for counted tables.
void launchMeasure(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call);
/// Tables and chunks.
void launchTables(const EncodeArgs& args,
                  const BankTables& bank,
                  std::size_t value_bytes,
                  const cuda::Call& call);
/// Words of chunks, their places and the form of the stream.
void launchEncode(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call);
/// Puts the stream together.
void launchCompact(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call);

/// Cumulated frequencies of classes in a context; past kScale: 0xFFFF.
inline constexpr std::uint32_t kClassBounds = 32;

struct DecodePlan {
  std::uint64_t n_values;
  std::uint64_t n_chunks;
  std::uint32_t form;
  std::uint32_t is_good;     ///< 0: nothing to decode, or damage that has been recorded
  std::uint32_t next_chunk;  ///< that no warp has taken
  std::uint32_t tail[2];     ///< what is left of the stream behind its last whole aligned word, 0
  std::uint32_t is_part_good[kTables + 1];  ///< tables, and all else
};

/// Where a chunk begins; those of one more give the end of the last.
struct ChunkBegin {
  std::uint64_t group;
  std::uint64_t byte;  ///< in the stream
};

struct DecodeArgs {
  CudaInput in;  ///< at any address
  CudaOutput out;
  StageRecord* record;  ///< value[kCountSlot] holds the number of values
  Map map;
  std::uint64_t max_chunks;  ///< of a stream whose values fit the output

  std::uint64_t* n_blocks_done;  ///< zero before and after
  DecodePlan* plan;
  ChunkBegin* chunks;           ///< max_chunks + 1
  std::uint32_t* slots;         ///< kScale of each table of symbols
  std::uint16_t* class_bounds;  ///< kClassBounds of each context
  std::uint8_t* tail;           ///< kGroupValues values
};

/// Checks all but the chunks, and makes the tables.
void launchPrepare(const DecodeArgs& args,
                   const BankTables& bank,
                   std::size_t value_bytes,
                   const cuda::Call& call);
void launchDecode(const DecodeArgs& args, std::size_t value_bytes, const cuda::Call& call);

}  // namespace fz::block_ans
