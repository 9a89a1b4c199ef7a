// Arrays in host memory to frames.
#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>
#include <new>
#include <string_view>

#include "api/host_run.h"
#include "api/missing_values.h"
#include "api/result_memory.h"
#include "archive/chunk_frame.h"
#include "core/require.h"
#include "fz/presets.h"
#include "pipeline/pipeline_access.h"

namespace fz {

namespace {

ConfigOverrides overridesFor(DataType type, const CompressOptions& options) {
  ConfigOverrides overrides;
  overrides.input_type = type;
  overrides.dims = options.dims;
  if (options.error_bound) {
    overrides.params.emplace_back("error_bound", fmt::format("{}", *options.error_bound));
  }
  if (options.mode) {
    overrides.params.emplace_back("error_bound_mode", errorBoundModeName(*options.mode));
  }
  overrides.params.insert(overrides.params.end(), options.params.begin(), options.params.end());
  return overrides;
}

bool hasBound(const CompressOptions& options) {
  const auto isBound = [](const auto& setting) {
    return setting.first == "error_bound" || setting.first.ends_with(".error_bound");
  };
  return options.error_bound.has_value() ||
         std::any_of(options.params.begin(), options.params.end(), isBound);
}

/// What a preset may lose is for the caller to say.
void requireBound(const Preset& preset, const CompressOptions& options) {
  if (&preset == &losslessPreset()) {
    FZ_REQUIRE_ARG(!hasBound(options),
                   "preset 'lossless' keeps every bit and takes no bound; leave the bound out or "
                   "choose another preset");
    return;
  }
  FZ_REQUIRE_ARG(hasBound(options),
                 "preset '{}' needs an error bound, and any default would be a guess; set "
                 "error_bound and mode, or the preset 'lossless' to keep every bit",
                 preset.name);
}

/// Not finalized.
void loadPipeline(Pipeline& pipeline, DataType type, const CompressOptions& options) {
  ConfigOverrides overrides = overridesFor(type, options);
  if (!options.config_toml.empty()) {
    pipeline.loadConfigText(options.config_toml, options.preset, overrides, false);
    return;
  }
  const Preset* preset =
      options.preset.empty() ? &defaultPreset(options.mode) : findPreset(options.preset);
  if (preset == nullptr) {
    std::string names;
    for (const Preset& known : allPresets()) {
      names += fmt::format("{}, ", known.name);
    }
    detail::throwInvalidArgument(fmt::format("no preset '{}'; the presets are {}{}", options.preset,
                                             names, losslessPreset().name));
  }
  requireBound(*preset, options);
  if (preset == &losslessPreset() && isKnown(type)) {
    overrides.params.insert(overrides.params.begin(),
                            {"element_width", fmt::format("{}", getDataTypeSize(type))});
  }
  pipeline.loadConfigText(std::string(preset->toml), std::string(preset->name), overrides, false);
}

/// With the dims that follow from extents, where those are given.
CompressOptions withDims(const CompressOptions& options) {
  CompressOptions made = options;
  if (options.extents) {
    FZ_REQUIRE_ARG(options.extents->size() <= kMaxAxes,
                   "compress: {} axes; at most {} are possible", options.extents->size(), kMaxAxes);
    // Dims of no values at all would be none.
    made.dims = valueCount(*options.extents) > 0 ? foldedDims(*options.extents)
                                                 : std::array<std::size_t, 3>{0, 1, 1};
  }
  return made;
}

void loadWithSettings(Pipeline& pipeline, DataType type, const CompressOptions& options) {
  pipeline.setBackend(options.backend);
  pipeline.setThreads(options.threads);
  pipeline.setMemoryLimit(options.max_memory_bytes);
  pipeline.setProgress(options.progress);
  pipeline.setLosslessFallback(options.lossless_fallback);
  loadPipeline(pipeline, type, options);
}

std::string_view environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : text;
}

/// Everything that a pipeline without a mask depends on.
std::string keyOf(DataType type, const CompressOptions& options, Fusion fusion) {
  std::string key =
      fmt::format("compress {} {} {} {} {} {} {} {} {} {} {} {}|", static_cast<int>(type),
                  static_cast<int>(fusion), static_cast<int>(options.backend), options.threads,
                  options.max_memory_bytes, options.lossless_fallback, fmt::join(options.dims, ","),
                  options.error_bound ? fmt::format("{}", *options.error_bound) : "-",
                  options.mode ? static_cast<int>(*options.mode) : -1, environment("FZ_BACKEND"),
                  environment("FZ_FUSION"), options.preset);
  for (const auto& [name, value] : options.params) {
    key += fmt::format("{}={}|", name, value);
  }
  return key + options.config_toml;
}

/// What a run on the CPU made, in memory of its own.
Frame copyOf(const CompressedView& view) {
  const auto* data = static_cast<const std::uint8_t*>(view.data);
  return Frame(std::vector<std::uint8_t>(data, data + view.n_bytes));
}

}  // namespace

void loadUnfinalized(Pipeline& pipeline, DataType type, const CompressOptions& options) {
  loadWithSettings(pipeline, type, withDims(options));
}

void configure(Pipeline& pipeline, DataType type, const CompressOptions& options) try {
  loadUnfinalized(pipeline, type, options);
  pipeline.finalize();
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

HostCompression::HostCompression(DataType type,
                                 ByteView values,
                                 const CompressOptions& options,
                                 Fusion fusion,
                                 OwnPipelines* own) try
    : type_(type), values_(values), options_(withDims(options)), fusion_(fusion), own_(own) {
  chooseBackend();
  build(hasMissingInSample(type, values, options.fill));
  if (is_masked_ || !can_be_masked_ || options.fill.empty()) {
    return;
  }
  if (current().getBackend() == Backend::CPU) {
    watch_ = std::make_unique<MissingWatch>(type, options.fill);
  } else if (hasAnyMissing(type, values, options.fill)) {
    build(true);
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

HostCompression::~HostCompression() = default;

void HostCompression::chooseBackend() {
  if (options_.backend != Backend::Auto) {
    why_there_ = "asked for";
    return;
  }
  const Preset* const preset =
      options_.config_toml.empty()
          ? (options_.preset.empty() ? &defaultPreset(options_.mode) : findPreset(options_.preset))
          : nullptr;
  const std::string_view text =
      preset != nullptr ? preset->toml : std::string_view(options_.config_toml);
  const BackendChoice choice =
      chooseToCompress({values_.size(), options_.threads, chainCostOf(text)});
  options_.backend = choice.backend;
  why_there_ = choice.reason;
}

/// A kept pipeline, or a new one; without a mask, or with one that is set so.
std::unique_ptr<KeptPipeline> HostCompression::makePipeline(const MaskSettings* mask) const {
  std::string key = keyOf(type_, options_, fusion_);
  if (mask != nullptr) {
    key += fmt::format("|mask {} {} {}", fmt::join(mask->hold, ","), mask->value_base,
                       fmt::join(options_.fill, ","));
  }
  auto made = std::make_unique<KeptPipeline>(std::move(key), options_.backend, own_);
  if (made->get() != nullptr) {
    made->get()->setProgress(options_.progress);
    return made;
  }
  auto pipeline = std::make_shared<Pipeline>();
  if (fusion_ == Fusion::Off) {
    pipeline->setFusion(Fusion::Off);
  }
  loadWithSettings(*pipeline, type_, options_);
  if (mask != nullptr) {
    addMask(*pipeline, type_, options_.fill, *mask);
  }
  pipeline->finalize();
  made->put(std::move(pipeline));
  return made;
}

void HostCompression::build(bool masked) {
  kept_ = makePipeline(nullptr);
  can_be_masked_ = canBeMasked(current(), type_);
  is_masked_ = masked && can_be_masked_;
  if (is_masked_) {
    const MaskSettings mask = maskSettingsFor(current(), type_, values_, options_.fill);
    kept_->keep();  // the next field with gaps asks it the same
    kept_ = makePipeline(&mask);
  }
}

std::size_t HostCompression::estimateMemory() const try {
  return current().estimateMemory(values_.size());
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

Frame HostCompression::runOnDevice() {
  Pipeline& pipeline = current();
  const cudaStream_t stream = PipelineAccess::ownStream(pipeline);
  const void* const input = PipelineAccess::upload(pipeline, values_, stream);
  const CompressedView view = pipeline.compress(input, values_.size(), stream);
  requireSoundRange(pipeline, values_, options_);
  const std::shared_ptr<std::uint8_t> bytes = makeResultMemory(view.n_bytes);
  PipelineAccess::copyAndWait(pipeline, bytes.get(), view.data, view.n_bytes, stream);
  if (!is_handed_out_ && !keeps_pipeline_) {
    kept_->keep();
  }
  return Frame(bytes, {bytes.get(), view.n_bytes});
}

Frame HostCompression::runOnce() {
  Pipeline& pipeline = current();
  if (pipeline.getBackend() == Backend::CUDA) {
    return runOnDevice();
  }
  if (watch_ != nullptr) {
    watch_->reset();
  }
  const WatchScope scope(pipeline, is_masked_ ? nullptr : watch_.get());
  const CompressedView view = pipeline.compress(values_.data(), values_.size());
  requireSoundRange(pipeline, values_, options_);
  pipeline.setProgress(nullptr);
  if (own_ != nullptr) {
    Frame frame = copyOf(view);
    kept_->keep();
    return frame;
  }
  if (keeps_pipeline_ || pipeline.isLastFrameFallback()) {
    return copyOf(view);  // a fallback stands in memory that was made for a larger one
  }
  // The frame stays where it is, and the pipeline with it, less the memory of its other buffers.
  pipeline.reset();
  pipeline.getMemoryPool().trim();
  return Frame(kept_->shared(), {static_cast<const std::uint8_t*>(view.data), view.n_bytes});
}

Frame HostCompression::shaped(const Frame& frame) const {
  return options_.extents ? withShape(frame, *options_.extents) : frame;
}

Frame HostCompression::run() try {
  try {
    return shaped(runOnce());
  } catch (const Error& error) {
    // Few missing values hide from the sample, but not from a watch, nor from stages that cannot
    // store them.
    const bool is_refused = error.code() == ErrorCode::kBoundViolation;
    if (!is_refused || is_masked_ || !can_be_masked_ ||
        !hasAnyMissing(type_, values_, options_.fill)) {
      throw;
    }
  }
  build(true);
  return shaped(runOnce());
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

void requireSoundRange(Pipeline& pipeline, ByteView values, const CompressOptions& options) {
  if (options.suspect_fill) {
    pipeline.requireRangeWithoutFill(values, options.fill);
  }
}

Frame compress(DataType type, ByteView bytes, const CompressOptions& options) {
  return HostCompression(type, bytes, options).run();
}

std::size_t estimateMemory(DataType type, std::size_t n_bytes, const CompressOptions& options) try {
  Pipeline pipeline;
  configure(pipeline, type, options);
  return pipeline.estimateMemory(n_bytes);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::size_t compressBound(DataType type, std::size_t n_bytes, const CompressOptions& options) try {
  Pipeline pipeline;
  loadWithSettings(pipeline, type, withDims(options));
  if (canBeMasked(pipeline, type)) {
    addMask(pipeline, type, options.fill, {});  // with a mask there is more to store
  }
  pipeline.finalize();
  return pipeline.getMaxCompressedSize(n_bytes);
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
