#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "stage/stage.h"

/// Stages outside the library, as a user would write them: straight from Stage, not registered.
namespace fz::test {

/// Copies its input.
class PassThroughStage : public Stage {
 public:
  void execute(cudaStream_t /*stream*/,
               MemoryPool* /*pool*/,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) override {
    if (sizes[0] > 0) {
      std::memcpy(outputs[0], inputs[0], sizes[0]);
    }
    n_bytes_ = sizes[0];
  }
  std::string getName() const override { return "PassThrough"; }
  std::size_t getNumInputs() const override { return 1; }
  std::size_t getNumOutputs() const override { return 1; }
  std::vector<std::size_t> estimateOutputSizes(
      const std::vector<std::size_t>& input_sizes) const override {
    return {input_sizes[0]};
  }
  std::unordered_map<std::string, std::size_t> getActualOutputSizesByName() const override {
    return {{"output", n_bytes_}};
  }
  std::uint16_t getStageTypeId() const override { return 0x4001; }
  std::uint8_t getOutputDataType(std::size_t /*index*/) const override {
    return static_cast<std::uint8_t>(DataType::UNKNOWN);
  }
  void setInverse(bool inverse) override { inverse_ = inverse; }
  bool isInverse() const override { return inverse_; }

 protected:
  std::size_t n_bytes_ = 0;
  bool inverse_ = false;
};

/// Two copies of its input; the inverse takes the first.
class SplitStage : public PassThroughStage {
 public:
  void execute(cudaStream_t stream,
               MemoryPool* pool,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) override {
    PassThroughStage::execute(stream, pool, inputs, outputs, sizes);
    if (!inverse_ && sizes[0] > 0) {
      std::memcpy(outputs[1], inputs[0], sizes[0]);
    }
  }
  std::string getName() const override { return "Split"; }
  std::size_t getNumInputs() const override { return inverse_ ? 2 : 1; }
  std::size_t getNumOutputs() const override { return inverse_ ? 1 : 2; }
  std::vector<std::string> getOutputNames() const override {
    return inverse_ ? std::vector<std::string>{"output"}
                    : std::vector<std::string>{"first", "second"};
  }
  std::vector<std::size_t> estimateOutputSizes(
      const std::vector<std::size_t>& input_sizes) const override {
    return inverse_ ? std::vector<std::size_t>{input_sizes[0]}
                    : std::vector<std::size_t>{input_sizes[0], input_sizes[0]};
  }
  std::unordered_map<std::string, std::size_t> getActualOutputSizesByName() const override {
    return inverse_ ? std::unordered_map<std::string, std::size_t>{{"output", n_bytes_}}
                    : std::unordered_map<std::string, std::size_t>{{"first", n_bytes_},
                                                                   {"second", n_bytes_}};
  }
  std::uint16_t getStageTypeId() const override { return 0x4002; }
};

/// Concatenates two inputs of equal length; the inverse takes them apart.
class MergeStage : public PassThroughStage {
 public:
  void execute(cudaStream_t /*stream*/,
               MemoryPool* /*pool*/,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) override {
    if (inverse_) {
      n_bytes_ = sizes[0] / 2;
      std::memcpy(outputs[0], inputs[0], n_bytes_);
      std::memcpy(outputs[1], static_cast<const char*>(inputs[0]) + n_bytes_, n_bytes_);
      return;
    }
    std::memcpy(outputs[0], inputs[0], sizes[0]);
    std::memcpy(static_cast<char*>(outputs[0]) + sizes[0], inputs[1], sizes[1]);
    n_bytes_ = sizes[0] + sizes[1];
  }
  std::string getName() const override { return "Merge"; }
  std::size_t getNumInputs() const override { return inverse_ ? 1 : 2; }
  std::size_t getNumOutputs() const override { return inverse_ ? 2 : 1; }
  std::vector<std::string> getOutputNames() const override {
    return inverse_ ? std::vector<std::string>{"first", "second"}
                    : std::vector<std::string>{"output"};
  }
  std::vector<std::size_t> estimateOutputSizes(
      const std::vector<std::size_t>& input_sizes) const override {
    return inverse_ ? std::vector<std::size_t>{input_sizes[0] / 2, input_sizes[0] / 2}
                    : std::vector<std::size_t>{input_sizes[0] + input_sizes[1]};
  }
  std::unordered_map<std::string, std::size_t> getActualOutputSizesByName() const override {
    return inverse_ ? std::unordered_map<std::string, std::size_t>{{"first", n_bytes_},
                                                                   {"second", n_bytes_}}
                    : std::unordered_map<std::string, std::size_t>{{"output", n_bytes_}};
  }
  std::uint16_t getStageTypeId() const override { return 0x4003; }
};

/// Claims to have written more than its buffer holds.
class OverReportingStage : public PassThroughStage {
 public:
  std::string getName() const override { return "OverReporting"; }
  std::unordered_map<std::string, std::size_t> getActualOutputSizesByName() const override {
    return {{"output", n_bytes_ + 1}};
  }
};

/// Needs its pipeline's input padded.
class AlignedStage : public PassThroughStage {
 public:
  std::string getName() const override { return "Aligned"; }
  std::size_t getRequiredInputAlignment() const override { return 4096; }
  std::uint16_t getStageTypeId() const override { return 0x4004; }
};

}  // namespace fz::test
