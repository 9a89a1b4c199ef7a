#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fz/backend.h"
#include "fz/cpu_tile.h"
#include "fz/cuda_run.h"
#include "fz/small_list.h"
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

  // For the pipeline's CUDA executor.

  /// Enqueues the stage's work in the current direction; see CudaRun.
  void enqueueCuda(const CudaRun& run);
  /// After the records were read back: takes the sizes over, asks for larger outputs, throws what
  /// the device found.
  void finishCuda(const StageRecord& record, std::span<const std::size_t> capacities);
  /// Whether the stage has kernels for the current direction; if not it runs on the host, with
  /// copies and waits, and cannot be part of a graph.
  virtual bool hasCuda() const { return false; }
  /// Whether the size of output `port` follows from the sizes of the inputs, in the current
  /// direction.
  bool isOutputSizeFixed(std::size_t port) const;
  /// The parts of the config that encoding finds out on the device.
  virtual std::vector<DeviceField> deviceFields() const { return {}; }

  // For fused groups; see docs/fusion.md.

  /// The stage's part in a group, in the current direction.
  TileOp tileOp(Backend backend) const {
    return backend == Backend::CUDA ? cudaTileOp() : cpuTileOp();
  }
  /// The part itself, when tileOp(Backend::CPU) names a role; its class follows from the role.
  virtual CpuTilePart* cpuTilePart() { return nullptr; }
  /// What execute() does before and after the stage's work, for a group that does the work.
  void beginInGroup(MemoryPool* pool,
                    const std::vector<void*>& inputs,
                    const std::vector<void*>& outputs,
                    const std::vector<std::size_t>& sizes,
                    const TileCut& cut);
  void endInGroup(MemoryPool* pool);
  /// Full name of the device type of the op, and the header that defines it, as device code spells
  /// them. Called when tileOp(Backend::CUDA) names a role.
  virtual std::string tileOpType() const { return {}; }
  virtual std::string tileOpHeader() const { return {}; }
  /// How often the group's kernel may have to run.
  virtual unsigned groupPasses() const { return 1; }
  /// Adds the op's arguments; enqueues what must be done before the group's kernel. Inputs and
  /// outputs between two stages of the group have sizes but no memory.
  virtual void beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args);
  /// Enqueues what must be done after it.
  virtual void endGroupCuda(const CudaRun& /*run*/, const GroupRun& /*group*/) {}

 protected:
  virtual TileOp cpuTileOp() const { return {}; }
  virtual TileOp cudaTileOp() const { return {}; }

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

  /// Enqueues the encoding of inputs[0]. The base runs encodeCpu, between copies and waits.
  virtual void encodeCuda(const CudaRun& run);
  /// Enqueues the decoding into outputs[0]. Config fields that deviceFields() names stand in
  /// record->value. Inputs are untrusted: damage is noted in the record, never acted on.
  virtual void decodeCuda(const CudaRun& run);
  /// Host side of a finished run: takes over what writeConfig, checkResult and the getters need.
  /// Called before record.error is looked at.
  virtual void finishEncodeCuda(const StageRecord& /*record*/) {}
  virtual void finishDecodeCuda(const StageRecord& /*record*/) {}
  /// Called when record.error is set; throws. A stage overrides it to say what was wrong.
  virtual void throwDeviceError(const StageRecord& record) const;
  /// What a stage without kernels does: copies, the CPU's work, copies. Waits for the stream.
  void runOnHost(const CudaRun& run);
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
  bool inverse_ = false;
  std::uint16_t stage_version_ = 1;
};

}  // namespace fz
