#include <algorithm>
#include <map>
#include <new>
#include <tuple>

#include "config/toml_read.h"
#include "core/require.h"
#include "format/file_io.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

void applyOverrides(LoadedConfig& config, const ConfigOverrides& overrides) {
  for (const auto& [target, text] : overrides.params) {
    const std::size_t dot = target.rfind('.');
    const std::string key = dot == std::string::npos ? target : target.substr(dot + 1);
    const std::string name = dot == std::string::npos ? "" : target.substr(0, dot);
    const auto found =
        std::find_if(config.stages.begin(), config.stages.end(), [&](const LoadedStage& s) {
          return (name.empty() || s.name == name || s.stage->getName() == name) &&
                 s.stage->paramTable().find(key) != nullptr;
        });
    FZ_REQUIRE_ARG(found != config.stages.end(), "override '{}': no stage{} has a setting '{}'",
                   target, name.empty() ? "" : " '" + name + "'", key);
    setParamFromText(*found->stage, key, text);
  }
}

/// finalize(), with the file's name in front of whatever is wrong with the graph.
void finalizeLoaded(Pipeline& pipeline, const std::string& source_name) {
  try {
    pipeline.finalize();
  } catch (const Error& e) {
    detail::throwError(e.code(), fmt::format("{}: {}", source_name, e.what()));
  }
}

}  // namespace

void Pipeline::loadConfigText(const std::string& text,
                              const std::string& source_name,
                              const ConfigOverrides& overrides,
                              bool finalize_after) try {
  Impl& p = *impl_;
  p.requireNotFinalized("loadConfig");
  FZ_REQUIRE(p.entries.empty(), ErrorCode::kInvalidState,
             "Pipeline: loadConfig called on a pipeline that already has stages");
  LoadedConfig config = readConfig(text, source_name, overrides);
  applyOverrides(config, overrides);
  const auto settings = std::tuple(getMemoryStrategy(), p.frame_settings, p.hint_bytes,
                                   p.pool_multiplier, getNumStreams());
  try {
    if (config.strategy) {
      setMemoryStrategy(*config.strategy);
    }
    // What the program said already goes before what the file says.
    const bool has_dims = p.frame_settings.dims != std::array<std::size_t, 3>{0, 1, 1};
    if (overrides.dims != std::array<std::size_t, 3>{0, 0, 0}) {
      setDims(overrides.dims);
    } else if (config.dims && !has_dims) {
      setDims(*config.dims);
    }
    p.frame_settings.declared_type = overrides.input_type;
    p.hint_bytes = p.hint_bytes == 0 ? config.input_bytes.value_or(0) : p.hint_bytes;
    p.pool_multiplier =
        static_cast<float>(config.pool_multiplier.value_or(static_cast<double>(p.pool_multiplier)));
    setNumStreams(config.n_streams.value_or(getNumStreams()));
    std::map<std::string, Stage*> by_name;
    for (LoadedStage& loaded : config.stages) {
      by_name[loaded.name] = addStage(std::move(loaded.stage), loaded.name);
    }
    for (const LoadedStage& loaded : config.stages) {
      for (const Link& link : loaded.inputs) {
        try {
          connect(by_name.at(loaded.name), by_name.at(link.from), link.port);
        } catch (const Error& e) {
          detail::throwError(ErrorCode::kConfig,
                             fmt::format("{}:{}: {}", source_name, link.where.line, e.what()));
        }
      }
    }
    if (finalize_after) {
      finalizeLoaded(*this, source_name);
    }
  } catch (...) {
    p.removeStages();
    setMemoryStrategy(std::get<0>(settings));
    p.frame_settings = std::get<1>(settings);
    p.hint_bytes = std::get<2>(settings);
    p.pool_multiplier = std::get<3>(settings);
    setNumStreams(std::get<4>(settings));
    throw;
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::loadConfig(const std::string& path, const ConfigOverrides& overrides) try {
  const std::vector<std::uint8_t> bytes = readFile(path);
  loadConfigText(std::string(bytes.begin(), bytes.end()), path, overrides);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void Pipeline::loadConfig(const std::string& path) {
  loadConfig(path, ConfigOverrides{});
}

}  // namespace fz
