#include "gpu/device_lives.h"

#include "fz/backend_memory.h"
#include "fz/host_api.h"
#include "gpu/device_pipeline.h"

namespace fz::test {

namespace {

void append(std::vector<std::uint8_t>& all, const std::vector<std::uint8_t>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// Noise of which most values are outliers, so that buffers have to grow and runs are repeated.
Field roughField(std::size_t n_values) {
  Field field = smoothField(DataType::FLOAT32, {n_values, 1, 1});
  std::vector<float> values(n_values);
  std::uint32_t bits = 1;
  for (float& v : values) {
    bits = bits * 1664525u + 1013904223u;
    v = (static_cast<float>(bits >> 8) - 8e6f) * (bits % 7 == 0 ? 1e20f : 1e-3f);
  }
  std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
  return field;
}

struct Setting {
  std::string preset;
  Field field;
  MemoryStrategy strategy = MemoryStrategy::MINIMAL;
  bool profiled = false;
  bool with_fallback = false;  // to a lossless frame
  bool graph = false;
  std::string bound = "0.001";
};

void prepare(Pipeline& pipeline, const Setting& s, LifeSteps& steps) {
  pipeline.setBackend(Backend::CUDA);
  pipeline.setThreads(1);
  pipeline.setLosslessFallback(s.with_fallback);
  pipeline.enableProfiling(s.profiled);
  pipeline.enableGraphMode(s.graph);
  loadPreset(pipeline, s.preset, s.field, s.bound);
  steps.step("finalize", [&] { pipeline.finalize(); });
}

std::size_t hintOf(const Setting& s) {
  return s.strategy == MemoryStrategy::PREALLOCATE ? s.field.bytes.size() : 0;
}

void compressStep(Pipeline& pipeline,
                  const DeviceBytesBuffer& input,
                  cudaStream_t stream,
                  LifeSteps& steps) {
  steps.step("compress",
             [&] { append(steps.result(), frameOnDevice(pipeline, input, input.size(), stream)); });
}

void decompressStep(Pipeline& pipeline, cudaStream_t stream, LifeSteps& steps) {
  steps.step("decompress", [&] {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompress(nullptr, 0, &out, &n_bytes, stream);
    append(steps.result(), fromDevice(out, n_bytes));
  });
}

/// compress and decompress, twice, also from host memory and to memory of the caller's.
void waitingLife(const Setting& s, LifeSteps& steps) {
  const DeviceBytesBuffer input{ByteView(s.field.bytes)};
  const FrameBytes frame = cpuFrame(s.preset, s.field, s.bound);
  Pipeline pipeline(hintOf(s), s.strategy);
  prepare(pipeline, s, steps);
  compressStep(pipeline, input, nullptr, steps);
  decompressStep(pipeline, nullptr, steps);
  steps.step("decompressFrame", [&] {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompressFrame(frame, &out, &n_bytes);
    append(steps.result(), fromDevice(out, n_bytes));
  });
  pipeline.setPoolManagedDecompOutput(false);
  steps.step("decompress to the caller", [&] {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompress(nullptr, 0, &out, &n_bytes);
    const std::vector<std::uint8_t> bytes = fromDevice(out, n_bytes);
    FZ_CUDA_CHECK(cudaFree(out));
    append(steps.result(), bytes);
  });
  compressStep(pipeline, input, nullptr, steps);
}

/// Captured, replayed, and captured again for another input.
void graphLife(const Setting& s, LifeSteps& steps) {
  const DeviceStream stream;
  const DeviceBytesBuffer input{ByteView(s.field.bytes)};
  const DeviceBytesBuffer other{ByteView(s.field.bytes)};
  Pipeline pipeline(hintOf(s), s.strategy);
  prepare(pipeline, s, steps);
  steps.step("captureGraph", [&] { pipeline.captureGraph(stream); });
  for (const DeviceBytesBuffer* source : {&input, &input, &other}) {
    compressStep(pipeline, *source, stream, steps);
  }
  decompressStep(pipeline, stream, steps);
}

void asyncLife(const Setting& s, LifeSteps& steps) {
  const DeviceStream stream;
  const DeviceBytesBuffer input{ByteView(s.field.bytes)};
  Pipeline pipeline(hintOf(s), s.strategy);
  prepare(pipeline, s, steps);
  const DeviceBytesBuffer frame(pipeline.getMaxCompressedSize(input.size()));
  const DeviceBytesBuffer out(input.size());
  std::size_t n_frame = 0;
  const auto compressed = [&] {
    pipeline.compressAsync(input.data(), input.size(), frame.data(), frame.size(), nullptr, stream);
    n_frame = pipeline.finishAsync(stream);
    append(steps.result(), frame.get(n_frame));
  };
  steps.step("compressAsync", compressed);
  steps.step("decompress", [&] {
    std::size_t n_bytes = 0;
    pipeline.decompress(frame.data(), n_frame, out.data(), out.size(), &n_bytes, stream);
    append(steps.result(), out.get(n_bytes));
  });
  steps.step("decompressAsync", [&] {
    pipeline.decompressAsync(frame.data(), frame.size(), out.data(), out.size(), nullptr, stream);
    append(steps.result(), out.get(pipeline.finishAsync(stream)));
  });
  steps.step("compressAsync", compressed);
}

/// The calls for host arrays, which keep what they make until it is released.
void hostLife(const Setting& s, LifeSteps& steps) {
  struct Release {
    ~Release() { releaseDeviceMemory(); }
  } release;
  CompressOptions options;
  options.preset = s.preset;
  options.error_bound = std::stod(s.bound);
  options.dims = s.field.dims;
  options.backend = Backend::CUDA;
  options.threads = 1;
  FrameBytes frame;
  steps.step("fz::compress", [&] {
    const Frame made = compress(s.field.type, s.field.bytes, options);
    frame.assign(made.bytes().begin(), made.bytes().end());
  });
  append(steps.result(), frame);
  DecompressOptions back;
  back.backend = Backend::CUDA;
  back.threads = 1;
  steps.step("fz::decompress", [&] {
    const Array array = decompress(frame, back);
    steps.result().insert(steps.result().end(), array.bytes().begin(), array.bytes().end());
  });
  steps.step("BackendMemory", [&] {
    BackendMemory memory(Backend::CUDA, frame.size());
    memory.upload(frame);
    FrameBytes copy(frame.size());
    memory.download(copy);
    append(steps.result(), copy);
  });
}

/// cudaMalloc for every block, as on devices without stream-ordered pools.
void poollessLife(const Setting& s, LifeSteps& steps) {
  ::setenv("FZ_FORCE_MEMPOOL_FALLBACK", "1", 1);
  struct Unset {
    ~Unset() { ::unsetenv("FZ_FORCE_MEMPOOL_FALLBACK"); }
  } unset;
  waitingLife(s, steps);
}

template <class F>
Life makeLife(const std::string& kind, Setting setting, F live) {
  std::string name = kind + ", " + setting.preset + ", " + setting.field.name + " ";
  name += dataTypeToString(setting.field.type);
  return {std::move(name), [=](LifeSteps& steps) { live(setting, steps); }};
}

}  // namespace

std::vector<Life> allLives() {
  std::vector<Life> lives;
  const Field grid = smoothField(DataType::FLOAT32, {70, 30, 4});
  const Field line = smoothField(DataType::FLOAT64, {9000, 1, 1});
  constexpr auto kPlanned = MemoryStrategy::PREALLOCATE;
  constexpr auto kMinimal = MemoryStrategy::MINIMAL;
  for (const Preset& preset : allPresets()) {
    const std::string name(preset.name);
    for (const Field* field : {&grid, &line}) {
      lives.push_back(makeLife("minimal", {name, *field, kMinimal}, waitingLife));
    }
    lives.push_back(makeLife("planned", {name, grid, kPlanned}, waitingLife));
    if (name != "cusz") {  // Huffman's book is built on the host
      lives.push_back(makeLife("graph",
                               {.preset = name, .field = grid, .strategy = kPlanned, .graph = true},
                               graphLife));
    }
    lives.push_back(makeLife("async", {name, grid, kPlanned}, asyncLife));
  }
  for (const char* name : {"pfpl", "cusz", "cuszp"}) {
    lives.push_back(makeLife(
        "profiled", {.preset = name, .field = grid, .strategy = kMinimal, .profiled = true},
        waitingLife));
    lives.push_back(makeLife("host", {name, grid, kMinimal}, hostLife));
    lives.push_back(makeLife("no pool", {name, grid, kMinimal}, poollessLife));
  }
  const Field rough = roughField(5000);
  for (const char* name : {"pfpl", "cusz", "speed", "fzgpu", "lorenzo_bitpack"}) {
    for (const MemoryStrategy strategy : {kMinimal, kPlanned}) {
      lives.push_back(makeLife(
          strategy == kPlanned ? "rough, planned" : "rough, minimal",
          {.preset = name, .field = rough, .strategy = strategy, .bound = "1e-12"}, waitingLife));
    }
  }
  lives.push_back(makeLife("lossless fallback",
                           {.preset = "pfpl",
                            .field = rough,
                            .strategy = kMinimal,
                            .with_fallback = true,
                            .bound = "1e-12"},
                           [](const Setting& s, LifeSteps& steps) {
                             const DeviceBytesBuffer input{ByteView(s.field.bytes)};
                             Pipeline pipeline;
                             prepare(pipeline, s, steps);
                             compressStep(pipeline, input, nullptr, steps);
                             decompressStep(pipeline, nullptr, steps);
                             compressStep(pipeline, input, nullptr, steps);
                           }));
  return lives;
}

std::vector<Life> fewLives() {
  std::vector<Life> few;
  for (const Life& life : allLives()) {
    for (const char* kind : {"minimal, cusz,", "graph, pfpl,", "async, cuszp,", "host, pfpl,"}) {
      if (life.name.rfind(kind, 0) == 0 && life.name.find("float32") != std::string::npos) {
        few.push_back(life);
      }
    }
  }
  return few;
}

}  // namespace fz::test
