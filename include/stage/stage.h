#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fz/bound.h"
#include "fz/data_type.h"
#include "fz/missing.h"
#include "fz/params.h"
#include "fz/stream.h"

namespace fz {

class MemoryPool;
struct ExecContext;

/// One step of a pipeline. Stages of this library derive from SimpleStage, which answers most of
/// what follows; a stage outside the library may derive from either.
///
/// Call order, forward: setDims, setters, onFinalize, then per compress: execute, actual sizes,
/// postStreamSync, serializeHeader. Inverse: deserializeHeader (or the state that the forward pass
/// left), setInverse(true), estimateOutputSizes, execute.
class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  /// Does the stage's work. `inputs` and `outputs` are pointers of the pipeline's backend, `sizes`
  /// the byte sizes of the inputs. Outputs hold at least estimateOutputSizes bytes; an empty
  /// output may be null. Throws Error.
  virtual void execute(cudaStream_t stream,
                       MemoryPool* pool,
                       const std::vector<void*>& inputs,
                       const std::vector<void*>& outputs,
                       const std::vector<std::size_t>& sizes) = 0;

  virtual std::string getName() const = 0;
  virtual std::size_t getNumInputs() const = 0;
  virtual std::size_t getNumOutputs() const = 0;
  /// Bytes to reserve per output for inputs of these sizes, in the current direction.
  virtual std::vector<std::size_t> estimateOutputSizes(
      const std::vector<std::size_t>& input_sizes) const = 0;
  /// Real sizes of the last execute, keyed by port.
  virtual std::unordered_map<std::string, std::size_t> getActualOutputSizesByName() const = 0;
  /// The id in files. Ids from 0x4000 up are free for stages outside the original system.
  virtual std::uint16_t getStageTypeId() const = 0;
  virtual std::uint8_t getOutputDataType(std::size_t output_index) const = 0;

  /// Bytes to which the pipeline input must be padded; 1 for every stage of this library.
  virtual std::size_t getRequiredInputAlignment() const { return 1; }
  virtual std::vector<std::string> getOutputNames() const { return {"output"}; }
  /// Index of a port, -1 when there is none of that name.
  int getOutputIndex(const std::string& name) const;
  /// Real size of one output of the last execute; 0 when out of range.
  virtual std::size_t getActualOutputSize(int output_index) const;

  virtual void setInverse(bool /*inverse*/) {}
  virtual bool isInverse() const { return false; }
  virtual std::uint8_t getInputDataType(std::size_t /*input_index*/) const {
    return static_cast<std::uint8_t>(DataType::UNKNOWN);
  }

  /// Writes the config that a decoder needs, at most 128 bytes; returns its length.
  virtual std::size_t serializeHeader(std::size_t /*output_index*/,
                                      std::uint8_t* /*buffer*/,
                                      std::size_t /*max_bytes*/) const {
    return 0;
  }
  /// Restores the config; the bytes are untrusted. Throws Error(kCorrupt).
  virtual void deserializeHeader(const std::uint8_t* /*bytes*/, std::size_t /*n_bytes*/) {}
  virtual std::size_t getMaxHeaderSize(std::size_t /*output_index*/) const { return 0; }
  virtual void saveState() {}
  virtual void restoreState() {}

  /// Extents of the data, x fastest; x = 0 means one dimension of whatever length comes.
  virtual void setDims(const std::array<std::size_t, 3>& /*dims*/) {}
  /// Dims of the pipeline; a stage whose own dims were set keeps those. Called by the pipeline.
  virtual void setPipelineDims(const std::array<std::size_t, 3>& dims) { setDims(dims); }
  /// Dims that were set on the stage itself, for the description of the frame.
  virtual std::optional<std::array<std::size_t, 3>> ownDims() const { return std::nullopt; }

  virtual void onFinalize(std::size_t /*estimated_input_bytes*/, MemoryPool* /*pool*/) {}
  virtual std::size_t estimateDeviceFootprintBytes(std::size_t /*input_bytes*/) const { return 0; }
  virtual std::size_t estimatePinnedFootprintBytes(std::size_t /*input_bytes*/) const { return 0; }
  virtual void postStreamSync(cudaStream_t /*stream*/) {}
  virtual bool isGraphCompatible() const { return true; }
  virtual std::size_t estimateScratchBytes(const std::vector<std::size_t>& /*input_sizes*/) const {
    return 0;
  }

  // Additions of this library; all have defaults.

  /// The same as estimateOutputSizes, into storage that the pipeline keeps from run to run.
  virtual void estimateOutputSizesInto(const std::vector<std::size_t>& input_sizes,
                                       std::vector<std::size_t>& n_bytes) const {
    n_bytes = estimateOutputSizes(input_sizes);
  }
  /// A proven upper limit of the output sizes: what no input of these sizes can exceed.
  virtual std::vector<std::size_t> maxOutputSizes(
      const std::vector<std::size_t>& input_sizes) const {
    return estimateOutputSizes(input_sizes);
  }
  /// After execute: bytes that each output would have needed, when one was too small; empty when
  /// all fitted. The pipeline then grows those buffers and runs the stage again.
  virtual const std::vector<std::size_t>& neededOutputSizes() const;
  /// Bytes available at each output; called before execute.
  virtual void setOutputCapacities(const std::vector<std::size_t>& /*n_bytes*/) {}
  /// Before the first attempt of a compress() on new data.
  virtual void beginRun() {}
  /// True when the last execute asks to be run again on the same input (a tighter step, say).
  virtual bool wantsRerun() const { return false; }
  /// Throws when the last execute broke a promise about the data, such as the error bound.
  virtual void checkResult() const {}
  /// Version of the config and stream, for the stage record.
  virtual std::uint16_t getStageVersion() const { return 1; }
  virtual void setStageVersion(std::uint16_t /*version*/) {}
  /// The error bound of the last run, for stages that have one.
  virtual std::optional<BoundInfo> boundInfo() const { return std::nullopt; }
  /// Extents of the tiles that the stage looks at one by one, seeing nothing outside of them, for
  /// its settings and dims: {n, 1, 1} for n values in order, {1, 1, 1} for each value by itself,
  /// zeros where it looks further.
  virtual std::array<std::size_t, 3> localTile() const { return {0, 0, 0}; }
  /// What the last run or the config says of missing values, for stages that take them out.
  virtual std::optional<MissingInfo> missingInfo() const { return std::nullopt; }
  /// How many there are, which allocates nothing.
  virtual std::uint64_t missingCount() const { return 0; }
  /// What the last run decided by itself and why, in one line for people; empty: nothing.
  virtual std::string runNote() const { return {}; }
  /// Settings, as keys and texts, that the last run chose by looking at the values.
  virtual std::vector<std::pair<std::string, std::string>> foundSettings() const { return {}; }
  virtual const ParamTable& paramTable() const;
  /// Element types that select the instantiation, in the order of the descriptor's type keys.
  virtual std::vector<DataType> elementTypes() const { return {}; }
  /// Set by the pipeline before it runs the stage; null means one thread on the CPU.
  void setExecContext(const ExecContext* context) { exec_context_ = context; }

 protected:
  const ExecContext* execContext() const { return exec_context_; }

 private:
  const ExecContext* exec_context_ = nullptr;
};

}  // namespace fz
