#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fz/cpu_tile.h"
#include "fz/span.h"
#include "mem/scratch.h"

namespace fz {

class CpuExecutor;
class MemoryPool;
class FieldWatch;
struct RunProgress;

/// A map, rows or planes with the bytes of a value on its two sides.
struct TileStep {
  CpuTileOp* op = nullptr;
  std::size_t field_bytes = 1;  ///< of a value on the side of the field
  std::size_t coded_bytes = 1;  ///< of a value on the side of the coder
};

/// The stages of a group, from the field on.
struct TileChain {
  std::vector<TileStep> maps;  ///< before the order; empty without one
  CpuOrder* order = nullptr;
  std::vector<TileStep> steps;
  CpuCoder* coder = nullptr;
  std::size_t field_bytes = 1;    ///< of a value of the field
  std::size_t coded_bytes = 1;    ///< of a value that leaves the last step
  std::size_t widest_bytes = 1;   ///< of any value
  std::size_t between_bytes = 1;  ///< of any value between two stages
};

/// Working memory of a chain, kept from run to run.
struct TileWork {
  Scratch buffers;
};

struct TileWalk {
  const TileChain& chain;
  const TileCut& cut;
  const CpuExecutor& executor;
  MemoryPool* pool;
  TileWork& work;
  RunProgress* progress = nullptr;  ///< told of tiles that are done; may be null
  FieldWatch* watch = nullptr;      ///< shown every tile of a field that is encoded; may be null
};

/// Takes every tile through all stages while it is in cache. `out` is the coder's whole output, or
/// that of the last step. The coder is told the size of its payload. Bytes do not depend on the
/// number of threads. Where a watch has found something, tiles may be left out.
void encodeTiles(const TileWalk& walk, ByteView field, MutableByteView out);
/// The way back; `in` is the input of the last step, and unused with a coder, which has its own.
void decodeTiles(const TileWalk& walk, ByteView in, MutableByteView field);

}  // namespace fz
