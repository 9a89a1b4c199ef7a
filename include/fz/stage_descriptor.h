#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/error.h"
#include "fz/params.h"
#include "fz/span.h"

namespace fz {

class CudaPart;
class SimpleStage;
class Stage;

/// At most N values, held in place: what a call returns without touching the heap.
template <class T, std::size_t N>
class SmallList {
 public:
  SmallList() = default;
  /// Throws Error(kInternal) for more than N values.
  SmallList(std::initializer_list<T> values) {  // NOLINT(google-explicit-constructor)
    for (const T& value : values) {
      push_back(value);
    }
  }

  // NOLINTBEGIN(readability-identifier-naming): as in the standard's containers
  /// Throws Error(kInternal) when N values are held already.
  void push_back(const T& value) {
    if (size_ == N) {
      throw Error(ErrorCode::kInternal, "SmallList: no room for another value");
    }
    values_[size_++] = value;
  }
  // NOLINTEND(readability-identifier-naming)

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return values_.data(); }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  /// i must be below size().
  T& operator[](std::size_t i) { return values_[i]; }
  const T& operator[](std::size_t i) const { return values_[i]; }

 private:
  std::array<T, N> values_ = {};
  std::size_t size_ = 0;
};

/// A configuration key that selects an instantiation, such as input_type = "float32".
struct TypeKey {
  std::string_view key;
  DataType default_type;  ///< UNKNOWN: the type of the first key
};

/// Element types that select an instantiation, one per type key.
using StageTypes = SmallList<DataType, 4>;

/// Makes the device side of a stage of the descriptor's class; the stage outlives it.
using MakeCudaPart = std::unique_ptr<CudaPart> (*)(SimpleStage& stage);

/// Everything the rest of the library knows about a stage. Configuration files, archives, the
/// command line, bindings, tests and reference pages read this; none of them names a stage class.
struct StageDescriptor {
  std::uint16_t id;
  std::string_view name;      ///< as in configuration files: "Lorenzo"
  std::string_view category;  ///< quantizer, predictor, transform, shuffler, coder, fused
  std::string_view summary;   ///< one line for lists

  /// Keys that select the element types; empty for stages without template parameters.
  std::vector<TypeKey> type_keys;
  /// The instantiations that exist, each with one entry per type key.
  std::vector<std::vector<DataType>> type_combinations;
  /// Other names for lists and the compatible command line, lower case.
  std::vector<std::string_view> aliases;

  /// A new stage for one of the combinations; null for any other.
  std::unique_ptr<Stage> (*make)(std::span<const DataType> types);
  /// Element types that a stored config asks for. Untrusted bytes; an empty result means "none".
  StageTypes (*types_from_config)(ByteView config);
  /// Settings, for an arbitrary instantiation.
  const ParamTable& (*params)();
  /// Adjusts defaults that depend on other keys of a configuration file; may be null. `has_key`
  /// tells whether the file sets a key. Called before the file's own keys are applied.
  void (*adjust_config_defaults)(Stage& stage,
                                 const std::function<bool(std::string_view)>& has_key,
                                 const std::function<ParamValue(std::string_view)>& value_of);

  /// What the stage does on a device; null: the build has no CUDA, or the stage no kernels.
  MakeCudaPart make_cuda = nullptr;

  bool graph_compatible_forward = true;
  bool graph_compatible_inverse = true;
};

/// All stages of this build, by id; the order never changes within a build.
std::span<const StageDescriptor* const> allStages();
/// Null when there is none.
const StageDescriptor* findStage(std::uint16_t id);
/// By name or alias, case-insensitively.
const StageDescriptor* findStage(std::string_view name);
/// Element types that a configuration file means when it names none, one per type key.
std::vector<DataType> defaultTypes(const StageDescriptor& descriptor);
/// Names of the output ports of a new stage; settings can leave some of them out.
std::vector<std::string> defaultPorts(const StageDescriptor& descriptor);
/// Makes a stage outside this library known to archives and configurations of this process.
/// The descriptor must live as long as the process. Throws InvalidArgument on a taken id or name.
void registerStage(const StageDescriptor& descriptor);

/// Builds StageT<T> for the T in the list whose DataType is types[0]; null when none matches.
template <template <class> class StageT, class... Ts>
std::unique_ptr<Stage> makeFor(std::span<const DataType> types, TypeList<Ts...> /*list*/) {
  std::unique_ptr<Stage> made;
  if (types.size() == 1) {
    static_cast<void>(
        ((types[0] == kDataTypeOf<Ts> ? (made = std::make_unique<StageT<Ts>>(), true) : false) ||
         ...));
  }
  return made;
}

/// The one-entry combinations of a type list.
template <class... Ts>
std::vector<std::vector<DataType>> combinationsOf(TypeList<Ts...> /*list*/) {
  return {{kDataTypeOf<Ts>}...};
}

}  // namespace fz
