#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fz/backend.h"
#include "fz/error.h"
#include "fz/fusion.h"
#include "fz/limits.h"
#include "fz/params.h"
#include "fz/span.h"
#include "fz/stream.h"
#include "fzm_format.h"
#include "mem/mempool.h"
#include "pipeline/dag.h"
#include "pipeline/perf.h"
#include "stage/stage.h"

namespace fz {

struct RunProgress;

/// A frame in memory that somebody else owns.
struct CompressedView {
  const void* data = nullptr;
  std::size_t n_bytes = 0;
};

/// What a configuration file leaves open, given by the caller. Applied after loading and before
/// anything is built.
struct ConfigOverrides {
  /// Element type of the source stage: loads a float32 preset for float64 data. A source stage that
  /// takes any bytes leaves them so, and frames still say that they are of this type.
  DataType input_type = DataType::UNKNOWN;
  std::array<std::size_t, 3> dims = {0, 0, 0};  ///< {0, 0, 0}: as in the file
  /// "stage.key" or "key" (the first stage that has it) and the value as text.
  std::vector<std::pair<std::string, std::string>> params = {};
  /// Keys that no stage knows are ignored instead of refused, for files of other versions.
  bool allow_unknown_keys = false;
};

/// Stages that run as one pass over memory.
struct FusedGroup {
  std::string name;
  std::vector<std::string> stages;  ///< their names, from the field on
};

/// A compression pipeline: stages, their connections, and the means to run them.
///
/// Build: addStage, connect, finalize. Then compress and decompress, as often as you like. What
/// compress() gives is a complete frame: any other Pipeline, process or machine decodes it.
/// Pointers are of the pipeline's backend (host memory for the CPU). One thread at a time per
/// object; separate objects are independent. Failures throw Error unless stated otherwise.
class Pipeline {
 public:
  /// @param input_data_size largest input of later compress() calls in bytes; 0: any size.
  explicit Pipeline(std::size_t input_data_size = 0,
                    MemoryStrategy strategy = MemoryStrategy::MINIMAL,
                    float pool_multiplier = 3.0f);
  /// Loads a TOML file; the pipeline is finalized. Throws Error, with the file and line.
  explicit Pipeline(const std::string& config_path);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline();

  // Settings, before finalize unless stated.

  void setMemoryStrategy(MemoryStrategy strategy);
  MemoryStrategy getMemoryStrategy() const;
  /// Default Auto: CUDA if this build has it and a device answers, else the CPU; the environment
  /// variable FZ_BACKEND (cpu, cuda) decides for Auto where it is set. Throws Error(kNoDevice) for
  /// a backend that cannot be used.
  void setBackend(Backend backend);
  /// The backend in use; Auto until the first call that has to know.
  Backend getBackend() const;
  /// Default Auto: chains of stages that allow it run as one pass over memory, in both directions,
  /// with the same bytes; explain() names them. The environment variable FZ_FUSION (off, auto)
  /// decides where it is set. Throws Error(kInvalidArgument) for another text there.
  void setFusion(Fusion fusion);
  Fusion getFusion() const;
  /// Device of the CUDA backend; default: the one that is current at finalize(). The caller's
  /// current device is never changed. Throws Error(kNoDevice).
  void setDevice(int device);
  /// -1 while none is chosen.
  int getDevice() const;
  /// Threads of this pipeline's CPU stages; 0: all that the process may use. At most
  /// kMaxThreads, and fewer when the system gives no more: getThreads() tells. Any time.
  void setThreads(std::size_t n_threads);
  std::size_t getThreads() const;
  /// Accepted for compatibility and kept, at least 1. Branches do not run side by side: on CUDA all
  /// work of a call goes to the stream that the call was given, on the CPU stages follow each
  /// other.
  void setNumStreams(int n_streams);
  int getNumStreams() const;
  /// x is the fastest axis; x = 0: as many as the data leave. Before or after addStage; a stage's
  /// own dims win for that stage. The frame states these dims or, where none were set, those of the
  /// first stage that has own ones. Dims other than {0, 1, 1} must hold exactly the values of each
  /// compress(), also in one dimension and for stages that do not look at them; else
  /// Error(kBadSize).
  void setDims(std::size_t x, std::size_t y = 1, std::size_t z = 1);
  void setDims(const std::array<std::size_t, 3>& dims);
  std::array<std::size_t, 3> getDims() const;
  void setWarmupOnFinalize(bool on);
  bool isWarmupOnFinalizeEnabled() const;
  /// Who owns what decompress(..., void**, ...) returns: the pipeline (default) or the caller, who
  /// frees it with std::free (CPU) or cudaFree (CUDA). Any time.
  void setPoolManagedDecompOutput(bool on);
  bool isPoolManagedDecompOutput() const;
  /// Memory that compress() may take besides its input: buffers between the stages, what the stages
  /// keep for their own work, and the frame. More throws Error(kLimit) before it is taken. CPU
  /// only; 0: no limit. Any time.
  void setMemoryLimit(std::size_t n_bytes);
  std::size_t getMemoryLimit() const;
  /// Where compress() and decompress() count what they have done; null: nowhere. It must outlive
  /// the calls. Any time.
  void setProgress(RunProgress* progress);
  void setDecodeLimits(const DecodeLimits& limits);
  DecodeLimits getDecodeLimits() const;
  /// Default false. When true, compress() keeps the smaller of two frames where it saves little
  /// (savesLittle(): less than half) or where a Mask left hardly any valid value (one in 64): the
  /// lossy one, or a lossless one of the same type, shape and bound, with a Mask as well where
  /// values are missing. It never gives more than n + kStoredFrameBytes bytes: for a frame that
  /// came out larger (data that are all outliers, or fewer than a header is worth) the lossless one
  /// is coded or as it is. The second pass takes about as long again; its memory is taken when it
  /// is needed, also with PREALLOCATE, and counts for the memory limit, which where it is too small
  /// for both leaves a lossy frame that did not grow. Frames of graph mode stay as the stages make
  /// them; compressAsync() is Error(kInvalidState) then. Any time.
  void setLosslessFallback(bool on);
  bool isLosslessFallbackEnabled() const;
  /// Whether the last compress() made use of it.
  bool isLastFrameFallback() const;
  void enableProfiling(bool on);
  bool isProfilingEnabled() const;
  void enableBoundsCheck(bool on);
  bool isBoundsCheckEnabled() const;
  void setColoringEnabled(bool on);
  /// Whether buffers share memory: true only for PREALLOCATE, after memory was planned.
  bool isColoringEnabled() const;
  std::size_t getColorRegionCount() const;
  void enableGraphMode(bool on);
  bool isGraphModeEnabled() const;

  // Building.

  /// Constructs a stage. The pipeline owns it; the pointer is valid as long as the pipeline.
  template <class StageT, class... Args>
  StageT* addStage(Args&&... args) try {
    auto stage = std::make_unique<StageT>(std::forward<Args>(args)...);
    StageT* raw = stage.get();
    addStage(std::unique_ptr<Stage>(std::move(stage)));
    return raw;
  } catch (const std::bad_alloc&) {
    detail::throwOutOfMemory();
  }
  Stage* addStage(std::unique_ptr<Stage> stage, const std::string& name = "");
  /// Makes an output of `producer` the next input of `dependent`; returns a buffer id.
  int connect(Stage* dependent, Stage* producer, const std::string& output_name = "output");
  /// Connects the "output" port of each, in order; returns the last id.
  int connect(Stage* dependent, const std::vector<Stage*>& producers);
  /// Checks the graph and plans it. Throws Error (kGraph, kTypeMismatch, kInvalidState) naming the
  /// stages at fault. With PREALLOCATE and an input size all memory of compress() is taken here,
  /// on the CUDA backend by one run over zeros (not where a stage derives from Stage directly, and
  /// without the copy that an unaligned input needs). Error(kOutOfMemory): may be called again.
  void finalize();
  bool isFinalized() const;
  /// Runs one compress and decompress of zeros, as many as the dims or else the hint say, so that
  /// the next call finds all memory in place. Does nothing without a hint.
  void warmup(cudaStream_t stream = nullptr);
  /// Stages in the order in which they were added.
  std::vector<Stage*> getStages() const;
  const std::string& getStageName(const Stage* stage) const;

  // Running.

  /// The frame stays in the pipeline's memory until the next compress(), reset() or destruction.
  void compress(const void* d_in,
                std::size_t n_bytes,
                void** d_out,
                std::size_t* out_bytes,
                cudaStream_t stream = nullptr);
  CompressedView compress(const void* d_in, std::size_t n_bytes, cudaStream_t stream = nullptr);
  /// Into the caller's buffer; throws Error(kBufferTooSmall) with both sizes.
  void compress(const void* d_in,
                std::size_t n_bytes,
                void* d_buffer,
                std::size_t capacity_bytes,
                std::size_t* actual_bytes,
                cudaStream_t stream = nullptr);

  /// For front ends, after compress(), which takes the range of its input as it is. Throws
  /// FillValueError where the bound was relative to that range and a value that looks like a fill
  /// value sets it: one at an end that occurs more than once in a thousand values and makes the
  /// range more than ten times wider than that of the others (for others that are all one x: than
  /// |x|). Values equal to one of `fill` are left out, since a Mask has taken them out. `values` is
  /// that input in host memory, on either backend. Looks at a few values where those show that no
  /// fill value can be at work, as in most fields, and otherwise at all of them.
  void requireRangeWithoutFill(ByteView values,
                               std::span<const double> fill = {},
                               cudaStream_t stream = nullptr) const;

  /// CUDA only: enqueues a compression into the caller's buffer (16-byte aligned, large enough for
  /// getMaxCompressedSize() or what the error says) and returns without waiting. The frame's length
  /// goes to d_frame_bytes, in device memory, unless that is null. One call at a time per pipeline;
  /// finishAsync() waits and throws what went wrong. Until then, the frame must not be trusted.
  void compressAsync(const void* d_in,
                     std::size_t n_bytes,
                     void* d_frame,
                     std::size_t capacity_bytes,
                     std::uint64_t* d_frame_bytes,
                     cudaStream_t stream);
  /// CUDA only: enqueues the decoding of a frame that this pipeline's settings could have written
  /// for an input of original_bytes, without waiting and without reading it on the host. Works from
  /// inside a stream capture. The bytes written go to d_out_bytes (device memory, may be null). The
  /// memory at d_out is written to even when the frame turns out to be damaged.
  void decompressAsync(const void* d_frame,
                       std::size_t capacity_bytes,
                       void* d_out,
                       std::size_t original_bytes,
                       std::uint64_t* d_out_bytes,
                       cudaStream_t stream);
  /// Waits for the last compressAsync() or decompressAsync() and returns the length of its result.
  /// Throws as compress() and decompress() do, and Error(kBufferTooSmall) when a buffer inside was
  /// too small; it is larger from then on, so the call can be made again.
  std::size_t finishAsync(cudaStream_t stream);

  /// Decodes any frame, also of other pipelines. A null d_in means this pipeline's last frame.
  void decompress(const void* d_in,
                  std::size_t n_bytes,
                  void** d_out,
                  std::size_t* out_bytes,
                  cudaStream_t stream = nullptr);
  /// Straight into the caller's buffer, which must hold the original length. Header and checksums
  /// are verified before the first byte is written, on either backend; a frame that passes them and
  /// still does not decode (made to deceive) may leave part of its data there.
  void decompress(const void* d_in,
                  std::size_t n_bytes,
                  void* d_buffer,
                  std::size_t capacity_bytes,
                  std::size_t* actual_bytes,
                  cudaStream_t stream = nullptr);

  /// Decodes any frame without a graph of its own: works before finalize. The result is owned as
  /// for decompress(..., void**, ...).
  void decompressFrame(ByteView frame, void** d_out, std::size_t* out_bytes);

  /// The same into host memory of the caller, on either backend. `provide` is asked for as many
  /// bytes as the frame has been found to need, perhaps again for more; what an earlier call gave
  /// is not used any more then. Returns the original length.
  std::size_t decompressFrame(ByteView frame,
                              const std::function<void*(std::size_t n_bytes)>& provide);

  /// Memory that compress() of an input of this length is expected to take besides the input. Data
  /// with more outliers than the settings foresee take more, most data less.
  std::size_t estimateMemory(std::size_t n_bytes) const;
  /// Bytes that no input of this length can exceed when compressed; setLosslessFallback() makes it
  /// smaller.
  std::size_t getMaxCompressedSize(std::size_t n_bytes) const;
  /// Bytes of the last compress() input; 0 before the first.
  std::size_t getLastUncompressedSize() const;
  /// Gives up the compressed frame and the buffers of the last run.
  void reset(cudaStream_t stream = nullptr);

  void captureGraph(cudaStream_t stream = nullptr);
  bool isGraphCaptured() const;

  // Insight.

  const PipelinePerfResult& getLastPerfResult() const;
  CompressionDAG* getDAG();
  std::size_t getPoolThreshold() const;
  bool isMemPoolFallbackMode() const;
  std::size_t getPeakMemoryUsage() const;
  /// Bytes of the graph's buffers and of the frame; 0 after reset() with MINIMAL.
  std::size_t getCurrentMemoryUsage() const;
  MemoryPool& getMemoryPool();
  /// What finalize() made of the stages: order, levels, types, memory, how it runs; after a
  /// decompression also how that ran.
  std::string explain() const;
  /// The groups that compress() runs; empty before finalize().
  std::vector<FusedGroup> getFusedGroups() const;
  /// explain(), through the log.
  void printPipeline() const;

  // Files and configurations.

  struct FZMFileHeader {
    FZMHeaderCore core;
    std::vector<FZMStageInfo> stages;
    std::vector<FZMBufferEntry> buffers;
  };

  /// Writes the last frame: complete under its final name, or not at all.
  void writeToFile(const std::string& path, cudaStream_t stream = nullptr);
  static FZMFileHeader readHeader(const std::string& path);
  /// Header of the last frame.
  FZMFileHeader buildHeader() const;
  /// Needs no pipeline. The caller owns the result and frees it with std::free (CPU).
  static void decompressFromFile(const std::string& path,
                                 void** d_out,
                                 std::size_t* out_bytes,
                                 cudaStream_t stream = nullptr,
                                 PipelinePerfResult* perf = nullptr,
                                 std::size_t pool_override_bytes = 0);
  /// Honours setPoolManagedDecompOutput; works before finalize too.
  void decompressFromFileInstance(const std::string& path,
                                  void** d_out,
                                  std::size_t* out_bytes,
                                  cudaStream_t stream = nullptr,
                                  PipelinePerfResult* perf = nullptr);

  /// Adds the stages of a TOML file, connects and finalizes. A failure leaves the pipeline empty,
  /// with the settings it had.
  void loadConfig(const std::string& path);
  void loadConfig(const std::string& path, const ConfigOverrides& overrides);
  /// From TOML text; `source_name` stands in messages. With `finalize_after` false the caller can
  /// still change settings (error bound, dims) and finalizes himself.
  void loadConfigText(const std::string& text,
                      const std::string& source_name,
                      const ConfigOverrides& overrides = {},
                      bool finalize_after = true);
  void saveConfig(const std::string& path) const;
  std::string saveConfigText() const;

 private:
  friend class CudaRunner;
  friend struct PipelineAccess;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fz
