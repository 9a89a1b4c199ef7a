#include "fz/params.h"

#include <charconv>
#include <cmath>
#include <fmt/ranges.h>

#include "core/require.h"
#include "stage/stage.h"

namespace fz {

namespace {

std::string allowedText(const Param& param) {
  if (!param.choices.empty()) {
    return fmt::format("one of {}", fmt::join(param.choices, ", "));
  }
  switch (param.kind) {
    case ParamKind::kBool:
      return "true or false";
    case ParamKind::kInt:
      return fmt::format("an integer from {:.0f} to {:.0f}", param.min, param.max);
    case ParamKind::kReal:
      return fmt::format("a number from {} to {}", param.min, param.max);
    case ParamKind::kChoice:
    case ParamKind::kText:
      break;
  }
  return "a text";
}

[[noreturn]] void throwBadValue(const Stage& stage, const Param& param, const std::string& came) {
  detail::throwInvalidArgument(fmt::format("{}: {} must be {}, not {}", stage.getName(), param.key,
                                           allowedText(param), came));
}

ParamValue convertToKind(const Stage& stage, const Param& param, const ParamValue& value) {
  switch (param.kind) {
    case ParamKind::kBool:
      if (std::holds_alternative<bool>(value)) {
        return value;
      }
      break;
    case ParamKind::kInt:
      if (std::holds_alternative<std::int64_t>(value)) {
        return value;
      }
      break;
    case ParamKind::kReal:
      if (std::holds_alternative<double>(value)) {
        return value;
      }
      if (const auto* i = std::get_if<std::int64_t>(&value)) {
        return static_cast<double>(*i);
      }
      break;
    case ParamKind::kChoice:
    case ParamKind::kText:
      if (std::holds_alternative<std::string>(value)) {
        return value;
      }
      break;
  }
  throwBadValue(stage, param, toTomlText(value));
}

bool isAllowed(const Param& param, const ParamValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    if (!param.choices.empty()) {
      const std::string text = std::to_string(*i);
      return std::find(param.choices.begin(), param.choices.end(), text) != param.choices.end();
    }
    return static_cast<double>(*i) >= param.min && static_cast<double>(*i) <= param.max;
  }
  if (const auto* d = std::get_if<double>(&value)) {
    return *d >= param.min && *d <= param.max;  // NaN is outside every range
  }
  if (const auto* s = std::get_if<std::string>(&value); s && param.kind == ParamKind::kChoice) {
    return std::find(param.choices.begin(), param.choices.end(), *s) != param.choices.end();
  }
  return true;
}

const Param& require(const Stage& stage, std::string_view key) {
  const ParamTable& table = stage.paramTable();
  const Param* param = table.find(key);
  if (param == nullptr) {
    std::string keys;
    for (const Param& row : table.rows()) {
      keys += fmt::format("{}{}", keys.empty() ? "" : ", ", row.key);
    }
    detail::throwInvalidArgument(fmt::format("{}: no setting '{}'; its settings are {}",
                                             stage.getName(), key, keys.empty() ? "none" : keys));
  }
  return *param;
}

}  // namespace

const Param* ParamTable::find(std::string_view key) const {
  for (const Param& row : rows_) {
    if (row.key == key) {
      return &row;
    }
  }
  return nullptr;
}

std::string toTomlText(const ParamValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) {
    return *b ? "true" : "false";
  }
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*i);
  }
  if (const auto* d = std::get_if<double>(&value)) {
    if (std::isinf(*d)) {
      return *d < 0 ? "-inf" : "inf";
    }
    std::string text = fmt::format("{}", *d);  // shortest text that reads back to the same double
    if (text.find_first_of(".en") == std::string::npos) {
      text += ".0";
    }
    return text;
  }
  std::string text = "\"";
  for (const char c : std::get<std::string>(value)) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    const auto code = static_cast<unsigned char>(c);
    text += code < 0x20 || code == 0x7F ? fmt::format("\\u{:04X}", code) : std::string(1, c);
  }
  return text + '"';
}

void setParam(Stage& stage, const Param& param, const ParamValue& value) {
  const ParamValue converted = convertToKind(stage, param, value);
  if (!isAllowed(param, converted)) {
    throwBadValue(stage, param, toTomlText(value));
  }
  param.set(stage, converted);
}

void setParam(Stage& stage, std::string_view key, const ParamValue& value) {
  setParam(stage, require(stage, key), value);
}

ParamValue getParam(const Stage& stage, std::string_view key) {
  return require(stage, key).get(stage);
}

void setParamFromText(Stage& stage, std::string_view key, std::string_view text) {
  const Param& param = require(stage, key);
  const auto parse = [&](auto number) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) {
      throwBadValue(stage, param, fmt::format("'{}'", text));
    }
    return number;
  };
  switch (param.kind) {
    case ParamKind::kBool:
      if (text != "true" && text != "false") {
        throwBadValue(stage, param, fmt::format("'{}'", text));
      }
      return setParam(stage, param, text == "true");
    case ParamKind::kInt:
      return setParam(stage, param, parse(std::int64_t{0}));
    case ParamKind::kReal:
      return setParam(stage, param, parse(0.0));
    case ParamKind::kChoice:
    case ParamKind::kText:
      return setParam(stage, param, std::string(text));
  }
}

}  // namespace fz
