#include <gtest/gtest.h>
#include <sstream>

#include "format/frame_header.h"
#include "gpu/device_pipeline.h"
#include "support/test_stages.h"

namespace fz::test {
namespace {

std::vector<std::string> presetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : allPresets()) {
    names.emplace_back(preset.name);
  }
  return names;
}

class DevicePreset : public OnDevice<testing::TestWithParam<std::string>> {
 protected:
  static std::vector<Field> fields() {
    std::vector<Field> all;
    if (isSmallRun()) {
      return {smoothField(DataType::FLOAT32, {5003, 1, 1}),
              smoothField(DataType::FLOAT64, {23, 17, 9})};
    }
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      all.push_back(smoothField(type, {100'003, 1, 1}));
      all.push_back(smoothField(type, {311, 203, 1}));
      all.push_back(smoothField(type, {67, 43, 29}));
      all.push_back(smoothField(type, {1, 1, 1}));
    }
    return all;
  }
};

TEST_P(DevicePreset, FramesAreThoseOfTheCpu) {
  for (const Field& field : fields()) {
    for (const char* bound : {"0.1", "0.001", "0.00001"}) {
      if (isSmallRun() && bound != std::string("0.001")) {
        continue;
      }
      for (const auto strategy : {MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE}) {
        SCOPED_TRACE(field.name + ", bound " + bound);
        const FrameBytes cpu = cpuFrame(GetParam(), field, bound);
        Pipeline pipeline(field.bytes.size(), strategy);
        pipeline.setBackend(Backend::CUDA);
        loadPreset(pipeline, GetParam(), field, bound);
        pipeline.finalize();
        const DeviceBytesBuffer input{ByteView(field.bytes)};
        for (int round = 0; round < 2; ++round) {
          const FrameBytes gpu = frameOnDevice(pipeline, input, field.bytes.size());
          ASSERT_EQ(gpu.size(), cpu.size());
          ASSERT_TRUE(gpu == cpu) << "first difference at "
                                  << std::mismatch(gpu.begin(), gpu.end(), cpu.begin()).first -
                                         gpu.begin();
        }
      }
    }
  }
}

TEST_P(DevicePreset, FramesDecodeToTheSameOnBothSides) {
  for (const Field& field : fields()) {
    SCOPED_TRACE(field.name);
    const FrameBytes frame = cpuFrame(GetParam(), field);
    Pipeline on_cpu;
    on_cpu.setBackend(Backend::CPU);
    const auto cpu = decoded<std::uint8_t>(on_cpu, frame);
    Pipeline pipeline;
    pipeline.setBackend(Backend::CUDA);
    loadPreset(pipeline, GetParam(), field);
    pipeline.finalize();
    const DeviceBytesBuffer on_device{ByteView(frame)};
    for (int round = 0; round < 2; ++round) {
      void* out = nullptr;
      std::size_t n_bytes = 0;
      pipeline.decompress(on_device.data(), on_device.size(), &out, &n_bytes);
      ASSERT_EQ(n_bytes, cpu.size());
      ASSERT_TRUE(fromDevice(out, n_bytes) == cpu);
    }
    // Into the caller's buffer, at any alignment, from a frame at any alignment.
    const DeviceBytesBuffer shifted(frame.size() + 4);
    shifted.put(frame, 4);
    const DeviceBytesBuffer result(cpu.size() + 8);
    std::size_t n_bytes = 0;
    pipeline.decompress(shifted.data() + 4, frame.size(), result.data() + 8, cpu.size(), &n_bytes);
    ASSERT_EQ(n_bytes, cpu.size());
    ASSERT_TRUE(fromDevice(result.data() + 8, n_bytes) == cpu);
  }
}

TEST_P(DevicePreset, EveryFlippedBitOfASmallFrameIsNoticed) {
  const Field field = smoothField(DataType::FLOAT32, {500, 1, 1});
  const FrameBytes frame = cpuFrame(GetParam(), field);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  DeviceBytesBuffer on_device{ByteView(frame)};
  for (std::size_t i = 0; i < frame.size(); i += 7) {
    FrameBytes damaged = frame;
    damaged[i] ^= static_cast<std::uint8_t>(1u << (i % 8));
    on_device.put(damaged);
    void* out = nullptr;
    std::size_t n_bytes = 0;
    const Failure failure = failureOf([&] {
      pipeline.decompressFrame({on_device.data(), frame.size()}, &out, &n_bytes);
    });
    ASSERT_TRUE(failure.code == ErrorCode::kCorrupt || failure.code == ErrorCode::kUnsupported)
        << "byte " << i << ": " << failure.message;
  }
  for (std::size_t n = 0; n < frame.size(); n += 13) {
    void* out = nullptr;
    std::size_t n_bytes = 0;
    ASSERT_EQ(codeOf([&] {
                pipeline.decompressFrame({on_device.data(), n}, &out, &n_bytes);
              }),
              ErrorCode::kCorrupt)
        << n << " bytes";
  }
}

TEST_P(DevicePreset, ADamagedFrameLeavesTheCallersBufferAlone) {
  const Field field = smoothField(DataType::FLOAT32, {30'000, 1, 1});
  const FrameBytes frame = cpuFrame(GetParam(), field);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, GetParam(), field);
  pipeline.finalize();
  const DeviceBytesBuffer on_device{ByteView(frame)};
  const DeviceBytesBuffer out(field.bytes.size());
  std::size_t n_bytes = 0;
  const auto decode = [&] {
    pipeline.decompress(on_device.data(), frame.size(), out.data(), out.size(), &n_bytes);
  };
  for (const std::size_t at :
       {frame.size() - 1, frame.size() - frame.size() / 8, std::size_t{80}}) {
    FrameBytes damaged = frame;
    damaged[at] ^= 16;
    on_device.put(damaged);
    FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, out.size()));
    EXPECT_EQ(codeOf(decode), ErrorCode::kCorrupt) << at;
    EXPECT_TRUE(out.get(out.size()) == FrameBytes(out.size(), 0xEE)) << "damage at " << at;
  }
  on_device.put(frame);
  EXPECT_NO_THROW(decode());
  EXPECT_EQ(n_bytes, out.size());
}

INSTANTIATE_TEST_SUITE_P(Presets,
                         DevicePreset,
                         testing::ValuesIn(presetNames()),
                         [](const auto& param) { return param.param; });

class DevicePipeline : public OnDevice<> {};

TEST_F(DevicePipeline, SizesAndPointersMayChangeFromCallToCall) {
  Pipeline cpu;
  cpu.setBackend(Backend::CPU);
  buildRleChain(cpu);
  Pipeline gpu;
  gpu.setBackend(Backend::CUDA);
  buildRleChain(gpu);
  for (const std::size_t n : {10'000u, 5'000u, 1u, 70'001u, 10'000u, 0u}) {
    const auto values = wave(n, static_cast<double>(n));
    // A pointer that is aligned for floats only.
    const DeviceBytesBuffer input(n * sizeof(float) + 4);
    FZ_CUDA_CHECK(
        cudaMemcpy(input.data() + 4, values.data(), n * sizeof(float), cudaMemcpyDefault));
    const CompressedView view = gpu.compress(input.data() + 4, n * sizeof(float));
    EXPECT_TRUE(fromDevice(view.data, view.n_bytes) == frameOf(cpu, values)) << n << " values";
  }
}

/// Entries of these lists are put into the output before the codes are decoded.
TEST_F(DevicePipeline, ADamagedFrameWithListsLeavesTheCallersBufferAlone) {
  for (const std::array<std::size_t, 3>& dims :
       {std::array<std::size_t, 3>{30'000, 1, 1}, {320, 90, 1}, {64, 30, 20}}) {
    Field field = smoothField(DataType::FLOAT32, dims);
    auto* values = reinterpret_cast<float*>(field.bytes.data());
    for (std::size_t i = 100; i < field.bytes.size() / sizeof(float); i += 501) {
      values[i] += 5000.0f;
    }
    const FrameBytes frame = cpuFrame("fzgpu", field, "1e-6");
    const FrameHeader header = readHeader(frame, frame.size());
    ASSERT_GT(header.buffers.size(), 1u);
    ASSERT_GT(header.buffers[1].data_size, 0u);
    Pipeline pipeline;
    pipeline.setBackend(Backend::CUDA);
    loadPreset(pipeline, "fzgpu", field, "1e-6");
    pipeline.finalize();
    FrameBytes damaged = frame;
    damaged[header.core.header_size + 40] ^= 1;
    const DeviceBytesBuffer on_device{ByteView(damaged)};
    const DeviceBytesBuffer out(field.bytes.size());
    FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, out.size()));
    std::size_t n_bytes = 0;
    const auto decode = [&] {
      pipeline.decompress(on_device.data(), frame.size(), out.data(), out.size(), &n_bytes);
    };
    FrameBytes first;
    // From the second on, kernels are launched in another way.
    for (int round = 0; round < 4; ++round) {
      EXPECT_EQ(codeOf(decode), ErrorCode::kCorrupt);
      EXPECT_TRUE(out.get(out.size()) == FrameBytes(out.size(), 0xEE))
          << dims[1] << ", " << dims[2] << ", round " << round;
      on_device.put(frame);
      ASSERT_NO_THROW(decode());
      const FrameBytes decoded = out.get(out.size());
      first = round == 0 ? decoded : first;
      EXPECT_TRUE(decoded == first) << "round " << round;
      on_device.put(damaged);
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, out.size()));
    }
  }
}

TEST_F(DevicePipeline, SmallOutlierReservesGrow) {
  std::vector<float> values(50'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 2 == 0 ? 1e9f * static_cast<float>(i) : 0.0f;
  }
  const auto build = [](Pipeline& pipeline, Backend backend) {
    pipeline.setBackend(backend);
    auto* stage = pipeline.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(1e-3, 16));
    stage->setOutlierCapacity(0.001);
    pipeline.finalize();
  };
  Pipeline cpu;
  build(cpu, Backend::CPU);
  Pipeline gpu;
  build(gpu, Backend::CUDA);
  const DeviceBytesBuffer input{
      ByteView(reinterpret_cast<const std::uint8_t*>(values.data()), byteCount(values))};
  EXPECT_TRUE(frameOnDevice(gpu, input, input.size()) == frameOf(cpu, values));
}

TEST_F(DevicePipeline, HeaderAndFileAreThoseOfTheCpu) {
  const Field field = smoothField(DataType::FLOAT32, {64, 64, 1});
  const FrameBytes cpu = cpuFrame("cusz", field);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cusz", field);
  pipeline.finalize();
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  pipeline.compress(input.data(), input.size());
  const TempFolder folder;
  const std::string path = folder.file("device.fzm");
  pipeline.writeToFile(path);
  EXPECT_EQ(readAll(path), cpu);
  EXPECT_EQ(pipeline.buildHeader().core.compressed_size,
            cpu.size() - pipeline.buildHeader().core.header_size);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompressFromFileInstance(path, &out, &n_bytes);
  Pipeline on_cpu;
  on_cpu.setBackend(Backend::CPU);
  EXPECT_EQ(fromDevice(out, n_bytes), decoded<std::uint8_t>(on_cpu, cpu));
}

TEST_F(DevicePipeline, CallerOwnedResultsAreFreedWithCudaFree) {
  const Field field = smoothField(DataType::FLOAT32, {5000, 1, 1});
  const FrameBytes frame = cpuFrame("cuszp", field);
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  pipeline.setPoolManagedDecompOutput(false);
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompressFrame(frame, &out, &n_bytes);
  EXPECT_EQ(n_bytes, field.bytes.size());
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(DevicePipeline, ProfilingGivesDeviceTimesPerStage) {
  const Field field = smoothField(DataType::FLOAT32, {1 << 20, 1, 1});
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp", field);
  pipeline.enableProfiling(true);
  pipeline.finalize();
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  pipeline.compress(input.data(), input.size());
  const PipelinePerfResult& perf = pipeline.getLastPerfResult();
  ASSERT_EQ(perf.stages.size(), 1u);  // one group
  EXPECT_NE(perf.stages.front().name.find(" + "), std::string::npos) << perf.stages.front().name;
  for (const StageTimingResult& row : perf.stages) {
    EXPECT_GT(row.elapsed_ms, 0.0f) << row.name;
    EXPECT_GT(row.input_bytes, 0u) << row.name;
    EXPECT_GT(row.output_bytes, 0u) << row.name;
  }
  EXPECT_GE(perf.host_elapsed_ms, perf.dag_elapsed_ms);
}

TEST_F(DevicePipeline, ProfilingGivesTheDeviceTimeOfTheWholeCall) {
  const Field field = smoothField(DataType::FLOAT32, {1 << 20, 1, 1});
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp", field);
  pipeline.enableProfiling(true);
  pipeline.finalize();
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  const PipelinePerfResult& perf = pipeline.getLastPerfResult();
  const auto expectWhole = [&](const char* what) {
    EXPECT_GT(perf.dag_elapsed_ms, 0.0f) << what;
    EXPECT_GE(perf.device_elapsed_ms, perf.dag_elapsed_ms) << what;
    EXPECT_GE(perf.host_elapsed_ms, perf.device_elapsed_ms) << what;
    std::ostringstream text;
    perf.print(text);
    EXPECT_NE(text.str().find("whole, on device"), std::string::npos) << text.str();
  };
  const CompressedView view = pipeline.compress(input.data(), input.size());
  expectWhole("compress");
  const DeviceBytesBuffer result(field.bytes.size() + 4);
  std::size_t n_bytes = 0;
  pipeline.decompress(view.data, view.n_bytes, result.data(), field.bytes.size(), &n_bytes);
  expectWhole("decompress");
  // An unaligned buffer costs a copy, which is part of the call.
  pipeline.decompress(view.data, view.n_bytes, result.data() + 4, field.bytes.size(), &n_bytes);
  expectWhole("decompress with a detour");
  pipeline.enableProfiling(false);
  const float before = perf.device_elapsed_ms;
  pipeline.compress(input.data(), input.size());
  EXPECT_EQ(perf.device_elapsed_ms, before);
}

TEST_F(DevicePipeline, FinalizeTakesTheMemoryOfTheFirstCall) {
  const Field field = smoothField(DataType::FLOAT32, {1 << 18, 1, 1});
  for (const std::string& preset : presetNames()) {
    Pipeline pipeline(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    loadPreset(pipeline, preset, field);
    pipeline.finalize();
    EXPECT_EQ(pipeline.getLastUncompressedSize(), 0u);
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    const MemoryPool& pool = pipeline.getMemoryPool();
    const std::size_t n_taken = pool.getSystemAllocationCount();
    const std::size_t n_blocks = pool.getAllocationCount();
    const CompressedView view = pipeline.compress(input.data(), input.size());
    EXPECT_EQ(pool.getSystemAllocationCount(), n_taken) << preset;
    EXPECT_EQ(pool.getAllocationCount(), n_blocks) << preset;
    EXPECT_TRUE(fromDevice(view.data, view.n_bytes) == cpuFrame(preset, field)) << preset;
  }
}

TEST_F(DevicePipeline, AnInputSizeThatTheStagesCannotTakeDoesNotSpoilFinalize) {
  Pipeline pipeline(1000 * sizeof(float) + 3, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  auto* stage = pipeline.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(1e-3, 16));
  stage->setDims({10, 20, 2});  // 400 values, not the 1000 of the hint
  pipeline.finalize();
  const std::vector<float> values = wave(400);
  const DeviceBytesBuffer input{
      ByteView(reinterpret_cast<const std::uint8_t*>(values.data()), byteCount(values))};
  EXPECT_NO_THROW(pipeline.compress(input.data(), input.size()));
}

TEST_F(DevicePipeline, TheSecondCallTakesNoMemory) {
  const Field field = smoothField(DataType::FLOAT32, {1 << 18, 1, 1});
  for (const std::string& preset : presetNames()) {
    Pipeline pipeline(field.bytes.size(), MemoryStrategy::PREALLOCATE);
    pipeline.setBackend(Backend::CUDA);
    loadPreset(pipeline, preset, field);
    pipeline.finalize();
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    void* out = nullptr;
    std::size_t n_bytes = 0;
    const auto once = [&] {
      const CompressedView view = pipeline.compress(input.data(), input.size());
      pipeline.decompress(view.data, view.n_bytes, &out, &n_bytes);
    };
    once();
    const std::size_t before = pipeline.getMemoryPool().getSystemAllocationCount();
    once();
    once();
    EXPECT_EQ(pipeline.getMemoryPool().getSystemAllocationCount(), before) << preset;
  }
}

}  // namespace
}  // namespace fz::test
