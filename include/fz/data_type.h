#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace fz {

// The enumerators keep the names and values that files and existing callers use.
// NOLINTBEGIN(readability-identifier-naming)
enum class DataType : std::uint8_t {
  UINT8 = 0,
  UINT16 = 1,
  UINT32 = 2,
  UINT64 = 3,
  INT8 = 4,
  INT16 = 5,
  INT32 = 6,
  INT64 = 7,
  FLOAT32 = 8,
  FLOAT64 = 9,
  UNKNOWN = 255,  ///< byte-transparent port: takes part in no type check
};
// NOLINTEND(readability-identifier-naming)

template <class T>
inline constexpr DataType kDataTypeOf = [] {
  static_assert(sizeof(T) == 0, "no DataType for this type");
  return DataType::UNKNOWN;
}();
template <>
inline constexpr DataType kDataTypeOf<std::uint8_t> = DataType::UINT8;
template <>
inline constexpr DataType kDataTypeOf<std::uint16_t> = DataType::UINT16;
template <>
inline constexpr DataType kDataTypeOf<std::uint32_t> = DataType::UINT32;
template <>
inline constexpr DataType kDataTypeOf<std::uint64_t> = DataType::UINT64;
template <>
inline constexpr DataType kDataTypeOf<std::int8_t> = DataType::INT8;
template <>
inline constexpr DataType kDataTypeOf<std::int16_t> = DataType::INT16;
template <>
inline constexpr DataType kDataTypeOf<std::int32_t> = DataType::INT32;
template <>
inline constexpr DataType kDataTypeOf<std::int64_t> = DataType::INT64;
template <>
inline constexpr DataType kDataTypeOf<float> = DataType::FLOAT32;
template <>
inline constexpr DataType kDataTypeOf<double> = DataType::FLOAT64;

/// Bytes of one element. Throws Error for UNKNOWN and for values outside the enumeration.
std::size_t getDataTypeSize(DataType type);
/// "float32", "uint16", ...; "unknown" for anything else.
std::string_view dataTypeToString(DataType type);
/// Inverse of dataTypeToString; accepts the short forms f32, u16, i8 as well.
std::optional<DataType> dataTypeFromString(std::string_view text);

constexpr bool isKnown(DataType type) {
  return static_cast<std::uint8_t>(type) <= 9;
}
constexpr bool isFloat(DataType type) {
  return type == DataType::FLOAT32 || type == DataType::FLOAT64;
}

/// The connection rule: identical, or integers of one width, or a byte-transparent side.
bool areConnectable(DataType producer, DataType consumer);

/// A list of element types; the one place a stage names what it supports.
template <class... Ts>
struct TypeList {};

/// Calls f.template operator()<T>() for every T of the list.
template <class... Ts, class F>
constexpr void forEachType(TypeList<Ts...> /*list*/, F&& f) {
  (f.template operator()<Ts>(), ...);
}

}  // namespace fz
