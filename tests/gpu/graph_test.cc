#include <gtest/gtest.h>
#include <limits>

#include "coders/block_ans/block_ans_stage.h"
#include "coders/huffman/huffman_stage.h"
#include "fz/stage_descriptor.h"
#include "gpu/device_pipeline.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 60'000;
constexpr std::size_t kBytes = kValues * sizeof(float);

Field fieldOf(const std::vector<float>& values) {
  Field field{"wave", DataType::FLOAT32, {0, 1, 1}, {}};  // any length
  field.bytes.resize(byteCount(values));
  std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
  return field;
}

/// LorenzoQuant -> BlockANS on the codes.
void buildBlockAnsChain(Pipeline& pipeline) {
  auto* quantizer = addQuantizer(pipeline);
  auto* coder = pipeline.addStage<BlockAnsStage<std::uint16_t>>();
  coder->setMap(BlockAnsMap::None);
  pipeline.connect(coder, quantizer, "codes");
  pipeline.finalize();
}

/// Presets whose stages can all be captured.
class DeviceGraph : public OnDevice<testing::TestWithParam<std::string>> {
 protected:
  static void capture(Pipeline& pipeline, const std::string& preset, cudaStream_t stream) {
    pipeline.setBackend(Backend::CUDA);
    pipeline.enableGraphMode(true);
    loadPreset(pipeline, preset, fieldOf(wave(kValues)), "0.01");
    pipeline.finalize();
    pipeline.warmup(stream);
    pipeline.captureGraph(stream);
    EXPECT_TRUE(pipeline.isGraphCaptured());
  }
};

TEST_P(DeviceGraph, ReplaysWithOtherDataPointersAndSizesEqualTheCpu) {
  const DeviceStream stream;
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  capture(pipeline, GetParam(), stream);
  const DeviceBytesBuffer first(kBytes);
  const DeviceBytesBuffer second(kBytes);
  for (int i = 0; i < 12; ++i) {
    // Amplitude and roughness change, so that sizes and outlier counts do; a pointer serves twice.
    std::vector<float> values = wave(i == 7 ? kValues - 1234 : kValues, 1000.0 * i);
    for (std::size_t k = 0; k < values.size(); k += static_cast<std::size_t>(3 + i)) {
      values[k] *= static_cast<float>(i);
    }
    if (i % 4 == 3) {
      std::fill(values.begin(), values.end(), 1.0f);
    }
    const Field field = fieldOf(values);
    const DeviceBytesBuffer& input = (i / 2) % 2 == 0 ? first : second;
    input.put(field.bytes);
    const FrameBytes gpu = frameOnDevice(pipeline, input, field.bytes.size(), stream);
    const FrameBytes cpu = cpuFrame(GetParam(), field, "0.01");
    ASSERT_EQ(gpu.size(), cpu.size()) << "replay " << i;
    ASSERT_TRUE(gpu == cpu) << "replay " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Presets,
                         DeviceGraph,
                         testing::Values("cuszp",
                                         "cuszp2",
                                         "cuszp3",
                                         "cuszp3_fixed",
                                         "cuszp3_outlier",
                                         "fzgpu",
                                         "pfpl",
                                         "speed",
                                         "lorenzo_bitpack"),
                         [](const auto& param) { return param.param; });

/// Chains whose decoding can be captured: presets, and what no preset has.
class DeviceGraphDecode : public OnDevice<testing::TestWithParam<std::string>> {
 protected:
  static void build(Pipeline& pipeline) {
    if (GetParam() == "rle_chain") {
      buildRleChain(pipeline);
    } else if (GetParam() == "huffman_chain") {
      buildHuffmanChain(pipeline);
    } else if (GetParam() == "block_ans_chain") {
      buildBlockAnsChain(pipeline);
    } else {
      loadPreset(pipeline, GetParam(), fieldOf(wave(kValues)), "0.01");
      pipeline.finalize();
    }
  }
  static FrameBytes frameOnCpu(const std::vector<float>& values) {
    Pipeline pipeline;
    pipeline.setBackend(Backend::CPU);
    build(pipeline);
    return frameOf(pipeline, values);
  }
};

TEST_P(DeviceGraphDecode, CanBeCapturedAndReplayedOnOtherFrames) {
  const DeviceStream stream;
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  build(pipeline);
  const FrameBytes prime = frameOnCpu(wave(kValues));
  const DeviceBytesBuffer frame(2 * kBytes + (1 << 16));
  const DeviceBytesBuffer out(kBytes);
  frame.put(prime);
  void* ignored = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompress(frame.data(), prime.size(), &ignored, &n_bytes, stream);
  const DeviceBytesBuffer length(sizeof(std::uint64_t));
  const auto enqueue = [&] {
    pipeline.decompressAsync(frame.data(), frame.size(), out.data(), kBytes,
                             reinterpret_cast<std::uint64_t*>(length.data()), stream);
  };
  enqueue();  // takes the memory
  EXPECT_EQ(pipeline.finishAsync(stream), kBytes);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  FZ_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  enqueue();
  FZ_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  FZ_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 6; ++i) {
    std::vector<float> values = wave(kValues, 500.0 * i);
    for (std::size_t k = 0; k < values.size(); k += static_cast<std::size_t>(5 + i)) {
      values[k] *= static_cast<float>(1 + 3 * i);
    }
    const FrameBytes cpu = frameOnCpu(values);
    frame.put(cpu);
    FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, kBytes));
    FZ_CUDA_CHECK(cudaDeviceSynchronize());
    FZ_CUDA_CHECK(cudaGraphLaunch(exec, stream));
    ASSERT_EQ(pipeline.finishAsync(stream), kBytes);
    std::uint64_t announced = 0;
    FZ_CUDA_CHECK(cudaMemcpy(&announced, length.data(), sizeof(announced), cudaMemcpyDefault));
    EXPECT_EQ(announced, kBytes);
    Pipeline on_cpu;
    on_cpu.setBackend(Backend::CPU);
    ASSERT_TRUE(out.get(kBytes) == decoded<std::uint8_t>(on_cpu, cpu)) << "replay " << i;
  }
  // Damage is noticed in replays as well.
  for (const std::size_t at : {std::size_t{5}, std::size_t{90}, prime.size() - 9}) {
    FrameBytes damaged = prime;
    damaged[at] ^= 4;
    frame.put(damaged);
    FZ_CUDA_CHECK(cudaGraphLaunch(exec, stream));
    EXPECT_EQ(codeOf([&] { pipeline.finishAsync(stream); }), ErrorCode::kCorrupt) << at;
  }
  FZ_CUDA_CHECK(cudaGraphExecDestroy(exec));
  FZ_CUDA_CHECK(cudaGraphDestroy(graph));
}

INSTANTIATE_TEST_SUITE_P(Chains,
                         DeviceGraphDecode,
                         testing::Values("cuszp",
                                         "cuszp2",
                                         "cuszp3",
                                         "cuszp3_fixed",
                                         "cuszp3_outlier",
                                         "fzgpu",
                                         "pfpl",
                                         "speed",
                                         "lorenzo_bitpack",
                                         "cusz",
                                         "rle_chain",
                                         "huffman_chain",
                                         "block_ans_chain"),
                         [](const auto& param) { return param.param; });

class DeviceGraphRules : public OnDevice<> {};

TEST_F(DeviceGraphRules, BlockAnsReplaysWithOtherDataEqualTheCpu) {
  const DeviceStream stream;
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  pipeline.enableGraphMode(true);
  buildBlockAnsChain(pipeline);
  pipeline.warmup(stream);
  pipeline.captureGraph(stream);
  EXPECT_TRUE(pipeline.isGraphCaptured());
  Pipeline on_cpu;
  on_cpu.setBackend(Backend::CPU);
  buildBlockAnsChain(on_cpu);
  const DeviceBytesBuffer input(kBytes);
  for (int i = 0; i < 6; ++i) {
    std::vector<float> values = wave(kValues, 1000.0 * i);
    for (std::size_t k = 0; k < values.size(); k += static_cast<std::size_t>(3 + 2 * i)) {
      values[k] *= static_cast<float>(i % 4);
    }
    input.put(fieldOf(values).bytes);
    ASSERT_TRUE(frameOnDevice(pipeline, input, kBytes, stream) == frameOf(on_cpu, values))
        << "replay " << i;
  }
}

/// Small integers, as bytes of a type.
FrameBytes inputOf(DataType type, std::size_t n_bytes) {
  FrameBytes bytes(n_bytes);
  if (type == DataType::FLOAT32) {
    std::vector<float> values(n_bytes / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i / 7 % 5);  // differences of such floats are exact
    }
    std::memcpy(bytes.data(), values.data(), n_bytes);
    return bytes;
  }
  const std::size_t width = isKnown(type) ? getDataTypeSize(type) : 1;
  for (std::size_t i = 0; i < n_bytes / width; ++i) {
    bytes[i * width] = static_cast<std::uint8_t>(i / 7 % 5);
  }
  return bytes;
}

TEST_F(DeviceGraphRules, WhatTheRegistrySaysOfEachStageIsSo) {
  for (const StageDescriptor* descriptor : allStages()) {
    SCOPED_TRACE(descriptor->name);
    const std::vector<DataType> types = defaultTypes(*descriptor);
    const auto build = [&](Pipeline& pipeline, Backend backend) {
      pipeline.setBackend(backend);
      pipeline.enableGraphMode(backend == Backend::CUDA);
      pipeline.addStage(descriptor->make(types));
      pipeline.finalize();
    };
    const DeviceStream stream;
    Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
    if (!descriptor->graph_compatible_forward) {
      const auto refused = codeOf([&] {
        build(pipeline, Backend::CUDA);
        pipeline.captureGraph(stream);
      });
      EXPECT_TRUE(refused.has_value());
      EXPECT_FALSE(pipeline.isGraphCaptured());
      continue;
    }
    build(pipeline, Backend::CUDA);
    pipeline.warmup(stream);
    pipeline.captureGraph(stream);
    EXPECT_TRUE(pipeline.isGraphCaptured());
    const FrameBytes values = inputOf(types.empty() ? DataType::UINT8 : types.front(), kBytes);
    const DeviceBytesBuffer input(kBytes);
    input.put(values);
    const FrameBytes gpu = frameOnDevice(pipeline, input, values.size(), stream);
    Pipeline on_cpu(kBytes);
    build(on_cpu, Backend::CPU);
    const CompressedView cpu = on_cpu.compress(values.data(), values.size());
    const auto* const data = static_cast<const std::uint8_t*>(cpu.data);
    EXPECT_TRUE(gpu == FrameBytes(data, data + cpu.n_bytes));
  }
}

TEST_F(DeviceGraphRules, TheDefaultStreamIsRefused) {
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  pipeline.enableGraphMode(true);
  loadPreset(pipeline, "cuszp", fieldOf(wave(kValues)));
  pipeline.finalize();
  const Failure failure = failureOf([&] { pipeline.captureGraph(nullptr); });
  EXPECT_EQ(failure.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(failure.mentions("default stream")) << failure.message;
}

TEST_F(DeviceGraphRules, AFullNewSetOfOutliersGrowsTheBuffersAndTheGraph) {
  const DeviceStream stream;
  Pipeline pipeline(kBytes, MemoryStrategy::PREALLOCATE);
  pipeline.setBackend(Backend::CUDA);
  pipeline.enableGraphMode(true);
  auto* stage = pipeline.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(1e-3, 16));
  stage->setOutlierCapacity(0.001);
  pipeline.finalize();
  pipeline.warmup(stream);
  pipeline.captureGraph(stream);
  Pipeline cpu;
  cpu.setBackend(Backend::CPU);
  cpu.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(1e-3, 16))->setOutlierCapacity(0.001);
  cpu.finalize();
  for (int i = 0; i < 3; ++i) {
    std::vector<float> values = wave(kValues);
    for (std::size_t k = 0; k < values.size() && i == 1; k += 2) {
      values[k] *= 1e6f;
    }
    const Field field = fieldOf(values);
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    EXPECT_TRUE(frameOnDevice(pipeline, input, kBytes, stream) == frameOf(cpu, values))
        << "replay " << i;
  }
}

TEST_F(DeviceGraphRules, AsyncCompressionLeavesTheSizeOnTheDevice) {
  const DeviceStream stream;
  const Field field = fieldOf(wave(kValues));
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp", field);
  pipeline.finalize();
  const FrameBytes cpu = cpuFrame("cuszp", field);
  const DeviceBytesBuffer input{ByteView(field.bytes)};
  const DeviceBytesBuffer frame(pipeline.getMaxCompressedSize(kBytes));
  const DeviceBytesBuffer length(sizeof(std::uint64_t));
  for (int i = 0; i < 3; ++i) {
    pipeline.compressAsync(input.data(), kBytes, frame.data(), frame.size(),
                           reinterpret_cast<std::uint64_t*>(length.data()), stream);
    EXPECT_EQ(pipeline.finishAsync(stream), cpu.size());
    std::uint64_t n = 0;
    FZ_CUDA_CHECK(cudaMemcpy(&n, length.data(), sizeof(n), cudaMemcpyDefault));
    EXPECT_EQ(n, cpu.size());
    EXPECT_TRUE(frame.get(cpu.size()) == cpu);
  }
  EXPECT_EQ(codeOf([&] {
              pipeline.compressAsync(input.data(), kBytes, frame.data(), 2000, nullptr, stream);
            }),
            ErrorCode::kBufferTooSmall);
}

// Records keep their start values from call to call; no kind of call may leave others behind.
TEST_F(DeviceGraphRules, CallsOfAllKindsAndSizesTakeTurnsOnOnePipeline) {
  const DeviceStream stream;
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp2", fieldOf(wave(kValues)));
  pipeline.finalize();
  const DeviceBytesBuffer frame(pipeline.getMaxCompressedSize(kBytes));
  const DeviceBytesBuffer out(kBytes);
  for (int i = 0; i < 12; ++i) {
    SCOPED_TRACE("call " + std::to_string(i));
    std::vector<float> values = wave(i % 3 == 2 ? kValues - 777 : kValues, 100.0 * i);
    const Field field = fieldOf(values);
    const std::size_t n_bytes = field.bytes.size();
    const FrameBytes cpu = cpuFrame("cuszp2", field);
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    if (i % 4 == 1) {
      pipeline.compressAsync(input.data(), n_bytes, frame.data(), frame.size(), nullptr, stream);
      ASSERT_EQ(pipeline.finishAsync(stream), cpu.size());
      ASSERT_TRUE(frame.get(cpu.size()) == cpu);
    } else if (i % 4 == 3) {
      values[4321] = std::numeric_limits<float>::quiet_NaN();
      input.put(fieldOf(values).bytes);
      EXPECT_EQ(codeOf([&] { pipeline.compress(input.data(), n_bytes, stream); }),
                ErrorCode::kBoundViolation);
    } else {
      ASSERT_TRUE(frameOnDevice(pipeline, input, n_bytes, stream) == cpu);
      FrameBytes damaged = cpu;
      damaged[i % 8 == 0 ? 100 : damaged.size() - 1] ^= 1;
      const DeviceBytesBuffer broken{ByteView(damaged)};
      std::size_t n_out = 0;
      EXPECT_EQ(codeOf([&] {
                  pipeline.decompress(broken.data(), damaged.size(), out.data(), kBytes, &n_out,
                                      stream);
                }),
                ErrorCode::kCorrupt);
      const DeviceBytesBuffer stored{ByteView(cpu)};
      pipeline.decompress(stored.data(), cpu.size(), out.data(), kBytes, &n_out, stream);
      ASSERT_EQ(n_out, n_bytes);
    }
  }
}

// Marks of outliers are only set by a call, and taken away by the gathering of its lists.
TEST_F(DeviceGraphRules, OutliersOfOneCallLeaveNothingForTheNext) {
  const DeviceStream stream;
  for (const std::string preset : {"pfpl", "fzgpu"}) {
    Pipeline pipeline;
    pipeline.setBackend(Backend::CUDA);
    loadPreset(pipeline, preset, fieldOf(wave(kValues)));
    pipeline.finalize();
    Pipeline staged;
    staged.setBackend(Backend::CUDA);
    staged.setFusion(Fusion::Off);
    loadPreset(staged, preset, fieldOf(wave(kValues)));
    staged.finalize();
    const DeviceBytesBuffer frame(pipeline.getMaxCompressedSize(kBytes));
    const DeviceBytesBuffer out(kBytes);
    const DeviceBytesBuffer expected(kBytes);
    // Of how many values one is an outlier; 0: none is.
    for (const std::size_t every : {0u, 999u, 1u, 0u, 7u, 40'009u, 0u, 2u}) {
      const std::size_t n = every % 3 == 1 ? kValues - 4099 : kValues;
      SCOPED_TRACE(preset + ", every " + std::to_string(every));
      std::vector<float> values = wave(n, static_cast<double>(every));
      for (std::size_t i = 0; every != 0 && i < n; i += every) {
        values[i] = i % 2 == 0 ? 1e30f : std::numeric_limits<float>::quiet_NaN();
      }
      const Field field = fieldOf(values);
      const std::size_t n_bytes = field.bytes.size();
      const FrameBytes cpu = cpuFrame(preset, field);
      const DeviceBytesBuffer input{ByteView(field.bytes)};
      for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(frameOnDevice(pipeline, input, n_bytes, stream) == cpu) << "round " << round;
      }
      pipeline.compressAsync(input.data(), n_bytes, frame.data(), frame.size(), nullptr, stream);
      ASSERT_EQ(pipeline.finishAsync(stream), cpu.size());
      ASSERT_TRUE(frame.get(cpu.size()) == cpu);
      std::size_t n_out = 0;
      staged.decompress(frame.data(), cpu.size(), expected.data(), kBytes, &n_out, stream);
      pipeline.decompress(frame.data(), cpu.size(), out.data(), kBytes, &n_out, stream);
      ASSERT_EQ(n_out, n_bytes);
      ASSERT_TRUE(out.get(n_bytes) == expected.get(n_bytes));
    }
  }
}

TEST_F(DeviceGraphRules, AsyncCallsSayWhatTheyMiss) {
  const DeviceStream stream;
  const Field field = fieldOf(wave(kValues));
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp", field);
  pipeline.finalize();
  EXPECT_EQ(codeOf([&] { pipeline.finishAsync(stream); }), ErrorCode::kInvalidState);
  const DeviceBytesBuffer frame(kBytes);
  const DeviceBytesBuffer out(kBytes);
  const Failure failure = failureOf(
      [&] { pipeline.decompressAsync(frame.data(), kBytes, out.data(), kBytes, nullptr, stream); });
  EXPECT_EQ(failure.code, ErrorCode::kInvalidState);
  EXPECT_TRUE(failure.mentions("decompress() one frame")) << failure.message;
}

}  // namespace
}  // namespace fz::test
