#pragma once

#include <cstddef>
#include <cstdint>

#include "fz/device_types.h"

namespace fz::cuda {
struct Call;
}

namespace fz::rle {

/// Slot of the config's number of values in StageRecord::value.
constexpr unsigned kValuesSlot = 0;

/// What record->error_value says about a damaged stream; error_index is then the runs it names, or
/// the values they add up to.
constexpr std::uint64_t kCountIsWrong = 1;
constexpr std::uint64_t kLengthsAreWrong = 2;

/// Values that an encoder's input may have: counts have 32 bits.
constexpr std::uint64_t kMaxValues = 0xFFFFFFFFu;

struct EncodeArgs {
  CudaInput in;
  CudaOutput out;
  StageRecord* record;
  std::uint64_t* states;     ///< of the look-back, one word per tile, and one more; zero
  std::uint32_t* first_run;  ///< runs before each tile, and in all: n_tiles + 1
  std::uint32_t* last_head;  ///< in tiles where a run begins: where the last one does
  std::uint8_t* marks;       ///< one bit per value: a run begins here; set in such tiles only
  std::uint32_t n_tiles;     ///< of the launch: the input has no more
};

struct DecodeArgs {
  CudaInput in;
  CudaOutput out;
  StageRecord* record;
  std::uint64_t* states;       ///< of the look-back, one word per tile of runs, zero
  std::uint64_t* confirmed;    ///< zero; set when the lengths add up
  std::uint32_t* batch_start;  ///< position of every kBatchRuns-th run
  std::uint32_t n_run_tiles;   ///< of the launch: the stream has no more
  std::uint32_t n_fill_tiles;
};

/// Enqueue only. Values are value_bytes wide: 1, 2 or 4.
void launchEncode(const EncodeArgs& args, std::size_t value_bytes, const cuda::Call& call);
void launchDecode(const DecodeArgs& args, std::size_t value_bytes, const cuda::Call& call);

}  // namespace fz::rle
