#include "json_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "archive/chunk_grid.h"
#include "fz/bound_kind.h"
#include "fz/recorded_params.h"
#include "options.h"
#include "preset_bounds.h"
#include "stage_traits.h"

namespace fz::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  // Names of files are bytes, not always UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json textJson(std::string_view text) {
  return std::string(text);
}

Json valueJson(const ParamValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json typesJson(const std::vector<DataType>& types) {
  Json list = Json::array();
  for (const DataType type : types) {
    list.push_back(textJson(dataTypeToString(type)));
  }
  return list;
}

Json boundJson(const std::optional<BoundInfo>& bound) {
  if (!bound) {
    return nullptr;
  }
  const std::optional<double> absolute = absoluteBound(*bound);
  return {{"mode", textJson(boundKindName(*bound))},
          {"requested", bound->requested},
          {"absolute", absolute ? Json(*absolute) : Json(nullptr)}};
}

Json missingJson(const std::optional<MissingInfo>& missing) {
  if (!missing) {
    return nullptr;
  }
  return {{"count", missing->n_missing}, {"filled", missing->n_filled}, {"fill", missing->fill}};
}

Json shapeJson(const AxisValues& extents) {
  return AxisValues(extents.rbegin(), extents.rend());
}

Json frameJson(const std::string& file, const FrameInfo& info) {
  Json json = {{"file", file},
               {"format", fmt::format("{}.{}", info.version_major, info.version_minor)},
               {"type", textJson(dataTypeToString(info.type))},
               {"ndim", info.ndim},
               {"dims", info.dims},
               {"shape", shapeJson(info.extents)},
               {"original_bytes", info.original_bytes},
               {"archive_bytes", info.frameBytes()},
               {"header_bytes", info.header_bytes},
               {"payload_bytes", info.payload_bytes},
               {"ratio", info.ratio()},
               {"bound", boundJson(info.bound)},
               {"lossless", info.lossless},
               {"fallback", info.isFallback()},
               {"missing", missingJson(info.missing)},
               {"chunks", nullptr},
               {"checksums", nullptr},
               {"stages", Json::array()},
               {"segments", Json::array()}};
  if (info.has_checksums) {
    json["checksums"] = {{"header", fmt::format("{:08x}", info.header_checksum)},
                         {"payload", fmt::format("{:08x}", info.payload_checksum)}};
  }
  for (const FrameStageInfo& stage : info.stages) {
    Json params = Json::object();
    for (const auto& [key, value] : recordedParams(stage)) {
      params[key] = valueJson(value);
    }
    json["stages"].push_back({{"id", stage.id},
                              {"version", stage.version},
                              {"name", stage.name},
                              {"types", typesJson(stage.types)},
                              {"params", params}});
  }
  for (const SegmentInfo& segment : info.segments) {
    json["segments"].push_back({{"stage", segment.stage},
                                {"port", segment.port},
                                {"type", textJson(dataTypeToString(segment.type))},
                                {"bytes", segment.n_bytes}});
  }
  return json;
}

Json chunksJson(const ArchiveInfo& archive) {
  return {{"count", archive.n_chunks},
          {"absent", archive.n_absent},
          {"shape", shapeJson(archive.chunk)}};
}

/// Of an archive the same keys, where they mean something.
Json namedJson(const NamedFrame& named) {
  Json json = frameJson(named.file, named.frame);
  if (named.archive) {
    const ArchiveInfo& archive = *named.archive;
    json["shape"] = shapeJson(archive.extents);
    json["dims"] = foldedDims(archive.extents);
    json["original_bytes"] = archive.original_bytes;
    json["archive_bytes"] = archive.archive_bytes;
    json["ratio"] = archive.ratio();
    json["bound"] = boundJson(archive.bound);
    json["chunks"] = chunksJson(archive);
    json["header_bytes"] = nullptr;
    json["payload_bytes"] = nullptr;
    json["checksums"] = nullptr;
    json["segments"] = Json::array();
  }
  return json;
}

std::string_view kindName(ParamKind kind) {
  switch (kind) {
    case ParamKind::kBool:
      return "bool";
    case ParamKind::kInt:
      return "int";
    case ParamKind::kReal:
      return "real";
    case ParamKind::kChoice:
      return "choice";
    case ParamKind::kText:
      return "text";
  }
  return "unknown";
}

Json paramJson(const Param& param) {
  Json json = {{"key", textJson(param.key)},
               {"kind", textJson(kindName(param.kind))},
               {"default", valueJson(param.default_value)},
               {"config_default", valueJson(param.config_default.value_or(param.default_value))}};
  if (param.kind == ParamKind::kInt || param.kind == ParamKind::kReal) {
    json["min"] = param.min;
    json["max"] = param.max;
  }
  json["choices"] = Json::array();
  for (const std::string_view choice : param.choices) {
    json["choices"].push_back(textJson(choice));
  }
  json["help"] = textJson(param.help);
  return json;
}

Json keptJson(const KeptCount& count) {
  return {{"values", count.n_values}, {"kept", count.n_kept}};
}

}  // namespace

std::string frameToJson(const NamedFrame& frame) {
  return dump(namedJson(frame));
}

std::string compressToJson(const NamedFrame& frame, const RunFacts& run) {
  Json json = namedJson(frame);
  json["output"] = run.output;
  json["pipeline"] = run.pipeline;
  json["seconds"] = run.seconds;
  return dump(json);
}

std::string arrayToJson(const ArrayFacts& facts) {
  const bool has_archive = facts.archive_bytes > 0;
  return dump({{"output", facts.output.empty() ? Json(nullptr) : Json(facts.output)},
               {"type", textJson(dataTypeToString(facts.type))},
               {"shape", shapeJson(facts.extents)},
               {"original_bytes", facts.original_bytes},
               {"archive_bytes", has_archive ? Json(facts.archive_bytes) : Json(nullptr)},
               {"ratio", has_archive ? Json(static_cast<double>(facts.original_bytes) /
                                            static_cast<double>(facts.archive_bytes))
                                     : Json(nullptr)},
               {"seconds", facts.seconds}});
}

std::string recoveryToJson(const std::string& output,
                           const Recovery& found,
                           const ArchiveInfo& archive,
                           double seconds) {
  return dump({{"output", output},
               {"type", textJson(dataTypeToString(archive.type))},
               {"shape", shapeJson(archive.extents)},
               {"original_bytes", archive.original_bytes},
               {"archive_bytes", archive.archive_bytes},
               {"ratio", archive.ratio()},
               {"bound", boundJson(archive.bound)},
               {"chunks", chunksJson(archive)},
               {"dropped_chunks", found.n_dropped},
               {"seconds", seconds}});
}

std::string stageToJson(const StageDescriptor& descriptor) {
  const StageDescriptor* const stage = &descriptor;
  Json json = {{"id", stage->id},
               {"name", textJson(stage->name)},
               {"category", textJson(stage->category)},
               {"summary", textJson(stage->summary)},
               {"aliases", Json::array()},
               {"type_keys", Json::array()},
               {"types", Json::array()},
               {"default_types", typesJson(defaultTypes(*stage))},
               {"ports", defaultPorts(*stage)},
               {"params", Json::array()}};
  const StageTraits traits = traitsOf(*stage);
  json["backends"] = traits.backends;
  json["graph_safe"] = {{"compress", traits.is_graph_safe_forward},
                        {"decompress", traits.is_graph_safe_inverse}};
  json["fusable"] = traits.is_fusable;
  json["fusion_part"] = traits.part;
  json["fusable_with"] = traits.fusable_with.empty() ? Json(nullptr) : Json(traits.fusable_with);
  for (const std::string_view alias : stage->aliases) {
    json["aliases"].push_back(textJson(alias));
  }
  for (const TypeKey& key : stage->type_keys) {
    json["type_keys"].push_back(textJson(key.key));
  }
  for (const std::vector<DataType>& types : stage->type_combinations) {
    json["types"].push_back(typesJson(types));
  }
  for (const Param& param : stage->params().rows()) {
    json["params"].push_back(paramJson(param));
  }
  return dump(json);
}

std::string presetToJson(const Preset& preset, bool is_by_purpose) {
  return dump({{"name", textJson(preset.name)},
               {"group", is_by_purpose ? "purpose" : "family"},
               {"summary", textJson(preset.summary)},
               {"bounds", boundsOf(preset)},
               {"toml", textJson(preset.toml)}});
}

std::string checkToJson(const std::string& archive,
                        const std::string& original,
                        const CheckReport& report) {
  Json json = {{"archive", archive},
               {"original", original},
               {"passed", report.passed()},
               {"rule", ruleText(report.rule)},
               {"values", report.n_values},
               {"violations", report.n_violations},
               {"first_violation", nullptr},
               {"max_error", report.stats.max_error},
               {"max_error_index", report.stats.max_error_index},
               {"max_relative_error", nullptr},
               {"max_relative_error_index", nullptr},
               {"value_range", report.stats.value_range},
               {"mse", report.stats.mse},
               {"nrmse", report.nrmse()},
               {"psnr", report.psnr()},
               {"special_mismatches", report.stats.n_special_mismatches},
               {"nan", keptJson(report.nan)},
               {"infinity", keptJson(report.infinity)},
               {"negative_zero", keptJson(report.negative_zero)},
               {"fill", keptJson(report.fill)}};
  if (report.n_finite > 0) {
    json["max_relative_error"] = report.max_relative;
    json["max_relative_error_index"] = report.max_relative_index;
  }
  if (!report.passed()) {
    json["first_violation"] = report.first_index;
  }
  return dump(json);
}

}  // namespace fz::cli
