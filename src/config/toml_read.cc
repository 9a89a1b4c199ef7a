#include "config/toml_read.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <set>
#include <sstream>

// toml++ 3.3 tells the compiler what it believes of its input, and damaged text can make some of it
// untrue (a key that begins with a character of no key). Neither an assertion nor an assumption may
// stand on that; the parser reports the same place as an error a few lines later.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>

#include "core/require.h"
#include "fz/stage_descriptor.h"

namespace fz {

namespace {

constexpr std::size_t kParserBytes = 64 * 1024;
constexpr std::size_t kParserBytesPerChar = 64;  // a node for every few characters

/// Throws when this many bytes cannot be had now.
void requireMemory(std::size_t n_bytes) {
  void* volatile room =
      std::malloc(n_bytes);  // volatile: a pair of calls that nobody looks at may go
  FZ_REQUIRE(room != nullptr, ErrorCode::kOutOfMemory, "configuration: {} bytes to read it",
             n_bytes);
  std::free(room);
}

TextPlace placeOf(const toml::source_region& region) {
  return {region.begin.line, region.begin.column};
}

/// Reads one document; every complaint carries its file and line.
class ConfigReader {
 public:
  ConfigReader(std::string source_name, const ConfigOverrides& overrides)
      : source_name_(std::move(source_name)), overrides_(overrides) {}

  LoadedConfig read(const std::string& text);

 private:
  [[noreturn]] void fail(TextPlace where, const std::string& message) const {
    detail::throwError(ErrorCode::kConfig, fmt::format("{}:{}:{}: {}", source_name_, where.line,
                                                       where.column, message));
  }
  [[noreturn]] void fail(const toml::source_region& where, const std::string& message) const {
    fail(placeOf(where), message);
  }
  void checkKeys(const toml::table& table,
                 const std::vector<std::string>& allowed,
                 const std::string& what) const;
  void readPipeline(const toml::table& table, LoadedConfig& config) const;
  std::size_t readSize(const toml::node& node, const std::string& key) const;
  LoadedStage readStage(const toml::table& table) const;
  std::vector<DataType> readTypes(const toml::table& table,
                                  const StageDescriptor& descriptor) const;
  void readParams(const toml::table& table, const StageDescriptor& descriptor, Stage& stage) const;
  std::vector<Link> readInputs(const toml::table& table) const;
  ParamValue valueOf(const toml::node& node, const std::string& key) const;
  std::string requireText(const toml::table& table, const char* key) const;

  std::string source_name_;
  const ConfigOverrides& overrides_;
};

std::string textOf(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

void ConfigReader::checkKeys(const toml::table& table,
                             const std::vector<std::string>& allowed,
                             const std::string& what) const {
  if (overrides_.allow_unknown_keys) {
    return;
  }
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      fail(node.source(), fmt::format("unknown key '{}' in {}; allowed are {}", name, what,
                                      fmt::join(allowed, ", ")));
    }
  }
}

std::string ConfigReader::requireText(const toml::table& table, const char* key) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) {
    fail(table.source(), fmt::format("[[stage]] without '{}'", key));
  }
  if (!node->is_string() || node->as_string()->get().empty()) {
    fail(node->source(), fmt::format("'{}' must be a text, not {}", key, textOf(*node)));
  }
  return node->as_string()->get();
}

std::size_t ConfigReader::readSize(const toml::node& node, const std::string& key) const {
  if (!node.is_integer() || node.as_integer()->get() < 0) {
    fail(node.source(),
         fmt::format("{} must be an integer of at least 0, not {}", key, textOf(node)));
  }
  return static_cast<std::size_t>(node.as_integer()->get());
}

void ConfigReader::readPipeline(const toml::table& table, LoadedConfig& config) const {
  checkKeys(table, {"input_size", "dims", "memory_strategy", "pool_multiplier", "num_streams"},
            "[pipeline]");
  if (const toml::node* node = table.get("input_size")) {
    config.input_bytes = readSize(*node, "input_size");
  }
  if (const toml::node* node = table.get("dims")) {
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty() || array->size() > 3) {
      fail(node->source(), "dims must be an array of one to three integers, x first");
    }
    std::array<std::size_t, 3> dims = {0, 1, 1};
    for (std::size_t i = 0; i < array->size(); ++i) {
      dims[i] = readSize(*array->get(i), "dims");
      if (i > 0 && dims[i] == 0) {
        fail(array->get(i)->source(), "dims after the first must be at least 1");
      }
    }
    config.dims = dims;
  }
  if (const toml::node* node = table.get("memory_strategy")) {
    const std::string text = node->value_or(std::string());
    if (text != "MINIMAL" && text != "PREALLOCATE") {
      fail(node->source(),
           fmt::format("memory_strategy must be \"MINIMAL\" or \"PREALLOCATE\", not {}",
                       textOf(*node)));
    }
    config.strategy = text == "MINIMAL" ? MemoryStrategy::MINIMAL : MemoryStrategy::PREALLOCATE;
  }
  if (const toml::node* node = table.get("pool_multiplier")) {
    if (!node->is_number() || !(*node->value<double>() > 0)) {
      fail(node->source(), "pool_multiplier must be a number above 0");
    }
    config.pool_multiplier = node->value<double>();
  }
  if (const toml::node* node = table.get("num_streams")) {
    const std::size_t n = readSize(*node, "num_streams");
    if (n < 1 || n > 64) {
      fail(node->source(), "num_streams must be from 1 to 64");
    }
    config.n_streams = static_cast<int>(n);
  }
}

std::vector<DataType> ConfigReader::readTypes(const toml::table& table,
                                              const StageDescriptor& descriptor) const {
  std::vector<DataType> types;
  toml::source_region where = table.source();
  for (const TypeKey& key : descriptor.type_keys) {
    DataType type = key.default_type;
    if (const toml::node* node = table.get(key.key)) {
      where = node->source();
      const auto parsed = dataTypeFromString(node->value_or(std::string()));
      if (!parsed) {
        fail(where, fmt::format("{}: {} is no element type (float32, uint16, ...)", key.key,
                                textOf(*node)));
      }
      type = *parsed;
    } else if (!types.empty() && key.key == "output_type" &&
               key.default_type == DataType::UNKNOWN) {
      type = types.front();
    }
    types.push_back(type);
  }
  const bool is_source = table.get("inputs") == nullptr || table["inputs"].as_array() == nullptr ||
                         table["inputs"].as_array()->empty();
  if (is_source && overrides_.input_type != DataType::UNKNOWN && !types.empty()) {
    types[0] = overrides_.input_type;
  }
  const auto& allowed = descriptor.type_combinations;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), types) == allowed.end()) {
    std::string wanted;
    for (const DataType type : types) {
      wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", dataTypeToString(type));
    }
    std::string list;
    for (const auto& combination : allowed) {
      std::string one;
      for (const DataType type : combination) {
        one += fmt::format("{}{}", one.empty() ? "" : "/", dataTypeToString(type));
      }
      list += (list.empty() ? "" : ", ") + one;
    }
    fail(where,
         fmt::format("{} has no instantiation for ({}); it has {}", descriptor.name, wanted, list));
  }
  return types;
}

ParamValue ConfigReader::valueOf(const toml::node& node, const std::string& key) const {
  if (const auto* b = node.as_boolean()) {
    return b->get();
  }
  if (const auto* i = node.as_integer()) {
    return i->get();
  }
  if (const auto* d = node.as_floating_point()) {
    return d->get();
  }
  if (const auto* s = node.as_string()) {
    return s->get();
  }
  fail(node.source(), fmt::format("{} must be a number, a text, true or false", key));
}

void ConfigReader::readParams(const toml::table& table,
                              const StageDescriptor& descriptor,
                              Stage& stage) const {
  for (const Param& param : stage.paramTable().rows()) {
    if (param.config_default) {
      setParam(stage, param, *param.config_default);
    }
  }
  if (descriptor.adjust_config_defaults != nullptr) {
    descriptor.adjust_config_defaults(
        stage, [&](std::string_view key) { return table.contains(key); },
        [&](std::string_view key) { return valueOf(*table.get(key), std::string(key)); });
  }
  for (const Param& param : stage.paramTable().rows()) {
    const toml::node* node = table.get(param.key);
    if (node == nullptr) {
      continue;
    }
    try {
      setParam(stage, param, valueOf(*node, std::string(param.key)));
    } catch (const InvalidArgument& e) {
      fail(node->source(), e.what());
    }
  }
}

std::vector<Link> ConfigReader::readInputs(const toml::table& table) const {
  std::vector<Link> links;
  const toml::node* node = table.get("inputs");
  if (node == nullptr) {
    return links;
  }
  if (!node->is_array()) {
    fail(node->source(), "inputs must be an array of { from = \"stage\", port = \"port\" }");
  }
  for (const toml::node& entry : *node->as_array()) {
    const toml::table* link = entry.as_table();
    if (link == nullptr || !link->contains("from") || !link->get("from")->is_string()) {
      fail(entry.source(), "an input needs from = \"stage name\"");
    }
    checkKeys(*link, {"from", "port"}, "an input");
    const toml::node* port = link->get("port");
    if (port != nullptr && !port->is_string()) {
      fail(port->source(), "port must be a text");
    }
    links.push_back({link->get("from")->value_or(std::string()),
                     port == nullptr ? "output" : port->value_or(std::string()),
                     placeOf(entry.source())});
  }
  return links;
}

LoadedStage ConfigReader::readStage(const toml::table& table) const {
  LoadedStage loaded;
  loaded.name = requireText(table, "name");
  const std::string type = requireText(table, "type");
  const StageDescriptor* descriptor = findStage(std::string_view(type));
  if (descriptor == nullptr) {
    std::vector<std::string_view> names;
    for (const StageDescriptor* d : allStages()) {
      names.push_back(d->name);
    }
    fail(table.get("type")->source(),
         fmt::format("unknown stage type '{}'; known are {}", type, fmt::join(names, ", ")));
  }
  std::vector<std::string> allowed = {"name", "type", "inputs"};
  for (const TypeKey& key : descriptor->type_keys) {
    allowed.emplace_back(key.key);
  }
  for (const Param& param : descriptor->params().rows()) {
    allowed.emplace_back(param.key);
  }
  checkKeys(table, allowed, fmt::format("stage '{}' ({})", loaded.name, descriptor->name));
  loaded.stage = descriptor->make(readTypes(table, *descriptor));
  FZ_ASSERT(loaded.stage != nullptr);
  readParams(table, *descriptor, *loaded.stage);
  loaded.inputs = readInputs(table);
  return loaded;
}

LoadedConfig ConfigReader::read(const std::string& text) {
  toml::table document;
  try {
    // The parser cannot report that memory ran out: it calls the text wrong, or ends the process.
    // So the memory it will need is asked for first; the name, which it would copy, it does not
    // get.
    requireMemory(kParserBytes + kParserBytesPerChar * text.size());
    document = toml::parse(text);
  } catch (const toml::parse_error& e) {
    fail(e.source(), std::string(e.description()));
  }
  checkKeys(document, {"pipeline", "stage"}, "the file");
  LoadedConfig config;
  if (const toml::node* node = document.get("pipeline")) {
    if (!node->is_table()) {
      fail(node->source(), "pipeline must be a table: [pipeline]");
    }
    readPipeline(*node->as_table(), config);
  }
  const toml::node* stages = document.get("stage");
  if (stages == nullptr || !stages->is_array_of_tables()) {
    fail(stages == nullptr ? document.source() : stages->source(),
         "a pipeline needs at least one [[stage]]");
  }
  std::set<std::string> names;
  for (const toml::node& node : *stages->as_array()) {
    config.stages.push_back(readStage(*node.as_table()));
    if (!names.insert(config.stages.back().name).second) {
      fail(node.source(), fmt::format("two stages are named '{}'", config.stages.back().name));
    }
  }
  for (const LoadedStage& stage : config.stages) {
    for (const Link& link : stage.inputs) {
      if (names.count(link.from) == 0) {
        fail(link.where, fmt::format("stage '{}' reads from '{}', which is no stage of this file",
                                     stage.name, link.from));
      }
    }
  }
  return config;
}

}  // namespace

LoadedConfig readConfig(const std::string& text,
                        const std::string& source_name,
                        const ConfigOverrides& overrides) {
  return ConfigReader(source_name, overrides).read(text);
}

}  // namespace fz
