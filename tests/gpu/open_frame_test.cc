// What a pipeline knows of a frame, and of no other, from its header to its last checksum.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "gpu/device_pipeline.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"

namespace fz::test {
namespace {

class DeviceOpenFrame : public OnDevice<> {};

TEST_F(DeviceOpenFrame, OneThatWasRefusedDoesNotSpeakForTheNext) {
  const Field small = smoothField(DataType::FLOAT32, {1000, 1, 1});
  const FrameBytes good = cpuFrame("cuszp", small);
  const DeviceBytesBuffer good_frame{ByteView(good)};
  // Large, so that its checksum may still be under way when the next one is opened.
  const DeviceBytesBuffer noise(isSmallRun() ? 4u << 20 : 256u << 20);
  FrameBytes piece(4u << 20);
  std::mt19937_64 random(3);
  std::generate(piece.begin(), piece.end(), [&] { return static_cast<std::uint8_t>(random()); });
  for (std::size_t at = 0; at < noise.size(); at += piece.size()) {
    noise.put(piece, at);
  }
  Pipeline encoder;
  encoder.setBackend(Backend::CUDA);
  encoder.addStage<BitshuffleStage>();
  encoder.finalize();
  const CompressedView view = encoder.compress(noise.data(), noise.size());
  Pipeline decoder;
  decoder.setBackend(Backend::CUDA);
  for (int i = 0; i < 5; ++i) {
    DecodeLimits limits;
    limits.max_output_bytes = 1 << 16;
    decoder.setDecodeLimits(limits);
    FrameBytes values;
    const auto provide = [&](std::size_t n_bytes) -> void* {
      values.resize(n_bytes);
      return values.data();
    };
    const ByteView refused(static_cast<const std::uint8_t*>(view.data), view.n_bytes);
    EXPECT_EQ(codeOf([&] { decoder.decompressFrame(refused, provide); }), ErrorCode::kLimit);
    EXPECT_EQ(decoder.decompressFrame({good_frame.data(), good_frame.size()}, provide),
              small.bytes.size());
  }
}

TEST_F(DeviceOpenFrame, AsynchronousDecodingKnowsTheOneThatWasDecodedLast) {
  const Field first = smoothField(DataType::FLOAT32, {20'000, 1, 1});
  const DeviceBytesBuffer frame{ByteView(cpuFrame("cuszp2", first))};
  const DeviceBytesBuffer input{ByteView(first.bytes)};
  const DeviceBytesBuffer out(first.bytes.size());
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, "cuszp2", {"any", DataType::FLOAT32, {0, 1, 1}, {}});
  pipeline.finalize();
  void* values = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompress(frame.data(), frame.size(), &values, &n_bytes);
  const FrameBytes expected = fromDevice(values, n_bytes);
  // Another frame, of another length, whose header is asked for.
  pipeline.compress(input.data(), input.size() / 2);
  EXPECT_EQ(pipeline.buildHeader().core.uncompressed_size, input.size() / 2);
  pipeline.decompressAsync(frame.data(), frame.size(), out.data(), out.size(), nullptr, nullptr);
  EXPECT_EQ(pipeline.finishAsync(nullptr), out.size());
  EXPECT_EQ(out.get(out.size()), expected);
}

}  // namespace
}  // namespace fz::test
