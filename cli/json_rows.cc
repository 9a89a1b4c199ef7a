#include "json_rows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fz::cli {

namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void JsonRows::addRow(const std::string& file,
                      ExitCode code,
                      const char* message,
                      const std::string& rest) {
  if (!is_on_) {
    return;
  }
  Json row = {{"command", command_},
              {"file", file},
              {"code", static_cast<int>(code)},
              {"message", message == nullptr ? Json(nullptr) : Json(message)}};
  const Json others = Json::parse(rest);
  for (const auto& [key, value] : others.items()) {
    if (!row.contains(key)) {
      row[key] = value;
    }
  }
  // Names of files are bytes, not always UTF-8.
  rows_.push_back(row.dump(2, ' ', false, Json::error_handler_t::replace));
}

void JsonRows::add(const std::string& file, const std::string& object) {
  addRow(file, ExitCode::kOk, nullptr, object);
}

void JsonRows::addFailure(const std::string& file,
                          const Failure& failure,
                          const std::string& object) {
  addRow(file, failure.code(), failure.what(), object);
}

void JsonRows::print() const {
  if (!is_on_) {
    return;
  }
  fmt::print("[");
  const char* separator = "\n";
  for (const std::string& row : rows_) {
    fmt::print("{}{}", separator, row);
    separator = ",\n";
  }
  fmt::print("\n]\n");
}

}  // namespace fz::cli
