#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fz/host_api.h"
#include "pipeline/bound_check.h"
#include "pipeline/dag.h"

namespace fz::cli {

class Progress;

/// Of several measurements, in seconds.
struct Spread {
  double median = 0.0;
  double p5 = 0.0;
  double p95 = 0.0;
  double mean = 0.0;
};

/// Nearest ranks, so every number was measured. Precondition: not empty.
Spread spreadOf(std::vector<double> seconds);

struct BenchStage {
  std::string name;
  double seconds = 0.0;  ///< median
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
};

/// One direction. The array has the bytes of the field, whatever the backend had to move.
struct BenchTimes {
  Spread call;            ///< data and result in the backend's memory
  Spread with_transfers;  ///< from and to host memory; on the CPU the same as `call`
  std::vector<BenchStage> stages;
  double stages_mean = 0.0;  ///< seconds in all stages together
};

struct BenchResult {
  Backend backend = Backend::CPU;
  std::size_t n_threads = 0;
  std::size_t field_bytes = 0;
  FrameInfo frame;
  BenchTimes compress;
  BenchTimes decompress;
  Spread copy;  ///< the field's bytes copied inside the backend's memory, between the runs
  CheckReport check;
  std::size_t n_runs = 0;
  std::vector<std::uint8_t> decoded;  ///< values of the last run
};

struct BenchPlan {
  std::size_t n_warmups = 2;
  std::size_t n_runs = 10;
  MemoryStrategy strategy = MemoryStrategy::PREALLOCATE;
  float pool_multiplier = 3.0F;
  /// Missing values and ranges as compress() takes them; else the stages alone.
  bool minds_missing = true;
};

/// Warms up, then times compress, decompress and a copy in turn, and checks the last result. Throws
/// what the library throws.
BenchResult runBench(DataType type,
                     ByteView field,
                     const CompressOptions& options,
                     const BenchPlan& plan,
                     Progress& progress);

}  // namespace fz::cli
