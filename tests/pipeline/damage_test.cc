#include <gtest/gtest.h>

#include "fz/error.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "mem/scratch.h"
#include "support/fields.h"
#include "support/pipelines.h"
#include "support/test_stages.h"

// Every truncation and every flipped bit of a frame must be noticed.

namespace fz::test {
namespace {

Frame smallFrame(const Preset& preset) {
  const Field field = smoothField(DataType::FLOAT32, {16, 12, 1});
  CompressOptions options;
  options.preset = preset.name;
  options.config_toml = preset.toml;
  options.dims = field.dims;
  options.lossless_fallback = false;  // the preset's own frame, however small the field
  return compress(field.type, field.bytes, options);
}

/// Decodes with a million bytes of work memory.
class TakesScratch : public PassThroughStage {
 public:
  void execute(cudaStream_t stream,
               MemoryPool* pool,
               const std::vector<void*>& inputs,
               const std::vector<void*>& outputs,
               const std::vector<std::size_t>& sizes) override {
    if (inverse_) {
      scratch_.get<std::uint8_t>(pool, 1'000'000);
    }
    PassThroughStage::execute(stream, pool, inputs, outputs, sizes);
  }

 private:
  Scratch scratch_;
};

/// True when decoding ends in a typed error of the decoder.
bool isRejected(ByteView bytes) {
  DecompressOptions options;
  options.threads = 1;
  try {
    decompress(bytes, options);
  } catch (const Error& e) {
    return e.code() == ErrorCode::kCorrupt || e.code() == ErrorCode::kUnsupported;
  }
  return false;
}

TEST(Damage, EveryTruncationIsRejected) {
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    const Frame frame = smallFrame(preset);
    for (std::size_t n = 0; n < frame.size(); ++n) {
      ASSERT_TRUE(isRejected(frame.bytes().first(n))) << n << " of " << frame.size() << " bytes";
    }
  }
}

TEST(Damage, EveryFlippedBitIsRejected) {
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    const Frame frame = smallFrame(preset);
    std::vector<std::uint8_t> bytes(frame.bytes().begin(), frame.bytes().end());
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      ASSERT_TRUE(isRejected(bytes)) << "bit " << bit;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    }
  }
}

TEST(Damage, TrailingBytesAreRejected) {
  const Frame frame = smallFrame(*findPreset("pfpl"));
  std::vector<std::uint8_t> bytes(frame.bytes().begin(), frame.bytes().end());
  bytes.push_back(0);
  EXPECT_TRUE(isRejected(bytes));
}

TEST(Damage, LimitsAreKept) {
  const Frame frame = smallFrame(*findPreset("pfpl"));
  DecompressOptions options;
  options.limits.max_output_bytes = 100;
  try {
    decompress(frame, options);
    FAIL() << "the limit was ignored";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kLimit);
  }
  options.limits = {.max_output_bytes = 0, .max_memory_bytes = 64};
  // A preset whose stages are not fused: the others need no memory between stages.
  EXPECT_THROW(decompress(smallFrame(*findPreset("cusz")), options), Error);
}

TEST(Damage, TheMemoryLimitCountsWhatStagesKeep) {
  // One stage that writes straight into the output: what is left is its own work memory.
  Pipeline pipeline;
  pipeline.setBackend(Backend::CPU);
  pipeline.addStage<TakesScratch>();
  pipeline.finalize();
  const std::vector<float> values(1000, 1.0f);
  const FrameBytes frame = frameOf(pipeline, values);
  const auto decode = [&] { decoded<float>(pipeline, frame); };
  pipeline.setDecodeLimits({.max_output_bytes = 0, .max_memory_bytes = 500'000});
  const Failure failure = failureOf(decode);
  EXPECT_EQ(failure.code, ErrorCode::kLimit);
  EXPECT_TRUE(failure.mentions("scratch")) << failure.message;
  pipeline.setDecodeLimits({.max_output_bytes = 0, .max_memory_bytes = 2'000'000});
  EXPECT_NO_THROW(decode());
}

}  // namespace
}  // namespace fz::test
