#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fz {

class Stage;

/// The value of one stage setting. Choices (such as an error-bound mode) travel as their text.
using ParamValue = std::variant<bool, std::int64_t, double, std::string>;

/// kText is any text that the setter understands; a kChoice is one of a few.
enum class ParamKind : std::uint8_t { kBool, kInt, kReal, kChoice, kText };

/// One setting of a stage, described once for TOML, the command line, Python and the documents.
struct Param {
  std::string_view key;
  ParamKind kind;
  /// What a newly constructed stage has.
  ParamValue default_value;
  /// Allowed range of kInt and kReal, both ends included.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  /// Allowed texts of kChoice; for kInt an optional closed list such as {"1", "2", "4"}.
  std::vector<std::string_view> choices = {};
  std::string_view help;
  std::function<ParamValue(const Stage&)> get;
  std::function<void(Stage&, const ParamValue&)> set;
  /// What a configuration file means when it leaves the key out, where that differs from
  /// default_value for compatibility with existing files.
  std::optional<ParamValue> config_default = {};
  /// Settings that depend on the data and are not part of a saved configuration.
  bool saved = true;
  /// Of kText: other texts that the setter understands.
  std::vector<std::string_view> examples = {};
};

/// The settings of one stage, in the order in which they are documented and saved.
class ParamTable {
 public:
  ParamTable() = default;
  explicit ParamTable(std::vector<Param> rows) : rows_(std::move(rows)) {}

  const std::vector<Param>& rows() const { return rows_; }
  /// Null when there is no such key.
  const Param* find(std::string_view key) const;

 private:
  std::vector<Param> rows_;
};

/// Text of a value as TOML writes it: true, 32, 0.001, "ABS".
std::string toTomlText(const ParamValue& value);

/// Checks kind, range and choices, then sets. Integers are accepted where a real is asked for.
/// Throws InvalidArgument with the key, the value and what is allowed.
void setParam(Stage& stage, const Param& param, const ParamValue& value);
/// The same by key; throws InvalidArgument listing the stage's keys when it has no such key.
void setParam(Stage& stage, std::string_view key, const ParamValue& value);
/// Throws InvalidArgument for an unknown key.
ParamValue getParam(const Stage& stage, std::string_view key);
/// Parses `text` by the parameter's kind, then sets: for command lines.
void setParamFromText(Stage& stage, std::string_view key, std::string_view text);

/// Builds a kBool/kInt/kReal row from a getter and a setter of stage class S.
template <class S, class Get, class Set>
Param boolParam(std::string_view key, bool def, std::string_view help, Get get, Set set) {
  return {.key = key,
          .kind = ParamKind::kBool,
          .default_value = def,
          .help = help,
          .get = [get](const Stage& s) -> ParamValue {
            return static_cast<bool>(std::invoke(get, static_cast<const S&>(s)));
          },
          .set =
              [set](Stage& s, const ParamValue& v) {
                std::invoke(set, static_cast<S&>(s), std::get<bool>(v));
              }};
}

struct IntRange {
  std::int64_t min;
  std::int64_t max;
};

template <class S, class Get, class Set>
Param intParam(std::string_view key,
               std::int64_t def,
               IntRange range,
               std::string_view help,
               Get get,
               Set set) {
  return {
      .key = key,
      .kind = ParamKind::kInt,
      .default_value = def,
      .min = static_cast<double>(range.min),
      .max = static_cast<double>(range.max),
      .help = help,
      .get = [get](const Stage& s) -> ParamValue {
        return static_cast<std::int64_t>(std::invoke(get, static_cast<const S&>(s)));
      },
      .set = [set](Stage& s,
                   const ParamValue& v) { set(static_cast<S&>(s), std::get<std::int64_t>(v)); }};
}

struct RealRange {
  double min;
  double max;
};

template <class S, class Get, class Set>
Param realParam(
    std::string_view key, double def, RealRange range, std::string_view help, Get get, Set set) {
  return {.key = key,
          .kind = ParamKind::kReal,
          .default_value = def,
          .min = range.min,
          .max = range.max,
          .help = help,
          .get = [get](const Stage& s) -> ParamValue {
            return static_cast<double>(std::invoke(get, static_cast<const S&>(s)));
          },
          .set = [set](Stage& s,
                       const ParamValue& v) { set(static_cast<S&>(s), std::get<double>(v)); }};
}

template <class S, class Get, class Set>
Param choiceParam(
    std::string_view key,
    std::string_view def,
    std::vector<std::string_view> choices,  // NOLINT(performance-unnecessary-value-param)
    std::string_view help,
    Get get,
    Set set) {
  return {.key = key,
          .kind = ParamKind::kChoice,
          .default_value = std::string(def),
          .choices = std::move(choices),
          .help = help,
          .get = [get](const Stage& s) -> ParamValue {
            return std::string(std::invoke(get, static_cast<const S&>(s)));
          },
          .set = [set](Stage& s,
                       const ParamValue& v) { set(static_cast<S&>(s), std::get<std::string>(v)); }};
}

/// Any text; the setter throws InvalidArgument for one that it does not understand.
template <class S, class Get, class Set>
Param textParam(std::string_view key,
                std::string_view def,
                std::string_view help,
                Get get,
                Set set,
                std::vector<std::string_view> examples = {}) {
  Param param = choiceParam<S>(key, def, {}, help, get, set);
  param.kind = ParamKind::kText;
  param.examples = std::move(examples);
  return param;
}

}  // namespace fz
