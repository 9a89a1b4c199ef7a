#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fz::demo {

/// One preset's result.
struct Row {
  std::string preset;
  double ratio = 0;
  double bound = 0;
  double max_error = 0;
  double psnr = 0;
  std::size_t n_violations = 0;
  double compress_gbs = 0;
  double decompress_gbs = 0;
};

std::string tableHead();
std::string tableLine(const Row& row);
/// A page that needs nothing but a browser: table and bars, light and dark.
std::string htmlPage(const std::string& field, double bound, const std::vector<Row>& rows);

}  // namespace fz::demo
