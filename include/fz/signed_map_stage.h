#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

/// How values are mapped, both ways: n_values values of value_bytes bytes each. Never throws.
struct SignedMap {
  using Loop = void (*)(const void* in, std::size_t n_values, std::size_t value_bytes, void* out);
  Loop encode;
  Loop decode;
  /// The same on a device; null in a build without CUDA.
  using Launch = void (*)(const CudaRun& run, std::size_t value_bytes);
  Launch encode_cuda = nullptr;
  Launch decode_cuda = nullptr;
  /// In fused groups: the name of the op's template, which takes the signed type, and its header.
  const char* op_template = nullptr;
  const char* op_header = nullptr;
};

/// A lossless map between signed integers and unsigned ones of the same width, value by value.
/// Base of Zigzag and Negabinary; the config is the two DataTypes.
class SignedMapStage : public SimpleStage, private CpuTileOp {
 protected:
  SignedMapStage(DataType signed_type, DataType unsigned_type, SignedMap map)
      : signed_type_(signed_type), unsigned_type_(unsigned_type), map_(map) {}

  DataType inputType() const override { return signed_type_; }
  Ports outputPorts() const override { return {{"output", unsigned_type_}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  bool hasFixedEncodedBytes(std::size_t /*port*/) const override { return true; }
  void encodeCuda(const CudaRun& run) override;
  void decodeCuda(const CudaRun& run) override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;

 public:
  bool hasCuda() const override { return map_.encode_cuda != nullptr; }
  TileOp cpuTileOp() const override;
  CpuTilePart* cpuTilePart() override { return this; }
  std::vector<DataType> elementTypes() const override { return {signed_type_, unsigned_type_}; }
  TileOp cudaTileOp() const override;
  std::string tileOpType() const override;
  std::string tileOpHeader() const override { return map_.op_header; }
  void beginGroupCuda(const CudaRun& run, const GroupRun& group, GroupArgs& args) override;

 private:
  void beginTiles(const CpuRun& run, const TileCut& cut) override;
  void encodeTile(const TileRange& range, const void* in, void* out) override;
  void decodeTile(const TileRange& range, const void* in, void* out) override;
  void endTiles(const CpuRun& run) override;
  void requireWholeValues(std::size_t n_bytes) const;

  DataType signed_type_;
  DataType unsigned_type_;
  SignedMap map_;
};

namespace detail {

using SignedTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

template <template <class, class> class StageT>
std::unique_ptr<Stage> makeSignedMap(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  forEachType(SignedTypes{}, [&]<class T>() {
    using U = std::make_unsigned_t<T>;
    if (types.size() == 2 && types[0] == kDataTypeOf<T> && types[1] == kDataTypeOf<U>) {
      made = std::make_unique<StageT<T, U>>();
    }
  });
  return made;
}

/// A descriptor with all that such stages share.
StageDescriptor signedMapDescriptor(std::unique_ptr<Stage> (*make)(std::span<const DataType>));

}  // namespace detail

/// The descriptor of StageT<TIn, TOut>, a stage for every signed type and its unsigned one.
template <template <class, class> class StageT>
StageDescriptor signedMapDescriptor(std::uint16_t id,
                                    std::string_view name,
                                    std::string_view summary) {
  StageDescriptor descriptor = detail::signedMapDescriptor(&detail::makeSignedMap<StageT>);
  descriptor.id = id;
  descriptor.name = name;
  descriptor.summary = summary;
  return descriptor;
}

}  // namespace fz
