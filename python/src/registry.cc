#include "registry.h"

#include <nanobind/stl/string.h>

#include "convert.h"
#include "fz/presets.h"
#include "fz/stage_descriptor.h"

namespace fz::python {

namespace nb = nanobind;

namespace {

const char* kindName(ParamKind kind) {
  switch (kind) {
    case ParamKind::kBool:
      return "bool";
    case ParamKind::kInt:
      return "int";
    case ParamKind::kReal:
      return "float";
    case ParamKind::kChoice:
    case ParamKind::kText:
      return "str";
  }
  return "unknown";
}

nb::dict describe(const Param& param) {
  nb::dict row;
  row["key"] = toPython(param.key);
  row["kind"] = kindName(param.kind);
  // Python builds stages as configuration files do.
  row["default"] = toPython(param.config_default.value_or(param.default_value));
  const bool is_number = param.kind == ParamKind::kInt || param.kind == ParamKind::kReal;
  row["min"] = is_number ? nb::object(nb::float_(param.min)) : nb::none();
  row["max"] = is_number ? nb::object(nb::float_(param.max)) : nb::none();
  nb::list choices;
  for (const std::string_view choice : param.choices) {
    choices.append(toPython(choice));
  }
  row["choices"] = choices;
  row["help"] = toPython(param.help);
  return row;
}

nb::dict describe(const StageDescriptor& stage) {
  nb::dict row;
  row["id"] = stage.id;
  row["name"] = toPython(stage.name);
  row["category"] = toPython(stage.category);
  row["summary"] = toPython(stage.summary);
  nb::list keys;
  for (const TypeKey& key : stage.type_keys) {
    keys.append(toPython(key.key));
  }
  row["type_keys"] = keys;
  nb::list combinations;
  for (const std::vector<DataType>& types : stage.type_combinations) {
    combinations.append(typesToPython(types));
  }
  row["types"] = combinations;
  row["default_types"] = typesToPython(defaultTypes(stage));
  nb::list ports;
  for (const std::string& port : defaultPorts(stage)) {
    ports.append(toPython(std::string_view(port)));
  }
  row["ports"] = ports;
  nb::list params;
  for (const Param& param : stage.params().rows()) {
    params.append(describe(param));
  }
  row["params"] = params;
  return row;
}

}  // namespace

void bindRegistry(nb::module_& module) {
  module.def("stages", [] {
    nb::list rows;
    for (const StageDescriptor* stage : allStages()) {
      rows.append(describe(*stage));
    }
    return rows;
  });
  module.def("presets", [] {
    nb::list rows;
    const auto add = [&rows](const Preset& preset) {
      nb::dict row;
      row["name"] = toPython(preset.name);
      row["summary"] = toPython(preset.summary);
      row["toml"] = toPython(preset.toml);
      rows.append(row);
    };
    constexpr std::size_t kByPurpose = 4;  // lossless is the fifth; families follow
    for (std::size_t i = 0; i < allPresets().size(); ++i) {
      if (i == kByPurpose) {
        add(losslessPreset());
      }
      add(allPresets()[i]);
    }
    return rows;
  });
  module.def("default_preset", [](bool is_relative) {
    return toPython(defaultPreset(is_relative ? ErrorBoundMode::REL : ErrorBoundMode::ABS).name);
  });
}

}  // namespace fz::python
