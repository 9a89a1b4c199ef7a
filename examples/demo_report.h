#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fz/data_type.h"
#include "report/report.h"

namespace fz::demo {

using Row = report::PresetResult;

struct Field {
  std::string name;
  DataType type = DataType::FLOAT32;
  std::array<std::size_t, 3> dims = {0, 1, 1};
  std::vector<std::uint8_t> bytes;
};

std::string tableHead();
std::string tableLine(const Row& row);
/// The report of the preset with the best ratio, with all presets compared and a sweep of bounds.
std::string htmlPage(const Field& field,
                     double bound,
                     std::size_t threads,
                     const std::vector<Row>& rows);

}  // namespace fz::demo
