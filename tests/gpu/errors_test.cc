#include <gtest/gtest.h>
#include <limits>

#include "fz/host_api.h"
#include "gpu/device_pipeline.h"
#include "log.h"

namespace fz::test {
namespace {

class DeviceErrors : public OnDevice<> {
 protected:
  Field field_ = smoothField(DataType::FLOAT32, {20'000, 1, 1});
};

TEST_F(DeviceErrors, WrongSidePointersAreNamed) {
  Pipeline gpu;
  gpu.setBackend(Backend::CUDA);
  loadPreset(gpu, "cuszp", field_);
  gpu.finalize();
  const Failure host = failureOf([&] { gpu.compress(field_.bytes.data(), field_.bytes.size()); });
  EXPECT_EQ(host.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(host.mentions("host memory")) << host.message;

  Pipeline cpu;
  cpu.setBackend(Backend::CPU);
  loadPreset(cpu, "cuszp", field_);
  cpu.finalize();
  const DeviceBytesBuffer input{ByteView(field_.bytes)};
  const Failure device = failureOf([&] { cpu.compress(input.data(), input.size()); });
  EXPECT_EQ(device.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(device.mentions("device memory")) << device.message;
  // Both still work.
  EXPECT_NO_THROW(gpu.compress(input.data(), input.size()));
  EXPECT_NO_THROW(cpu.compress(field_.bytes.data(), field_.bytes.size()));
}

TEST_F(DeviceErrors, AutoTakesTheDeviceUnlessTheEnvironmentSaysOtherwise) {
  Pipeline automatic;
  loadPreset(automatic, "cuszp", field_);
  automatic.finalize();
  EXPECT_EQ(automatic.getBackend(), Backend::CUDA);
  ::setenv("FZ_BACKEND", "cpu", 1);
  Pipeline on_cpu;
  loadPreset(on_cpu, "cuszp", field_);
  on_cpu.finalize();
  EXPECT_EQ(on_cpu.getBackend(), Backend::CPU);
  ::setenv("FZ_BACKEND", "tpu", 1);
  Pipeline nowhere;
  loadPreset(nowhere, "cuszp", field_);
  EXPECT_EQ(codeOf([&] { nowhere.finalize(); }), ErrorCode::kInvalidArgument);
  ::unsetenv("FZ_BACKEND");
}

TEST_F(DeviceErrors, TheCallersDeviceIsLeftAlone) {
  int before = -1;
  FZ_CUDA_CHECK(cudaGetDevice(&before));
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  int n_devices = 0;
  FZ_CUDA_CHECK(cudaGetDeviceCount(&n_devices));
  pipeline.setDevice(n_devices - 1);
  EXPECT_EQ(codeOf([&] { pipeline.setDevice(n_devices); }), ErrorCode::kNoDevice);
  EXPECT_EQ(codeOf([&] { pipeline.setDevice(-1); }), ErrorCode::kNoDevice);
  loadPreset(pipeline, "cuszp", field_);
  pipeline.finalize();
  EXPECT_EQ(pipeline.getDevice(), n_devices - 1);
  int after = -1;
  FZ_CUDA_CHECK(cudaGetDevice(&after));
  EXPECT_EQ(after, before);
}

std::string last_warning;  // NOLINT: the log's callback has no context

TEST_F(DeviceErrors, AnErrorThatTheCallerLeftBehindIsNotOurs) {
  const DeviceStream stream;
  const FrameBytes expected = cpuFrame("cuszp", field_);
  Pipeline pipeline(field_.bytes.size(), MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  pipeline.enableGraphMode(true);
  loadPreset(pipeline, "cuszp", field_);
  const DeviceBytesBuffer input{ByteView(field_.bytes)};
  const DeviceBytesBuffer out(field_.bytes.size());
  Logger::setCallback([](LogLevel level, const char* text) {
    last_warning = level == LogLevel::WARN ? text : last_warning;
  });
  // Each call must work after an error that nobody looked at, and say that it was there before.
  const auto afterAnError = [&](const char* name, auto call) {
    last_warning.clear();
    EXPECT_NE(cudaSetDevice(99), cudaSuccess);
    EXPECT_NO_THROW(call()) << name;
    EXPECT_NE(last_warning.find("cudaErrorInvalidDevice"), std::string::npos) << last_warning;
    EXPECT_NE(last_warning.find(std::string("was pending before Pipeline::") + name),
              std::string::npos)
        << last_warning;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << name;
  };
  afterAnError("finalize", [&] { pipeline.finalize(); });
  afterAnError("captureGraph", [&] { pipeline.captureGraph(stream); });
  CompressedView view;
  afterAnError("compress", [&] { view = pipeline.compress(input.data(), input.size(), stream); });
  EXPECT_TRUE(fromDevice(view.data, view.n_bytes) == expected);
  std::size_t n_bytes = 0;
  afterAnError("decompress", [&] {
    pipeline.decompress(view.data, view.n_bytes, out.data(), out.size(), &n_bytes, stream);
  });
  const DeviceBytesBuffer frame(pipeline.getMaxCompressedSize(input.size()));
  afterAnError("compressAsync", [&] {
    pipeline.compressAsync(input.data(), input.size(), frame.data(), frame.size(), nullptr, stream);
  });
  EXPECT_EQ(pipeline.finishAsync(stream), expected.size());
  afterAnError("decompressAsync", [&] {
    pipeline.decompressAsync(frame.data(), frame.size(), out.data(), out.size(), nullptr, stream);
  });
  EXPECT_EQ(pipeline.finishAsync(stream), out.size());
  Logger::setCallback(nullptr);
}

TEST_F(DeviceErrors, AViolatedBoundThrowsAsOnTheCpu) {
  std::vector<float> values = wave(5000);
  values[1234] = std::numeric_limits<float>::quiet_NaN();
  values[4000] = std::numeric_limits<float>::infinity();
  Field field = field_;
  field.dims = {values.size(), 1, 1};
  field.bytes.resize(byteCount(values));
  std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
  const Failure cpu = failureOf([&] { cpuFrame("cuszp", field); });
  Pipeline gpu;
  gpu.setBackend(Backend::CUDA);
  loadPreset(gpu, "cuszp", field);
  gpu.finalize();
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  const Failure device = failureOf([&] { gpu.compress(input.data(), input.size()); });
  EXPECT_EQ(device.code, ErrorCode::kBoundViolation);
  EXPECT_EQ(device.message, cpu.message);
  // The pipeline is usable afterwards.
  values[1234] = 0;
  values[4000] = 0;
  std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
  const DeviceBytesBuffer good{ByteView(field.bytes)};
  EXPECT_TRUE(frameOnDevice(gpu, good, good.size()) == cpuFrame("cuszp", field));
}

TEST_F(DeviceErrors, MemoryThatCannotBeHadIsATypedErrorAndThePipelineRecovers) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  FZ_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp", field_);
  pipeline.setDims(0);
  pipeline.finalize();
  const std::size_t large = std::size_t{8} << 30;
  {
    // Leave room for the input, but not for the buffers.
    const DeviceBytesBuffer input(large);
    FZ_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    const DeviceBytesBuffer hog(free_bytes - (std::size_t{1} << 30));
    const Failure failure = failureOf([&] { pipeline.compress(input.data(), large); });
    EXPECT_EQ(failure.code, ErrorCode::kOutOfMemory) << failure.message;
  }
  const DeviceBytesBuffer input{ByteView(field_.bytes)};
  EXPECT_TRUE(frameOnDevice(pipeline, input, input.size()) == cpuFrame("cuszp", field_));
}

TEST_F(DeviceErrors, TheFallbackPoolGivesTheSameBytes) {
  ::setenv("FZ_FORCE_MEMPOOL_FALLBACK", "1", 1);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "pfpl", field_);
  pipeline.finalize();
  ::unsetenv("FZ_FORCE_MEMPOOL_FALLBACK");
  EXPECT_TRUE(pipeline.isMemPoolFallbackMode());
  const DeviceBytesBuffer input{ByteView(field_.bytes)};
  EXPECT_TRUE(frameOnDevice(pipeline, input, input.size()) == cpuFrame("pfpl", field_));
}

TEST_F(DeviceErrors, HostArraysGoThroughTheDevice) {
  CompressOptions options;
  options.preset = "pfpl";
  options.error_bound = 1e-3;
  options.backend = Backend::CUDA;
  const std::span<const float> values(reinterpret_cast<const float*>(field_.bytes.data()),
                                      field_.valueCount());
  const Frame on_device = compress(values, options);
  options.backend = Backend::CPU;
  const Frame on_cpu = compress(values, options);
  EXPECT_TRUE(std::equal(on_device.bytes().begin(), on_device.bytes().end(), on_cpu.bytes().begin(),
                         on_cpu.bytes().end()));
  DecompressOptions decode_options;
  decode_options.backend = Backend::CUDA;
  const Array device_values = decompress(on_cpu, decode_options);
  decode_options.backend = Backend::CPU;
  const Array cpu_values = decompress(on_device, decode_options);
  EXPECT_TRUE(std::equal(device_values.bytes().begin(), device_values.bytes().end(),
                         cpu_values.bytes().begin(), cpu_values.bytes().end()));
}

TEST_F(DeviceErrors, DecodeLimitsHold) {
  const FrameBytes frame = cpuFrame("cusz", field_);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  DecodeLimits limits;
  limits.max_output_bytes = 100;
  pipeline.setDecodeLimits(limits);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  EXPECT_EQ(codeOf([&] { pipeline.decompressFrame(frame, &out, &n_bytes); }), ErrorCode::kLimit);
  limits.max_output_bytes = 0;
  limits.max_memory_bytes = 1000;
  pipeline.setDecodeLimits(limits);
  EXPECT_EQ(codeOf([&] { pipeline.decompressFrame(frame, &out, &n_bytes); }), ErrorCode::kLimit);
}

/// The smallest limit, to 256 bytes, with which a new pipeline decodes the frame.
std::size_t memoryNeeded(ByteView frame, Backend backend) {
  std::size_t too_small = 0;
  std::size_t enough = std::size_t{1} << 30;
  while (enough - too_small > 256) {
    const std::size_t limit = too_small + (enough - too_small) / 2;
    Pipeline pipeline;
    pipeline.setBackend(backend);
    pipeline.setDecodeLimits({.max_output_bytes = 0, .max_memory_bytes = limit});
    void* out = nullptr;
    std::size_t n_bytes = 0;
    const Failure failure = failureOf([&] { pipeline.decompressFrame(frame, &out, &n_bytes); });
    EXPECT_TRUE(!failure.code || failure.code == ErrorCode::kLimit) << failure.message;
    (failure.code ? too_small : enough) = limit;
  }
  return enough;
}

TEST_F(DeviceErrors, TheMemoryLimitCountsScratchAndTheFramesCopy) {
  const Field field = smoothField(DataType::FLOAT32, {400, 300, 1});
  for (const char* preset : {"cusz", "cuszp", "pfpl"}) {
    const FrameBytes frame = cpuFrame(preset, field);
    const DeviceBytesBuffer on_device{ByteView(frame)};
    const std::size_t from_device = memoryNeeded({on_device.data(), frame.size()}, Backend::CUDA);
    const std::size_t from_host = memoryNeeded(frame, Backend::CUDA);
    EXPECT_NEAR(static_cast<double>(from_host), static_cast<double>(from_device + frame.size()),
                512.0)
        << preset;
    // What the decoder took is what it was allowed to take, but for a few fixed blocks.
    Pipeline pipeline;
    pipeline.setBackend(Backend::CUDA);
    pipeline.setPoolManagedDecompOutput(false);
    const std::size_t before = pipeline.getMemoryPool().getCurrentUsage();
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompressFrame({on_device.data(), frame.size()}, &out, &n_bytes);
    FZ_CUDA_CHECK(cudaFree(out));
    EXPECT_LE(pipeline.getMemoryPool().getPeakUsage() - before, from_device + (64u << 10))
        << preset;
  }
}

}  // namespace
}  // namespace fz::test
