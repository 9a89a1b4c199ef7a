#pragma once

#include <functional>
#include <memory>

#include "api/backend_choice.h"
#include "api/kept_pipelines.h"
#include "fz/fusion.h"
#include "fz/host_api.h"
#include "pipeline/compressor.h"

namespace fz {

class FieldWatch;
struct FrameHeader;
struct MaskSettings;

/// One compression of an array in host memory: looked at and planned when it is made, then run.
/// The values must outlive it.
class HostCompression {
 public:
  /// Throws as compress() does for wrong options. `own`: of a thread that does more of the kind.
  HostCompression(DataType type,
                  ByteView values,
                  const CompressOptions& options,
                  Fusion fusion = Fusion::Auto,
                  OwnPipelines* own = nullptr);
  ~HostCompression();

  /// As the function of that name, for these values.
  std::size_t estimateMemory() const;
  /// As compress().
  Frame run();

  /// What runs; its insight (profile, memory) is there after run() when it is kept. What the caller
  /// sets there is for this compression alone.
  Pipeline& pipeline() {
    is_handed_out_ = true;
    return current();
  }
  const Pipeline& pipeline() const { return *kept_->get(); }
  /// run() may be called again, and leaves the pipeline as it is.
  void keepPipeline() { keeps_pipeline_ = true; }
  /// Where it runs, and why there.
  const std::string& whyThere() const { return why_there_; }
  /// Whether a Mask takes out missing values. Those that no sample has are found by run().
  bool isMasked() const { return is_masked_; }

 private:
  void chooseBackend();
  Pipeline& current() const { return *kept_->get(); }
  void build(bool masked);
  std::unique_ptr<KeptPipeline> makePipeline(const MaskSettings* mask) const;
  Frame runOnce();
  Frame runOnDevice();
  Frame shaped(const Frame& frame) const;

  DataType type_;
  ByteView values_;
  CompressOptions options_;
  Fusion fusion_;
  OwnPipelines* own_;
  std::string why_there_;
  std::unique_ptr<KeptPipeline> kept_;
  bool is_handed_out_ = false;
  bool can_be_masked_ = false;
  bool is_masked_ = false;
  bool keeps_pipeline_ = false;
  std::unique_ptr<FieldWatch> watch_;  ///< where a fill value is declared that the sample has not
};

/// As configure(), but the pipeline is left open for more stages.
void loadUnfinalized(Pipeline& pipeline, DataType type, const CompressOptions& options);

/// Throws FillValueError, as Pipeline::requireRangeWithoutFill() does, unless the options say that
/// no value is to be suspected.
void requireSoundRange(Pipeline& pipeline, ByteView values, const CompressOptions& options);

/// What a header says of its frame, as inspect() gives it.
FrameInfo describeFrame(const FrameHeader& header);

/// One decompression: the header is read when it is made, and not again on the CPU. The frame must
/// outlive it.
class HostDecompression {
 public:
  /// Throws as inspect() does.
  explicit HostDecompression(ByteView frame);
  ~HostDecompression();

  const FrameInfo& info() const { return info_; }
  /// Names of the stages, for chainCostOf().
  std::string stageNames() const;
  /// Where it runs with these options, and why there.
  BackendChoice backendFor(const DecompressOptions& options) const;
  /// As decompressInto(), once.
  std::size_t into(const std::function<void*(std::size_t n_bytes)>& provide,
                   const DecompressOptions& options);
  /// The same on a pipeline of the caller, which keeps its memory for the next frame.
  std::size_t into(Pipeline& pipeline,
                   const std::function<void*(std::size_t n_bytes)>& provide,
                   const DecompressOptions& options);
  /// As decompress(), once.
  Array array(const DecompressOptions& options);
  /// The same on a pipeline of the caller.
  Array on(Pipeline& pipeline, const DecompressOptions& options);

 private:
  ByteView frame_;
  std::unique_ptr<FrameHeader> header_;
  FrameInfo info_;
};

}  // namespace fz
