#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/parallel_for.h"
#include "format/frame_header.h"
#include "pipeline/compressor.h"
#include "pipeline/device/device_runner.h"
#include "pipeline/frame/decoder.h"
#include "pipeline/pipeline_core.h"

namespace fz {

/// Whether stages on the CPU may use this memory as values of any type; a caller's may stand
/// anywhere, and what does not suit goes through a copy.
inline bool isAlignedForValues(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(std::uint64_t) == 0;
}

struct Pipeline::Impl : PipelineCore {
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
  void takeMemory();

  /// Throws Error(kBadSize) when dims were set that do not hold exactly these bytes.
  void requireDims(std::size_t n_bytes, const char* who) const;
  /// Length of the zeros that warmup() runs.
  std::size_t warmupBytes() const;
  /// Runs the stages and assembles the frame; the frame is in frame_ afterwards.
  void runCompress(const void* input, std::size_t n_bytes, cudaStream_t stream);
  void recordCompressed(std::size_t n_bytes);
  /// Times of the whole call as far as it has come, when profiling.
  void recordTimes();
  const void* padInput(const void* input, std::size_t n_bytes, std::size_t padded_bytes);
  void* growFirstSegment(std::size_t n_bytes);
  /// Estimates for an input of this length, by buffer.
  std::vector<std::size_t> sizesFor(std::size_t n_bytes, bool proven) const;
  void runOnHost(const void* input, std::size_t n_bytes, cudaStream_t stream);
  bool usesFallback() const { return lossless_fallback && !graph_mode; }
  /// Replaces a frame by a lossless one that is smaller.
  void keepSmaller(const void* input, std::size_t n_bytes, cudaStream_t stream);
  bool mayLosslessBeSmaller(std::size_t n_bytes) const;
  bool isSparse(std::size_t n_bytes) const;
  bool hasBound() const;
  /// The input of a compress() whose frame has this description.
  struct LosslessInput {
    const void* data;
    std::size_t n_bytes;
    FrameDescription description;
    const Stage* mask;  ///< that took out missing values; null: there are none
    cudaStream_t stream;
  };
  /// How every bit is kept: as it is; bit planes without zeros; the same behind a Mask; and for
  /// fields of hardly any valid value, where chunks of zeros take next to nothing.
  enum class LosslessForm : std::uint8_t { kStored, kCoded, kMasked, kSparse };
  static constexpr std::size_t kLosslessForms = 4;
  FrameDescription describeLast(cudaStream_t stream) const;
  const Stage* maskOfLast() const;
  std::unique_ptr<Pipeline> makeLossless(LosslessForm form, const LosslessInput& input);
  CompressedView runLossless(LosslessForm form, const LosslessInput& input);
  /// Of at most so many bytes; nothing where it takes more, or memory that the limit denies.
  std::optional<CompressedView> tryLossless(LosslessForm form,
                                            const LosslessInput& input,
                                            std::size_t most_bytes);
  void dropLossless(LosslessForm form, cudaStream_t stream);
  CompressedView compressLossless(const LosslessInput& input);
  std::optional<CompressedView> findSmaller(const LosslessInput& input);
  void fillPerf(PipelinePerfResult& perf, const std::vector<StageTimingResult>& stages) const;

  /// Settles where this pipeline runs, before anything is allocated; `call` is what the user
  /// called. Throws Error(kNoDevice).
  void resolveBackend(const char* call);
  /// Throws Error(kInvalidArgument) when the CPU cannot read the memory.
  void requireHostPointer(const void* data, const char* what) const;
  void copyAndWait(void* to,
                   const void* from,
                   std::size_t n_bytes,
                   cudaStream_t stream,
                   bool ends_call = false) const;
  /// The last step of a call whose result the caller wants elsewhere.
  void copyResult(void* to, const void* from, std::size_t n_bytes, cudaStream_t stream);

  /// Reads and checks a frame's header, into read_header; `frame` becomes memory of the backend,
  /// aligned.
  void openFrame(ByteView& frame, cudaStream_t stream, const FrameHeader* known = nullptr);
  /// Decodes the opened frame; returns its original length.
  std::size_t runDecompress(ByteView frame, OutputProvider provide, cudaStream_t stream);
  void decompressTo(ByteView bytes, void** d_out, std::size_t* out_bytes, cudaStream_t stream);
  ByteView frameOrLast(const void* data, std::size_t n_bytes) const;
  std::vector<Stage*> stagesInOrder() const;

  std::unique_ptr<CompressionDAG> dag;  // a view of the engine
  float pool_multiplier;
  Backend requested_backend = Backend::Auto;
  Backend backend = Backend::Auto;  // Auto until resolved
  std::size_t n_threads = 0;
  std::unique_ptr<CpuExecutor> executor;
  bool is_ordered = false;  // the graph; see wire()
  bool is_wired = false;
  bool finalized = false;
  bool warmup_on_finalize = false;
  bool pool_managed_output = true;
  bool graph_mode = false;
  bool graph_captured = false;
  bool compressed_since_reset = false;
  std::size_t n_connections = 0;

  std::size_t frame_bytes = 0;  // 0: no frame
  FrameHeader last_header;
  FrameHeader read_header;  // of the last decompress
  PoolBuffer decoded;
  std::size_t last_uncompressed_bytes = 0;
  std::unique_ptr<FrameDecoder> decoder;
  bool lossless_fallback = false;
  bool last_is_fallback = false;
  DataType lossless_type = DataType::UNKNOWN;                      // that the next were made for
  std::array<std::unique_ptr<Pipeline>, kLosslessForms> lossless;  // null until needed
  PipelinePerfResult perf;
  std::chrono::steady_clock::time_point call_start;
  std::unique_ptr<DeviceRunner> on_device;  // null on the CPU
};

}  // namespace fz
