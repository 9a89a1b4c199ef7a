#pragma once

#include <cstddef>
#include <cstdint>

#include "fused/lorenzo_quant/cuda/args.h"

namespace fz::cuda {
struct Call;
}

/// What host code enqueues; nothing here waits. `limit` is the layout of the largest input that can
/// come, `entry_limit` the largest number of list entries.
namespace fz::lorenzo_quant::device {

// The stage alone.

template <class T, class TCode>
void launchEncode(const EncodeRun& run, const Layout& limit, const cuda::Call& call);
template <class T, class TCode>
void launchDecode(const DecodeRun& run,
                  const Layout& limit,
                  std::uint64_t entry_limit,
                  const cuda::Call& call);

// The steps of an encode around the pass over the field, alone and in a group.

/// Scans the range where the bound needs it, and makes the plan.
template <class T>
void launchEncodeSetup(const EncodeRun& run, std::size_t code_bytes, const cuda::Call& call);
/// Makes the lists from flags and counts. With n_clear, also records what the setup does of a bound
/// that the host knows, and leaves flags and counts at 0: a run that is the same but for its values
/// needs no setup then.
template <class T>
void launchEntries(const EncodeRun& run, const Layout& limit, const cuda::Call& call);

// The steps of a decode around the pass over the codes, alone.

/// Checks the config and the sizes of the parts, makes the plan, clears the marks.
template <class T>
void launchDecodeSetup(const DecodeRun& run, std::size_t code_bytes, const cuda::Call& call);
/// Marks the values with range entries and puts the entries where the values will be.
template <class T>
void launchRangeEntries(const DecodeRun& run, std::uint64_t entry_limit, const cuda::Call& call);
/// Writes the exact values over the decoded ones.
template <class T>
void launchExactEntries(const DecodeRun& run, std::uint64_t entry_limit, const cuda::Call& call);

// The same in a fused group, one launch before and one behind the group's kernel.

/// Makes the plan, but for is_wide, which is 0 before as the marks are; marks the values with range
/// entries and puts the entries where the values will be, if call.mayWrite() lets it.
template <class T>
void launchGroupBegin(const DecodeRun& run,
                      std::size_t code_bytes,
                      std::uint64_t entry_limit,
                      const cuda::Call& call);
/// Writes the exact values over the decoded ones, and leaves the marks and the plan's flags at 0,
/// *n_blocks_done too; ends the run where call.takeReadback() has a place for that.
template <class T>
void launchGroupEnd(const DecodeRun& run,
                    std::uint64_t entry_limit,
                    std::uint64_t* n_blocks_done,
                    const cuda::Call& call);

}  // namespace fz::lorenzo_quant::device
