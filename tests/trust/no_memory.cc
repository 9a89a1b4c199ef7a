// R10: when memory runs out at any allocation, a call ends in Error(kOutOfMemory) or does without,
// loses nothing, and the object works again as soon as memory is there.
#include "trust/no_memory.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "support/fields.h"
#include "support/pipelines.h"
#include "trust/corpus.h"
#include "trust/heap.h"
#include "trust/trust.h"
#include "trust/workers.h"

namespace fz::trust {
namespace {

Bytes frameOf(Pipeline& pipeline, const std::vector<float>& values) {
  const CompressedView view = pipeline.compress(values.data(), test::byteCount(values));
  return copyOf(view.data, view.n_bytes);
}

std::shared_ptr<Pipeline> loaded(const Preset& preset,
                                 const test::Field& field,
                                 MemoryStrategy strategy) {
  auto pipeline = std::make_shared<Pipeline>(field.bytes.size(), strategy);
  ConfigOverrides overrides;
  overrides.input_type = field.type;
  overrides.dims = field.dims;
  pipeline->setBackend(Backend::CPU);
  pipeline->setThreads(1);
  pipeline->loadConfigText(std::string(preset.toml), std::string(preset.name), overrides);
  return pipeline;
}

CompressOptions optionsFor(const Preset& preset, const test::Field& field) {
  CompressOptions options;
  options.preset = preset.name;
  options.config_toml = preset.toml;
  options.dims = field.dims;
  options.backend = Backend::CPU;
  options.threads = 1;
  return options;
}

DecompressOptions oneThread() {
  DecompressOptions options;
  options.backend = Backend::CPU;
  options.threads = 1;
  return options;
}

void addPipelineScenarios(std::vector<Scenario>& all) {
  const test::Field field = test::smoothField(DataType::FLOAT32, {23, 11, 5});
  for (const Preset& preset : allPresets()) {
    for (const MemoryStrategy strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
      const std::string suffix = std::string(preset.name) +
                                 (strategy == MemoryStrategy::MINIMAL ? ", minimal" : ", planned");
      all.push_back({"compress " + suffix, [=, &preset] {
                       const auto pipeline = loaded(preset, field, strategy);
                       return [=]() -> Bytes {
                         const auto view =
                             pipeline->compress(field.bytes.data(), field.bytes.size());
                         return copyOf(view.data, view.n_bytes);
                       };
                     }});
      all.push_back({"decompress " + suffix, [=, &preset] {
                       const auto pipeline = loaded(preset, field, strategy);
                       const auto view = pipeline->compress(field.bytes.data(), field.bytes.size());
                       const Bytes frame = copyOf(view.data, view.n_bytes);
                       return [=]() -> Bytes {
                         void* out = nullptr;
                         std::size_t n_bytes = 0;
                         pipeline->decompress(frame.data(), frame.size(), &out, &n_bytes);
                         return copyOf(out, n_bytes);
                       };
                     }});
    }
  }
}

void addHostScenarios(std::vector<Scenario>& all) {
  const test::Field field = test::smoothField(DataType::FLOAT64, {19, 7, 3});
  for (const Preset& preset : allPresets()) {
    all.push_back({"host compress " + std::string(preset.name),
                   [=, &preset] {
                     return [field, options = optionsFor(preset, field)]() -> Bytes {
                       const Frame frame = compress(field.type, field.bytes, options);
                       return copyOf(frame.bytes().data(), frame.size());
                     };
                   },
                   true});
    all.push_back({"host decompress " + std::string(preset.name), [=, &preset] {
                     const Frame frame =
                         compress(field.type, field.bytes, optionsFor(preset, field));
                     return [=]() -> Bytes {
                       const Array array = decompress(frame, oneThread());
                       return copyOf(array.bytes().data(), array.bytes().size());
                     };
                   }});
  }
}

/// Noise under a bound that it cannot be quantised to: the frame is a lossless one.
void addFallbackScenarios(std::vector<Scenario>& all) {
  all.push_back({"compress, lossless instead of larger", [] {
                   const Preset& preset = *findPreset("pfpl");
                   test::Field field = test::smoothField(DataType::FLOAT32, {300, 1, 1});
                   std::uint32_t bits = 1;
                   for (std::uint8_t& byte : field.bytes) {
                     bits = bits * 1664525u + 1013904223u;
                     byte = static_cast<std::uint8_t>(bits >> 24);
                   }
                   const auto pipeline = loaded(preset, field, MemoryStrategy::MINIMAL);
                   pipeline->setLosslessFallback(true);
                   return [=]() -> Bytes {
                     const auto view = pipeline->compress(field.bytes.data(), field.bytes.size());
                     return copyOf(view.data, view.n_bytes);
                   };
                 }});
}

/// A frame of a pipeline whose finalize() is repeated where memory ran out.
Bytes finalizedAgain(const Preset& preset, const test::Field& field, MemoryStrategy strategy) {
  std::optional<heap::Pause> pause(std::in_place);
  Pipeline pipeline(field.bytes.size(), strategy);
  ConfigOverrides overrides;
  overrides.input_type = field.type;
  overrides.dims = field.dims;
  pipeline.setBackend(Backend::CPU);
  pipeline.setThreads(1);
  pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name), overrides, false);
  pause.reset();
  try {
    pipeline.finalize();
  } catch (const Error& e) {
    pause.emplace();
    if (e.code() != ErrorCode::kOutOfMemory) {
      throw;
    }
    pipeline.finalize();
  }
  pause.emplace();
  const auto view = pipeline.compress(field.bytes.data(), field.bytes.size());
  return copyOf(view.data, view.n_bytes);
}

void addBuildScenarios(std::vector<Scenario>& all) {
  for (std::size_t chain = 0; chain < std::size(test::kCodeChains); ++chain) {
    all.push_back({"build chain " + std::to_string(chain), [=] {
                     return [chain, values = test::wave(500)]() -> Bytes {
                       Pipeline pipeline;
                       pipeline.setBackend(Backend::CPU);
                       pipeline.setThreads(1);
                       test::kCodeChains[chain](pipeline);
                       return frameOf(pipeline, values);
                     };
                   }});
  }
  for (const MemoryStrategy strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
    for (const Preset& preset : allPresets()) {
      all.push_back({"finalize again, " + std::string(preset.name), [=, &preset] {
                       return
                           [=, &preset, field = test::smoothField(DataType::FLOAT32, {90, 7, 1})] {
                             return finalizedAgain(preset, field, strategy);
                           };
                     }});
    }
  }
  all.push_back({"save and load a configuration",
                 [] {
                   return [values = test::wave(200)]() -> Bytes {
                     Pipeline pipeline;
                     pipeline.setBackend(Backend::CPU);
                     test::buildLongChain(pipeline);
                     const std::string text = pipeline.saveConfigText();
                     Pipeline again;
                     again.setBackend(Backend::CPU);
                     again.setThreads(1);
                     again.loadConfigText(text, "saved");
                     return frameOf(again, values);
                   };
                 },
                 true});
  all.push_back({"inspect", [] {
                   const auto values = test::wave(300);
                   CompressOptions options;
                   options.error_bound = 1e-3;
                   options.threads = 1;
                   options.backend = Backend::CPU;
                   const Frame frame = compress(std::span<const float>(values), options);
                   return [=]() -> Bytes {
                     const FrameInfo info = inspect(frame);
                     const heap::Pause pause;
                     return Bytes(info.stages.size());
                   };
                 }});
}

void addFileScenarios(std::vector<Scenario>& all) {
  all.push_back({"write and read a file", [] {
                   const auto folder = std::make_shared<test::TempFolder>();
                   const auto values = test::wave(300);
                   CompressOptions options;
                   options.error_bound = 1e-3;
                   options.threads = 1;
                   options.backend = Backend::CPU;
                   const Frame frame = compress(std::span<const float>(values), options);
                   return [frame, folder, path = folder->file("a.fzm")]() -> Bytes {
                     frame.writeToFile(path);
                     const Frame back = Frame::readFromFile(path);
                     return copyOf(back.bytes().data(), back.size());
                   };
                 }});
  all.push_back(
      {"decompress a file", [] {
         const auto folder = std::make_shared<test::TempFolder>();
         const auto values = test::wave(300);
         CompressOptions options;
         options.error_bound = 1e-3;
         options.threads = 1;
         options.backend = Backend::CPU;
         compress(std::span<const float>(values), options).writeToFile(folder->file("a.fzm"));
         const auto pipeline = std::make_shared<Pipeline>();
         pipeline->setBackend(Backend::CPU);
         pipeline->setThreads(1);
         return [pipeline, folder, path = folder->file("a.fzm")]() -> Bytes {
           void* out = nullptr;
           std::size_t n_bytes = 0;
           pipeline->decompressFromFileInstance(path, &out, &n_bytes);
           return copyOf(out, n_bytes);
         };
       }});
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  addPipelineScenarios(all);
  addHostScenarios(all);
  addFallbackScenarios(all);
  addBuildScenarios(all);
  addFileScenarios(all);
  return all;
}

/// One call with the k-th allocation failing; true when that allocation was reached.
bool failOnce(const std::string& where,
              const std::function<Bytes()>& call,
              bool parses_toml,
              const Bytes& expected,
              std::uint64_t k,
              bool and_all_later,
              Report& report) {
  std::string wrong;
  heap::failAt(k, and_all_later);
  try {
    const Bytes result = call();
    heap::stopFailing();
    report.add("calls that did without");
    wrong = result == expected ? "" : "another result";
  } catch (const Error& e) {
    heap::stopFailing();
    report.add("typed errors");
    const bool is_named =
        e.code() == ErrorCode::kOutOfMemory || (parses_toml && e.code() == ErrorCode::kConfig);
    wrong = is_named ? "" : e.what();
  } catch (const std::bad_alloc&) {
    heap::stopFailing();
    wrong = "std::bad_alloc instead of a typed error";
  } catch (const std::exception& e) {
    heap::stopFailing();
    wrong = std::string("untyped ") + e.what();
  }
  const bool was_reached = heap::requestCount() > k;
  report.check(wrong.empty(), where + ": " + wrong);
  try {
    report.check(call() == expected, where + ": another result afterwards");
  } catch (const std::exception& e) {
    report.fail(where + ": does not work afterwards: " + e.what());
  }
  report.add("failing allocations");
  return was_reached;
}

void runScenario(const Scenario& scenario, bool and_all_later, Report& report) {
  constexpr std::uint64_t kMax = 20'000;
  if (scenario.parses_toml && and_all_later) {
    return;
  }
  const std::string name = scenario.name + (and_all_later ? ", for good" : ", once");
  Report mine;
  std::int64_t held_before = 0;
  // What is made once per process (tables, locales, names of counts) is there after the first
  // round.
  for (int round = 0; round < 2; ++round) {
    held_before = heap::heldBytes();
    const std::function<Bytes()> call = scenario.make();
    const Bytes expected = call();
    for (std::uint64_t k = 0; k < kMax && mine.failures().empty(); ++k) {
      if (!failOnce(name + ", allocation " + std::to_string(k), call, scenario.parses_toml,
                    expected, k, and_all_later, mine)) {
        break;
      }
    }
  }
  const std::int64_t lost_bytes = heap::heldBytes() - held_before;
  mine.check(lost_bytes == 0 || !mine.failures().empty(),
             name + ": " + std::to_string(lost_bytes) + " bytes lost");
  for (const auto& [what, n] : mine.counts()) {
    report.add(what, n);
  }
  for (const std::string& text : mine.failures()) {
    report.fail(text);
  }
  report.add("scenarios");
}

}  // namespace

Bytes copyOf(const void* data, std::size_t n_bytes) {
  const heap::Pause pause;
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  return bytes == nullptr ? Bytes{} : Bytes(bytes, bytes + n_bytes);
}

void runScenarios(const std::vector<Scenario>& all, const Settings& settings, Report& report) {
  if (!heap::canFail()) {
    return report.add("skipped: the heap belongs to a sanitizer");
  }
  constexpr int kSeconds = 120;
  runInProcesses(
      2 * all.size(), settings, report,
      [&](std::uint64_t trial, Report& mine) { runScenario(all[trial / 2], trial % 2 == 1, mine); },
      kSeconds);
  report.check(report.counts().count("typed errors") != 0, "no allocation failed");
}

namespace {

const RegisterGoal kNoMemory(
    "R10",
    "memory that runs out at any allocation is a typed error, nothing is lost, the next call works",
    [](const Settings& settings, Report& report) { runScenarios(scenarios(), settings, report); });

}  // namespace
}  // namespace fz::trust
