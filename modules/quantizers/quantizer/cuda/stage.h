#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/cuda/zeroed_scratch.h"
#include "mem/scratch.h"
#include "quantizers/quantizer/cuda/kernels.h"
#include "quantizers/quantizer/state.h"

namespace fz::quantizer {

/// The stage on a device: alone (stage.cc), and in fused groups by one of two ops, depending on
/// where values without a code go: into the codes (values.cc) or into lists (outliers.cc).
class CudaSide final : public CudaPart {
 public:
  explicit CudaSide(QuantizerBase& stage) : stage_(stage), state_(*stage.state_) {}

  void encode(const cuda::Call& call) override;
  void decode(const cuda::Call& call) override;
  void finishEncode(const StageRecord& record) override;
  void throwError(const StageRecord& record) const override;
  std::vector<DeviceField> fields() const override;
  bool readsUnaligned(std::size_t input) const override { return stage_.isInverse() && input > 0; }
  std::optional<std::uint32_t> quietValues() const override;
  TileOp tileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override;
  unsigned groupPasses() const override;
  void beginGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args) override;
  void endGroup(const cuda::Call& call, const GroupRun& group) override;
  bool endsRuns() const override { return stage_.hasOutlierPorts() && stage_.isInverse(); }

 private:
  enum class EncodeWay { kAlone, kGroupBegins, kGroupEnds };

  /// Whether encoding looks at all of the field before.
  bool scansInput() const;
  bool isFloat() const { return stage_.value_type_ == DataType::FLOAT32; }
  void checkEncode(const cuda::Call& call);
  /// What an encode works with; takes working memory.
  device::EncodeJob encodeJob(const cuda::Call& call, EncodeWay way);
  /// Enqueues what precedes the codes: the bound, where only the device can tell it, and start
  /// values.
  void prepareEncode(const device::EncodeJob& job, const cuda::Call& call) const;
  device::DecodeJob decodeJob(const cuda::Call& call) const;

  template <class T>
  void beginFlatEncode(const cuda::Call& call, const GroupRun& group, GroupArgs& args);
  template <class T>
  void beginFlatDecode(const cuda::Call& call, GroupArgs& args) const;
  void beginFlatGroup(const cuda::Call& call, const GroupRun& group, GroupArgs& args);
  TileOp listTileOp() const;
  std::string listOpType() const;
  void beginListGroup(const cuda::Call& call, GroupArgs& args);
  void endListGroup(const cuda::Call& call);

  QuantizerBase& stage_;
  QuantizerBase::State& state_;
  Scratch work_;
  Scratch group_state_;
  bool has_group_state_ = false;
  ZeroedScratch group_marks_;
};

}  // namespace fz::quantizer
