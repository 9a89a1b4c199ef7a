#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

/// A lossless map between signed integers and unsigned ones of the same width, value by value.
/// Base of Zigzag and Negabinary; the config is the two DataTypes.
class SignedMapStage : public SimpleStage {
 protected:
  SignedMapStage(DataType signed_type, DataType unsigned_type)
      : signed_type_(signed_type), unsigned_type_(unsigned_type) {}

  /// Maps n_values values of the stage's width. Never throws.
  virtual void encodeValues(const void* in, std::size_t n_values, void* out) const = 0;
  virtual void decodeValues(const void* in, std::size_t n_values, void* out) const = 0;

  DataType inputType() const override { return signed_type_; }
  Ports outputPorts() const override { return {{"output", unsigned_type_}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 public:
  std::vector<DataType> elementTypes() const override { return {signed_type_, unsigned_type_}; }

 private:
  DataType signed_type_;
  DataType unsigned_type_;
};

/// Parts of the descriptor that such stages share.
std::vector<std::vector<DataType>> signedMapCombinations();
StageTypes signedMapTypesFromConfig(ByteView config);

}  // namespace fz
