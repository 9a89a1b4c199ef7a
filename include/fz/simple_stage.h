#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fz/backend.h"
#include "fz/cpu_tile.h"
#include "fz/cuda_part.h"
#include "fz/span.h"
#include "fz/stage_descriptor.h"
#include "fz/tile_op.h"
#include "fzm_format.h"
#include "stage/stage.h"

namespace fz {

class ByteReader;
class ByteWriter;
class CpuExecutor;

/// One run of a stage on the CPU: its inputs, its outputs with their capacities, and the threads.
struct CpuRun {
  std::span<const ByteView> inputs;
  std::span<const MutableByteView> outputs;
  const CpuExecutor& executor;
  MemoryPool* pool;
};

/// Base of ordinary stages. Answers the dull virtuals of Stage from the descriptor, the parameter
/// table and a few small functions; a stage supplies its ports, its sizes, its config and the
/// encode and decode functions per backend.
class SimpleStage : public Stage {
 public:
  void execute(cudaStream_t stream,
               MemoryPool* pool,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) final;

  std::string getName() const override;
  std::uint16_t getStageTypeId() const final;
  std::size_t getNumInputs() const final;
  std::size_t getNumOutputs() const final;
  std::vector<std::string> getOutputNames() const final;
  std::uint8_t getInputDataType(std::size_t input_index) const final;
  std::uint8_t getOutputDataType(std::size_t output_index) const final;
  std::vector<std::size_t> estimateOutputSizes(
      const std::vector<std::size_t>& input_sizes) const final;
  void estimateOutputSizesInto(const std::vector<std::size_t>& input_sizes,
                               std::vector<std::size_t>& n_bytes) const final;
  std::vector<std::size_t> maxOutputSizes(const std::vector<std::size_t>& input_sizes) const final;
  const std::vector<std::size_t>& neededOutputSizes() const final { return needed_bytes_; }
  void setOutputCapacities(const std::vector<std::size_t>& n_bytes) final;
  std::unordered_map<std::string, std::size_t> getActualOutputSizesByName() const final;
  std::size_t getActualOutputSize(int output_index) const final;

  void setInverse(bool inverse) final { inverse_ = inverse; }
  bool isInverse() const final { return inverse_; }
  bool isGraphCompatible() const override;

  std::size_t serializeHeader(std::size_t output_index,
                              std::uint8_t* buffer,
                              std::size_t max_bytes) const final;
  void deserializeHeader(const std::uint8_t* bytes, std::size_t n_bytes) final;
  std::size_t getMaxHeaderSize(std::size_t output_index) const final;
  std::uint16_t getStageVersion() const override { return stage_version_; }
  void setStageVersion(std::uint16_t version) override { stage_version_ = version; }

  virtual const StageDescriptor& descriptor() const = 0;
  /// The stage's part in fused groups on a backend, in its current direction; see docs/fusion.md.
  TileOp tileOp(Backend backend) const;

 protected:
  /// The stage's part in a fused group on the CPU, in the current direction; see docs/fusion.md.
  virtual TileOp cpuTileOp() const { return NoOp{}; }
  /// The part itself, where cpuTileOp() is not a NoOp: a CpuOrder for an OrderOp, a CpuCoder for a
  /// CoderOp, else a CpuTileOp.
  virtual CpuTilePart* cpuTilePart() { return nullptr; }

  /// A forward port; the name must outlive the stage.
  struct Port {
    std::string_view name;
    DataType type;
  };
  using Ports = SmallList<Port, FZM_MAX_PORTS>;
  using PortBytes = SmallList<std::size_t, FZM_MAX_PORTS>;

  /// Type of the forward input, which is the type of the decoded output.
  virtual DataType inputType() const = 0;
  /// Forward outputs, in order.
  virtual Ports outputPorts() const = 0;
  /// Name of the port on the inverse side.
  virtual std::string decodedPortName() const { return "output"; }

  /// Bytes to reserve per output for an input of this size.
  virtual PortBytes encodedBytes(std::size_t input_bytes) const = 0;
  /// What no input of this size can exceed; differs where a reserve may be outgrown.
  virtual PortBytes maxEncodedBytes(std::size_t input_bytes) const {
    return encodedBytes(input_bytes);
  }
  /// Exact size of the decoded output, from the config and the sizes of the encoded parts, all
  /// untrusted: must throw Error(kCorrupt) when they contradict each other, and must be bounded by
  /// what parts of these sizes can expand to.
  virtual std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const = 0;

  /// Encodes inputs[0]; calls setActualBytes for every output.
  virtual void encodeCpu(const CpuRun& run) = 0;
  /// Decodes into outputs[0]; calls setActualBytes(0, ...). Inputs are untrusted.
  virtual void decodeCpu(const CpuRun& run) = 0;

  /// Whether encodedBytes(...)[port] is exact, not only a reserve.
  virtual bool hasFixedEncodedBytes(std::size_t /*port*/) const { return false; }
  /// Whether decodedBytes(...) is exact, not only a first reserve.
  virtual bool hasFixedDecodedBytes() const { return true; }

  /// Little-endian config of the last run, for the archive.
  virtual void writeConfig(ByteWriter& out) const = 0;
  /// Reads what writeConfig wrote, or an older form. Throws Error(kCorrupt).
  virtual void readConfig(ByteReader& in) = 0;

  void setActualBytes(std::size_t output_index, std::size_t n_bytes);
  /// Tells the pipeline that output `output_index` needs n_bytes; the stage will be run again.
  void requestOutputBytes(std::size_t output_index, std::size_t n_bytes);

 private:
  friend struct StageAccess;  // for the executors

  /// Views of the inputs and outputs of a run; nothing has been reported yet.
  void takeViews(const std::vector<void*>& inputs,
                 const std::vector<void*>& outputs,
                 const std::vector<std::size_t>& sizes);
  CpuRun cpuRun(MemoryPool* pool) const;

  std::vector<std::size_t> actual_bytes_;
  std::vector<std::size_t> needed_bytes_;
  std::vector<std::size_t> capacity_bytes_;
  std::vector<ByteView> input_views_;
  std::vector<MutableByteView> output_views_;
  mutable std::unique_ptr<CudaPart> cuda_part_;
  bool inverse_ = false;
  std::uint16_t stage_version_ = 1;
};

}  // namespace fz
