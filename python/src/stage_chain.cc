#include "stage_chain.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <memory>

#include "fz/error.h"
#include "fz/stage_descriptor.h"
#include "fz/stage_types.h"
#include "pipeline/compressor.h"
#include "stage/stage.h"

namespace fz::python {

namespace {

const StageDescriptor& descriptorOf(const StageRequest& request) {
  const StageDescriptor* descriptor = findStage(request.type);
  if (descriptor == nullptr) {
    std::vector<std::string_view> names;
    for (const StageDescriptor* stage : allStages()) {
      names.push_back(stage->name);
    }
    throw InvalidArgument(
        fmt::format("no stage '{}'; the stages are {}", request.type, fmt::join(names, ", ")));
  }
  return *descriptor;
}

/// What the request says of the stage's types, by type key.
std::vector<std::optional<DataType>> givenTypes(const StageDescriptor& descriptor,
                                                const StageRequest& request) {
  std::vector<std::optional<DataType>> given;
  for (const TypeKey& key : descriptor.type_keys) {
    const auto found = std::find_if(request.settings.begin(), request.settings.end(),
                                    [&](const auto& row) { return row.first == key.key; });
    if (found == request.settings.end()) {
      given.emplace_back();
      continue;
    }
    const std::string* text = std::get_if<std::string>(&found->second);
    const std::optional<DataType> type = text != nullptr ? dataTypeFromString(*text) : std::nullopt;
    if (!type) {
      throw InvalidArgument(fmt::format("{}: {} is not an element type", request.name, key.key));
    }
    given.push_back(type);
  }
  return given;
}

void applySettings(Stage& stage,
                   const StageDescriptor& descriptor,
                   const StageRequest& request,
                   DataType incoming) {
  // A configuration file means its own defaults where it leaves a key out, and so does Python.
  for (const Param& param : descriptor.params().rows()) {
    if (param.config_default) {
      setParam(stage, param, *param.config_default);
    }
  }
  const auto find = [&](std::string_view key) {
    return std::find_if(request.settings.begin(), request.settings.end(),
                        [&](const auto& row) { return row.first == key; });
  };
  if (descriptor.adjust_config_defaults != nullptr) {
    descriptor.adjust_config_defaults(
        stage, [&](std::string_view key) { return find(key) != request.settings.end(); },
        [&](std::string_view key) { return find(key)->second; });
  }
  for (const auto& [key, value] : request.settings) {
    const bool is_type_key = std::any_of(
        descriptor.type_keys.begin(), descriptor.type_keys.end(),
        [wanted = std::string_view(key)](const TypeKey& row) { return row.key == wanted; });
    if (!is_type_key) {
      setParam(stage, key, value);
    }
  }
  const bool has_width = find("element_width") != request.settings.end();
  if (!has_width && isKnown(incoming) && descriptor.params().find("element_width") != nullptr) {
    setParam(stage, "element_width", static_cast<std::int64_t>(getDataTypeSize(incoming)));
  }
}

struct Link {
  Stage* producer = nullptr;
  std::string port;
};

class Builder {
 public:
  Builder(Pipeline& pipeline, DataType input_type) : pipeline_(pipeline), input_type_(input_type) {}

  void add(const StageRequest& request) {
    const StageDescriptor& descriptor = descriptorOf(request);
    const std::vector<Link> links = linksOf(request);
    const DataType incoming = links.empty() ? input_type_ : typeAt(links.front());
    std::unique_ptr<Stage> stage = make(descriptor, request, incoming);
    Stage* const added = pipeline_.addStage(std::move(stage), request.name);
    for (const Link& link : links) {
      pipeline_.connect(added, link.producer, link.port);
    }
    if (!by_name_.emplace(request.name, added).second) {
      throw InvalidArgument(fmt::format("two stages are called '{}'", request.name));
    }
    last_ = added;
  }

 private:
  static DataType typeAt(const Link& link) {
    const int index = link.producer->getOutputIndex(link.port);
    return index < 0 ? DataType::UNKNOWN
                     : static_cast<DataType>(
                           link.producer->getOutputDataType(static_cast<std::size_t>(index)));
  }

  std::vector<Link> linksOf(const StageRequest& request) const {
    std::vector<Link> links;
    if (!request.inputs) {
      if (last_ != nullptr) {
        links.push_back({last_, last_->getOutputNames().front()});
      }
      return links;
    }
    for (const auto& [name, port] : *request.inputs) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) {
        throw InvalidArgument(fmt::format("{}: no stage '{}' comes before it", request.name, name));
      }
      links.push_back(
          {found->second, port.empty() ? found->second->getOutputNames().front() : port});
    }
    return links;
  }

  static std::unique_ptr<Stage> make(const StageDescriptor& descriptor,
                                     const StageRequest& request,
                                     DataType incoming) {
    for (const std::vector<DataType>& types :
         candidateTypes(descriptor, givenTypes(descriptor, request), incoming)) {
      std::unique_ptr<Stage> stage = descriptor.make(types);
      applySettings(*stage, descriptor, request, incoming);
      if (areConnectable(incoming, static_cast<DataType>(stage->getInputDataType(0)))) {
        return stage;
      }
    }
    throw Error(ErrorCode::kTypeMismatch,
                fmt::format("{}: {} takes no {} with these types; fz.stages() lists them",
                            request.name, descriptor.name, dataTypeToString(incoming)));
  }

  Pipeline& pipeline_;
  DataType input_type_;
  std::map<std::string, Stage*> by_name_;
  Stage* last_ = nullptr;
};

}  // namespace

std::string stagesToToml(const std::vector<StageRequest>& requests, DataType input_type) {
  if (requests.empty()) {
    throw InvalidArgument("a pipeline needs at least one stage");
  }
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);  // only built here, never run
  Builder builder(pipeline, input_type);
  for (const StageRequest& request : requests) {
    builder.add(request);
  }
  pipeline.finalize();
  return pipeline.saveConfigText();
}

}  // namespace fz::python
