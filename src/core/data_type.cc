#include "fz/data_type.h"

#include "core/require.h"

namespace fz {

namespace {

struct TypeRow {
  DataType type;
  std::size_t n_bytes;
  std::string_view name;
  std::string_view short_name;
};

constexpr TypeRow kRows[] = {
    {DataType::UINT8, 1, "uint8", "u8"},      {DataType::UINT16, 2, "uint16", "u16"},
    {DataType::UINT32, 4, "uint32", "u32"},   {DataType::UINT64, 8, "uint64", "u64"},
    {DataType::INT8, 1, "int8", "i8"},        {DataType::INT16, 2, "int16", "i16"},
    {DataType::INT32, 4, "int32", "i32"},     {DataType::INT64, 8, "int64", "i64"},
    {DataType::FLOAT32, 4, "float32", "f32"}, {DataType::FLOAT64, 8, "float64", "f64"},
};

const TypeRow* find(DataType type) {
  for (const TypeRow& row : kRows) {
    if (row.type == type) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

std::size_t getDataTypeSize(DataType type) {
  const TypeRow* row = find(type);
  FZ_REQUIRE(row != nullptr, ErrorCode::kInvalidArgument, "DataType: {} has no element size",
             static_cast<unsigned>(type));
  return row->n_bytes;
}

std::string_view dataTypeToString(DataType type) {
  const TypeRow* row = find(type);
  return row == nullptr ? "unknown" : row->name;
}

std::optional<DataType> dataTypeFromString(std::string_view text) {
  for (const TypeRow& row : kRows) {
    if (text == row.name || text == row.short_name) {
      return row.type;
    }
  }
  return std::nullopt;
}

bool areConnectable(DataType producer, DataType consumer) {
  if (producer == DataType::UNKNOWN || consumer == DataType::UNKNOWN || producer == consumer) {
    return true;
  }
  return !isFloat(producer) && !isFloat(consumer) &&
         getDataTypeSize(producer) == getDataTypeSize(consumer);
}

}  // namespace fz
