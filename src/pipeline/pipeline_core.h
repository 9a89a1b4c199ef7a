#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/exec_context.h"
#include "fz/limits.h"
#include "mem/mempool.h"
#include "pipeline/frame/writer.h"
#include "pipeline/pool_buffer.h"
#include "pipeline/run/engine.h"
#include "stage/stage.h"

namespace fz {

class FieldWatch;
struct RunProgress;

/// What a pipeline's calls work on, on either backend. Calls go down from here: nothing below knows
/// the pipeline itself.
struct PipelineCore {
  struct Entry {
    std::unique_ptr<Stage> stage;
    std::string name;
    DAGNode* node;
  };

  PipelineCore(std::size_t hint, MemoryStrategy memory_strategy, float multiplier)
      : pool_config(hint, multiplier),
        pool(pool_config),
        hint_bytes(hint),
        frame(pool),
        padded_input(pool) {
    makeEngine(memory_strategy);
  }

  void makeEngine(MemoryStrategy strategy) {
    writer.reset();
    engine = std::make_unique<Engine>(&pool, strategy);
    writer = std::make_unique<FrameWriter>(*engine);
  }

  MemoryPoolConfig pool_config;
  MemoryPool pool;
  std::vector<Entry> entries;  // before the engine: stages outlive it
  std::unique_ptr<Engine> engine;
  std::unique_ptr<FrameWriter> writer;
  FrameSettings frame_settings;
  std::size_t hint_bytes;
  int device = -1;  // -1: none chosen
  ExecContext context;
  DecodeLimits limits;
  std::size_t memory_limit_bytes = 0;
  RunProgress* progress = nullptr;
  FieldWatch* watch = nullptr;
  bool profiling = false;
  std::size_t alignment = 1;  // of the input's length

  PoolBuffer frame;
  PoolBuffer padded_input;
};

}  // namespace fz
