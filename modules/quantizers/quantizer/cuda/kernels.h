#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"
#include "quantizers/quantizer/codec.h"
#include "quantizers/quantizer/codec_rel.h"
#include "quantizers/quantizer/cuda/policy.h"

namespace fz::cuda {
struct Call;
}

/// What the kernels get. Launchers only enqueue; they throw Error(kCuda) when a launch is refused.
namespace fz::quantizer::device {

/// record->value[...]. Bounds, ranges and values are the bits of a double; the F32 slots hold the
/// bits that stand in the config.
enum Slot : std::uint32_t {
  kSlotValues,    ///< n
  kSlotOutliers,  ///< k
  kSlotBound,     ///< bound in use
  kSlotBoundF32,
  kSlotRange,
  kSlotRangeF32,
  kSlotAbsBound,
  kSlotRung,            ///< the rung whose codes were kept
  kSlotViolations,      ///< values that it could not keep within the bound
  kSlotFirstViolation,  ///< position of the first one
  kSlotFirstValue,
  kSlotUnordered,                   ///< decoding: 1 when the indices do not ascend
  kSlotNonfinite = kSlotUnordered,  ///< encoding: 1 when NaN or infinities had no code
  // Decoding in a group: addresses of the field, and of its holes.
  kSlotField = kSlotViolations,
  kSlotHoles = kSlotFirstViolation,
};

/// record->error_value: what went wrong. Outlier indices come as (entry << 32 | index).
enum class Failure : std::uint64_t {
  kOutlierIndex = 0,
  kRaggedInput,
  kTooManyValues,
  kStreamSizes,
  kBound,
};

/// Smallest and largest finite value of a part of the data, as ordered integers.
struct RangePart {
  std::int64_t low;
  std::int64_t high;
};

/// Room for an EncodeState of either type, and for a group's holes behind it.
inline constexpr std::size_t kStateBytes = 1024;
inline constexpr std::size_t kHolesAt = kStateBytes - 64;

struct EncodeJob {
  std::uint32_t value_bytes;
  std::uint32_t code_bytes;
  CudaInput input;
  CudaOutput codes;
  CudaOutput outlier_values;   ///< with lists only
  CudaOutput outlier_indices;  ///< with lists only
  StageRecord* record;
  void* state;
  RangePart* parts;
  // With lists only, for as many tiles as the input can have:
  std::uint16_t* tile_counts;   ///< outliers of each tile
  bool counts_are_marks;        ///< tile_counts only says whether there are any
  std::uint32_t* tile_masks;    ///< a bit per value; only for tiles with outliers
  std::uint64_t* batch_states;  ///< of the look-back over batches of tiles
  std::uint64_t n_batches;
  std::uint32_t batch_tiles;
};

/// Where the bound of ABS and NOA comes from.
struct BoundJob {
  double error_bound;
  double value_base;  ///< NOA: the range; 0: the parts
  double threshold;
  std::uint32_t radius;
  CodeForm form;
  bool is_rel;
  bool is_noa;
  bool is_ladder;
};

/// Writes a part per block.
void launchRange(const EncodeJob& job, unsigned n_blocks, const cuda::Call& call);
/// Resolves the bound, clears the state of the kernels below, checks the size of the input.
void launchPrepare(const EncodeJob& job,
                   const BoundJob& bound,
                   unsigned n_parts,
                   const cuda::Call& call);
/// Codes, and which values have none.
void launchEncodeLists(const EncodeJob& job, bool zigzag, const cuda::Call& call);
void launchEncodeRel(const EncodeJob& job, const RelSettings& settings, const cuda::Call& call);
/// The outlier lists, in index order.
void launchGather(const EncodeJob& job, const cuda::Call& call);
/// In place and linear: codes only, and what could not be kept. A rung above 0 does nothing unless
/// a smaller step can help.
struct FlatJob {
  bool inplace;
  bool wrap;  ///< linear, policy Wrap
  std::uint32_t radius;
  unsigned rung;
};
void launchEncodeFlat(const EncodeJob& job, const FlatJob& flat, const cuda::Call& call);
/// After the rungs: which one holds, and what it could not keep.
void launchSettle(const EncodeJob& job, bool is_ladder, const cuda::Call& call);

enum class DecodeForm : std::uint8_t { kTwosComplement, kZigzag, kInplace, kRel, kRelV1 };

struct DecodeJob {
  std::uint32_t value_bytes;
  std::uint32_t code_bytes;
  CudaInput codes;
  CudaInput outlier_values;
  CudaInput outlier_indices;
  CudaOutput output;
  StageRecord* record;
  DecodeForm form;
  bool has_lists;
  bool exact_lists;  ///< else they may be longer than their entries
  bool is_group;
  std::uint32_t radius;
  double log_step;
  float log_step_v1;
};

void launchDecode(const DecodeJob& job, const cuda::Call& call);
void launchScatter(const DecodeJob& job, const cuda::Call& call);

}  // namespace fz::quantizer::device
