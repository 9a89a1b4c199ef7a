#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fz/backend.h"

namespace fz {

/// What decides how long a chain takes on the CPU.
enum class ChainCost {
  kPacking,  ///< widths of blocks of bits: as quick as memory
  kShuffle,  ///< passes over bits and bytes
  kEntropy,  ///< codes of their own for every symbol
};
/// From the text of a configuration, or the names of stages: whoever has an entropy coder waits for
/// it.
ChainCost chainCostOf(std::string_view text);

/// A call with an array of the host.
struct HostCall {
  std::size_t n_bytes;
  std::size_t n_threads;  ///< as asked for; 0: all
  ChainCost chain;
};

struct BackendChoice {
  Backend backend;
  std::string reason;
};

/// What Backend::Auto takes for an array of the host. Either is right, with the same bytes; this is
/// the faster one, as measured (docs/gpu.md). The environment's wish goes first, and without a
/// device there is no choice. A process that has not used CUDA yet begins with it when its calls
/// have taken as long as that takes.
BackendChoice chooseToCompress(const HostCall& call);
BackendChoice chooseToDecompress(const HostCall& call);
/// The same for a batch of fields, n_bytes together.
Backend chooseForBatch(const HostCall& call, std::size_t n_fields, bool compresses);

}  // namespace fz
