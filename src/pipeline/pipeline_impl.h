#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/exec_context.h"
#include "backends/cpu/parallel_for.h"
#include "format/frame_header.h"
#include "fz/stage_dims.h"
#include "mem/mempool.h"
#include "pipeline/compressor.h"
#include "pipeline/dag.h"
#include "pipeline/frame_decoder.h"

namespace fz {

class CudaRunner;

/// A buffer of the pool that grows and keeps its contents when it does.
class PoolBuffer {
 public:
  explicit PoolBuffer(MemoryPool& pool) : pool_(&pool) {}
  PoolBuffer(const PoolBuffer&) = delete;
  PoolBuffer& operator=(const PoolBuffer&) = delete;
  ~PoolBuffer() { release(); }

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }
  std::size_t capacity() const { return capacity_bytes_; }
  /// Makes room for n_bytes; the first n_kept bytes survive. Throws Error(kOutOfMemory).
  void reserve(std::size_t n_bytes, std::size_t n_kept, const char* tag);
  void release();

 private:
  MemoryPool* pool_;
  void* memory_ = nullptr;
  std::size_t capacity_bytes_ = 0;
};

/// Whether stages on the CPU may use this memory as values of any type; a caller's may stand
/// anywhere, and what does not suit goes through a copy.
inline bool isAlignedForValues(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(std::uint64_t) == 0;
}

struct Pipeline::Impl {
  struct Entry {
    std::unique_ptr<Stage> stage;
    std::string name;
    DAGNode* node;
  };

  Impl(std::size_t hint_bytes, MemoryStrategy strategy, float multiplier);

  /// Back to a pipeline without stages, settings kept.
  void removeStages();
  Entry& entryOf(const Stage* stage, const char* role);
  void requireNotFinalized(const char* what) const;
  void requireFinalized(const char* what) const;

  // Steps of finalize(), in this order.
  void wire();
  void refreshPorts();
  void checkConnections() const;
  void checkTypes() const;
  void checkSingleSource() const;
  void checkGraphMode() const;
  void placeSinks();
  void takeMemory();
  void planGroups() const;

  /// Throws Error(kBadSize) when dims were set that do not hold exactly these bytes.
  void requireDims(std::size_t n_bytes, const char* who) const;
  /// Length of the zeros that warmup() runs.
  std::size_t warmupBytes() const;
  /// Runs the stages and assembles the frame; the frame is in frame_ afterwards.
  void runCompress(const void* input, std::size_t n_bytes, cudaStream_t stream);
  void noteCompressed(std::size_t n_bytes);
  /// Times of the whole call as far as it has come, when profiling.
  void noteTimes();
  const void* padInput(const void* input, std::size_t n_bytes, std::size_t padded_bytes);
  void assembleFrame(std::size_t n_bytes, std::size_t padded_bytes);
  StageDims shapeOf(std::size_t n_values) const;
  DataType sourceType(std::size_t n_bytes) const;
  void describeFrame(std::size_t n_bytes, std::size_t padded_bytes, FrameHeader& header) const;
  void* growFirstSegment(std::size_t n_bytes);
  bool usesFallback() const { return lossless_fallback && !graph_mode; }
  /// Replaces a frame by a lossless one that is smaller.
  void keepSmaller(const void* input, std::size_t n_bytes, cudaStream_t stream);
  bool mayLosslessBeSmaller(std::size_t n_bytes) const;
  FrameDescription describeLast(cudaStream_t stream) const;
  /// The input of a compress() whose frame has this description.
  struct LosslessInput {
    const void* data;
    std::size_t n_bytes;
    FrameDescription description;
    cudaStream_t stream;
  };
  std::unique_ptr<Pipeline> makeLossless(std::size_t value_bytes, bool coded);
  CompressedView runLossless(const LosslessInput& input, bool coded);
  CompressedView compressLossless(const LosslessInput& input);
  std::optional<CompressedView> tryLossless(const LosslessInput& input);
  /// Throws Error(kLimit) when a frame of this length does not fit the memory limit any more.
  void requireFrameFits(std::size_t n_bytes) const;
  void fillPerf(PipelinePerfResult& perf, const std::vector<StageTimingResult>& stages) const;

  /// Settles where this pipeline runs, before anything is allocated; `call` is what the user
  /// called. Throws Error(kNoDevice).
  void resolveBackend(const char* call);
  /// Throws Error(kInvalidArgument) when the CPU cannot read the memory.
  void requireHostPointer(const void* data, const char* what) const;
  void copyAndWait(void* to, const void* from, std::size_t n_bytes, cudaStream_t stream) const;
  /// The last step of a call whose result the caller wants elsewhere.
  void copyResult(void* to, const void* from, std::size_t n_bytes, cudaStream_t stream);

  /// Reads and checks a frame's header, into read_header; `frame` becomes memory of the backend,
  /// aligned.
  void openFrame(ByteView& frame, cudaStream_t stream);
  /// Decodes the opened frame; returns its original length.
  std::size_t runDecompress(ByteView frame, OutputProvider provide, cudaStream_t stream);
  void decompressTo(ByteView bytes, void** d_out, std::size_t* out_bytes, cudaStream_t stream);
  ByteView frameOrLast(const void* data, std::size_t n_bytes) const;
  std::vector<Stage*> stagesInOrder() const;

  MemoryPoolConfig pool_config;
  MemoryPool pool;
  std::vector<Entry> entries;  // before the graph: stages outlive it
  MemoryStrategy strategy;
  std::unique_ptr<CompressionDAG> dag;
  float pool_multiplier;
  std::size_t hint_bytes;
  /// Of the input, for frames whose first stage takes any bytes.
  DataType declared_type = DataType::UNKNOWN;
  /// What frames promise where no stage has a bound of its own.
  std::optional<BoundInfo> declared_bound;
  Backend requested_backend = Backend::Auto;
  Backend backend = Backend::Auto;  // Auto until resolved
  int device = -1;                  // -1: none chosen
  std::array<std::size_t, 3> dims = {0, 1, 1};
  int n_streams = 1;
  std::size_t n_threads = 0;
  std::unique_ptr<CpuExecutor> executor;
  ExecContext context;
  DecodeLimits limits;
  std::size_t memory_limit_bytes = 0;
  RunProgress* progress = nullptr;
  bool is_ordered = false;  // the graph; see wire()
  bool is_wired = false;
  bool finalized = false;
  bool warmup_on_finalize = false;
  bool pool_managed_output = true;
  bool graph_mode = false;
  bool graph_captured = false;
  bool compressed_since_reset = false;
  bool coloring_requested = true;
  bool profiling = false;
  std::size_t n_connections = 0;

  int source_buffer = -1;
  std::vector<int> sinks;                // graph buffers that are stored, in frame order
  std::vector<std::string> sink_names;   // their ports
  std::vector<std::uint16_t> frame_ids;  // graph buffer -> id in the frame
  std::size_t alignment = 1;
  std::size_t header_bytes = 0;

  PoolBuffer frame;
  std::size_t frame_bytes = 0;  // 0: no frame
  FrameHeader last_header;
  FrameHeader read_header;  // of the last decompress
  PoolBuffer padded_input;
  PoolBuffer decoded;
  std::size_t last_uncompressed_bytes = 0;
  std::unique_ptr<FrameDecoder> decoder;
  bool lossless_fallback = false;
  bool last_is_fallback = false;
  std::size_t lossless_value_bytes = 0;       // that the next two were made for
  std::unique_ptr<Pipeline> lossless_coded;   // null until needed
  std::unique_ptr<Pipeline> lossless_stored;  // likewise
  PipelinePerfResult perf;
  std::chrono::steady_clock::time_point call_start;
  std::shared_ptr<CudaRunner> cuda;  // on a device only; shared because the type is hidden here
};

}  // namespace fz
