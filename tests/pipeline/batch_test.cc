#include "fz/batch.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "fz/presets.h"
#include "fz/progress.h"

// A batch gives every field what a call for that field alone gives it.

namespace fz::test {
namespace {

template <class T>
std::vector<T> smoothField(std::size_t n, double scale) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(i);
    values[i] = static_cast<T>(scale * (std::sin(x / 70) + 0.3 * std::cos(x / 11)));
  }
  return values;
}

/// Fields of every kind: smooth, constant, with gaps that a sample shows and with one that it does
/// not, noise that is kept without loss, nothing but zeros, a single value.
template <class T>
std::vector<std::vector<T>> fieldsOfAllKinds() {
  std::vector<std::vector<T>> fields;
  for (const double scale : {1.0, 250.0, 1e-3}) {
    fields.push_back(smoothField<T>(6144, scale));
  }
  fields.emplace_back(6144, T{3});
  fields.push_back(smoothField<T>(6144, 40.0));
  for (std::size_t i = 0; i < 6144; i += 3) {
    fields.back()[i] = std::numeric_limits<T>::quiet_NaN();
  }
  fields.push_back(smoothField<T>(6144, 40.0));
  fields.back()[4567] = std::numeric_limits<T>::infinity();
  std::vector<T> noise(6144);
  std::uint64_t state = 1;
  for (T& value : noise) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<T>(std::ldexp(1.0 + static_cast<double>(state >> 40),
                                      static_cast<int>(state >> 33 & 63) - 40));
  }
  fields.push_back(std::move(noise));
  fields.emplace_back(6144, T{0});
  return fields;
}

template <class T>
ByteView bytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<BatchField> batchOf(const std::vector<std::vector<T>>& fields) {
  std::vector<BatchField> batch;
  batch.reserve(fields.size());
  for (const std::vector<T>& field : fields) {
    batch.push_back({kDataTypeOf<T>, bytesOf(field), std::nullopt});
  }
  return batch;
}

std::vector<std::uint8_t> copyOf(ByteView bytes) {
  return {bytes.begin(), bytes.end()};
}

/// What compress() alone makes of each field; nothing where it throws.
void expectWhatEachGetsAlone(std::span<const BatchField> batch,
                             const CompressOptions& options,
                             const std::vector<BatchResult<Frame>>& made) {
  ASSERT_EQ(made.size(), batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    SCOPED_TRACE(i);
    CompressOptions alone = options;
    if (batch[i].extents) {
      alone.extents = batch[i].extents;
    }
    try {
      const Frame frame = compress(batch[i].type, batch[i].bytes, alone);
      ASSERT_TRUE(made[i].isDone());
      EXPECT_EQ(copyOf(made[i].value.bytes()), copyOf(frame.bytes()));
    } catch (const Error& error) {
      ASSERT_FALSE(made[i].isDone());
      EXPECT_EQ(errorCodeOf(made[i].error), error.code());
      EXPECT_THROW(made[i].get(), Error);
    }
  }
}

CompressOptions optionsWith(std::string_view preset, ErrorBoundMode mode, std::size_t threads) {
  CompressOptions options;
  options.preset = preset;
  options.error_bound = 1e-3;
  options.mode = mode;
  options.dims = {64, 32, 3};
  options.threads = threads;
  options.backend = Backend::CPU;
  return options;
}

template <class T>
void expectTheFramesOfEveryPreset() {
  const auto fields = fieldsOfAllKinds<T>();
  const auto batch = batchOf(fields);
  for (const Preset& preset : allPresets()) {
    for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
      SCOPED_TRACE(std::string(preset.name) + " " + std::string(errorBoundModeName(mode)));
      const CompressOptions options = optionsWith(preset.name, mode, 3);
      expectWhatEachGetsAlone(batch, options, compressBatch(batch, options));
    }
  }
}

TEST(Batches, HaveTheFramesOfSingleCallsForFloats) {
  expectTheFramesOfEveryPreset<float>();
}

TEST(Batches, HaveTheFramesOfSingleCallsForDoubles) {
  expectTheFramesOfEveryPreset<double>();
}

TEST(Batches, HaveTheSameFramesWithAnyNumberOfThreads) {
  const auto fields = fieldsOfAllKinds<float>();
  const auto batch = batchOf(fields);
  for (const std::size_t threads : {1, 2, 5, 8, 20}) {
    SCOPED_TRACE(threads);
    const CompressOptions options = optionsWith("pfpl", ErrorBoundMode::NOA, threads);
    expectWhatEachGetsAlone(batch, options, compressBatch(batch, options));
  }
}

TEST(Batches, TakeFieldsOfAnyShapeAndType) {
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<double>> doubles;
  for (const std::size_t n : {0, 1, 7, 1000, 4096, 30'000}) {
    floats.push_back(smoothField<float>(n, 5.0));
    doubles.push_back(smoothField<double>(n, 7.0));
  }
  std::vector<BatchField> batch;
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < floats.size(); ++i) {
      batch.push_back({DataType::FLOAT32, bytesOf(floats[i]), AxisValues{floats[i].size()}});
      batch.push_back({DataType::FLOAT64, bytesOf(doubles[i]), AxisValues{doubles[i].size(), 1}});
    }
    batch.push_back({DataType::FLOAT32, bytesOf(floats[4]), AxisValues{16, 4, 4, 4, 4}});
    batch.push_back({DataType::FLOAT64, bytesOf(doubles[1]), AxisValues{}});
  }
  for (const std::string_view preset : {"cuszp3", "fast", "balanced"}) {
    SCOPED_TRACE(preset);
    CompressOptions options = optionsWith(preset, ErrorBoundMode::ABS, 2);
    const auto made = compressBatch(batch, options);
    expectWhatEachGetsAlone(batch, options, made);
    EXPECT_EQ(inspect(made[12].get()).extents, (AxisValues{16, 4, 4, 4, 4}));
  }
}

TEST(Batches, KeepDeclaredFillValues) {
  auto fields = fieldsOfAllKinds<float>();
  for (std::size_t i = 0; i < 6144; i += 2) {
    fields[1][i] = -9999.0f;
  }
  fields[2][5001] = -9999.0f;  // no sample has it
  const auto batch = batchOf(fields);
  CompressOptions options = optionsWith("cuszp2", ErrorBoundMode::NOA, 2);
  options.fill = {-9999.0};
  expectWhatEachGetsAlone(batch, options, compressBatch(batch, options));
}

TEST(Batches, AnErrorOfOneFieldLeavesTheOthers) {
  auto fields = fieldsOfAllKinds<float>();
  for (std::size_t i = 0; i < 6144; i += 3) {
    fields[2][i] = -9999.0f;  // refused: it sets the range
  }
  auto batch = batchOf(fields);
  batch[4].bytes = batch[4].bytes.first(4001);  // not whole values
  batch[6].type = DataType::INT32;              // not what the preset takes
  batch.push_back({DataType::FLOAT32, batch[0].bytes, AxisValues(9, 1)});
  const CompressOptions options = optionsWith("cuszp2", ErrorBoundMode::NOA, 2);
  const auto made = compressBatch(batch, options);
  ASSERT_FALSE(made[2].isDone());
  EXPECT_EQ(errorCodeOf(made[2].error), ErrorCode::kFillValue);
  EXPECT_THROW(made[2].get(), FillValueError);
  EXPECT_FALSE(made[4].isDone());
  EXPECT_FALSE(made[6].isDone());
  ASSERT_FALSE(made[8].isDone());
  EXPECT_EQ(errorCodeOf(made[8].error), ErrorCode::kInvalidArgument);
  for (const std::size_t i : {0, 1, 3, 5, 7}) {
    SCOPED_TRACE(i);
    EXPECT_EQ(copyOf(made[i].get().bytes()),
              copyOf(compress(batch[i].type, batch[i].bytes, options).bytes()));
  }
}

TEST(Batches, MayBeEmptyOrOfOneField) {
  const CompressOptions options = optionsWith("cuszp2", ErrorBoundMode::ABS, 4);
  EXPECT_TRUE(compressBatch({}, options).empty());
  EXPECT_TRUE(decompressBatch({}).empty());
  const auto values = smoothField<float>(6144, 2.0);
  const BatchField field{DataType::FLOAT32, bytesOf(values), std::nullopt};
  expectWhatEachGetsAlone({&field, 1}, options, compressBatch({&field, 1}, options));
}

/// Frames of every preset, lossless ones and ones with gaps among them.
std::vector<Frame> framesOfManyKinds() {
  const auto fields = fieldsOfAllKinds<float>();
  std::vector<Frame> frames;
  for (const Preset& preset : allPresets()) {
    for (const auto& made :
         compressBatch(batchOf(fields), optionsWith(preset.name, ErrorBoundMode::ABS, 2))) {
      if (made.isDone()) {
        frames.push_back(made.value);
      }
    }
  }
  return frames;
}

std::vector<ByteView> viewsOf(const std::vector<Frame>& frames) {
  std::vector<ByteView> views;
  views.reserve(frames.size());
  for (const Frame& frame : frames) {
    views.push_back(frame.bytes());
  }
  return views;
}

TEST(Batches, DecodeAsSingleCalls) {
  const std::vector<Frame> frames = framesOfManyKinds();
  ASSERT_GT(frames.size(), 100u);
  for (const std::size_t threads : {1, 3}) {
    const auto decoded =
        decompressBatch(viewsOf(frames), {.backend = Backend::CPU, .threads = threads});
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const Array alone = decompress(frames[i], {.backend = Backend::CPU});
      EXPECT_EQ(copyOf(decoded[i].get().bytes()), copyOf(alone.bytes()));
      EXPECT_EQ(decoded[i].value.type(), alone.type());
      EXPECT_EQ(decoded[i].value.dims(), alone.dims());
    }
  }
}

TEST(Batches, ADamagedFrameInTheMiddleLeavesTheOthers) {
  const std::vector<Frame> frames = framesOfManyKinds();
  std::vector<ByteView> views = viewsOf(frames);
  std::vector<std::uint8_t> damaged = copyOf(views[5]);
  damaged[damaged.size() - 3] ^= 16;
  std::vector<std::uint8_t> broken_header = copyOf(views[9]);
  broken_header[30] ^= 1;
  views[5] = damaged;
  views[9] = broken_header;
  views[11] = views[11].first(17);
  views[12] = {};
  const auto decoded = decompressBatch(views, {.backend = Backend::CPU, .threads = 2});
  for (std::size_t i = 0; i < views.size(); ++i) {
    SCOPED_TRACE(i);
    if (i == 5 || i == 9 || i == 11 || i == 12) {
      ASSERT_FALSE(decoded[i].isDone());
      EXPECT_EQ(errorCodeOf(decoded[i].error), ErrorCode::kCorrupt);
    } else {
      EXPECT_EQ(copyOf(decoded[i].get().bytes()), copyOf(decompress(frames[i]).bytes()));
    }
  }
}

TEST(Batches, DecodeIntoMemoryOfTheCaller) {
  const std::vector<Frame> frames = framesOfManyKinds();
  std::vector<std::vector<std::uint8_t>> memory(frames.size());
  const auto lengths =
      decompressBatchInto(viewsOf(frames),
                          [&](std::size_t i, std::size_t n_bytes) -> void* {
                            if (i == 3) {
                              throw Error(ErrorCode::kBufferTooSmall, "no room for this one");
                            }
                            memory[i].resize(n_bytes);
                            return memory[i].data();
                          },
                          {.backend = Backend::CPU, .threads = 2});
  for (std::size_t i = 0; i < frames.size(); ++i) {
    SCOPED_TRACE(i);
    if (i == 3) {
      ASSERT_FALSE(lengths[i].isDone());
      EXPECT_EQ(errorCodeOf(lengths[i].error), ErrorCode::kBufferTooSmall);
    } else {
      EXPECT_EQ(lengths[i].get(), memory[i].size());
      EXPECT_EQ(memory[i], copyOf(decompress(frames[i]).bytes()));
    }
  }
}

TEST(Batches, LimitsAreThoseOfEachField) {
  const std::vector<std::vector<float>> fields = {smoothField<float>(6144, 1.0),
                                                  smoothField<float>(400'000, 1.0),
                                                  smoothField<float>(6144, 2.0)};
  const auto batch = batchOf(fields);
  CompressOptions options = optionsWith("cusz", ErrorBoundMode::ABS, 2);
  options.dims = {0, 1, 1};
  const auto frames = compressBatch(batch, options);
  options.max_memory_bytes = 1'000'000;
  const auto made = compressBatch(batch, options);
  expectWhatEachGetsAlone(batch, options, made);
  ASSERT_FALSE(made[1].isDone());
  EXPECT_EQ(errorCodeOf(made[1].error), ErrorCode::kLimit);
  const std::vector<ByteView> views = {frames[0].get().bytes(), frames[1].get().bytes(),
                                       frames[2].get().bytes()};
  for (const DecodeLimits limits :
       {DecodeLimits{.max_output_bytes = 100'000}, DecodeLimits{.max_memory_bytes = 500'000}}) {
    const auto decoded =
        decompressBatch(views, {.limits = limits, .backend = Backend::CPU, .threads = 2});
    EXPECT_TRUE(decoded[0].isDone());
    EXPECT_TRUE(decoded[2].isDone());
    ASSERT_FALSE(decoded[1].isDone());
    EXPECT_EQ(errorCodeOf(decoded[1].error), ErrorCode::kLimit);
  }
}

TEST(Batches, CountFieldsAndStopWhenAsked) {
  const auto fields = fieldsOfAllKinds<float>();
  const auto batch = batchOf(fields);
  CompressOptions options = optionsWith("cuszp2", ErrorBoundMode::ABS, 2);
  RunProgress progress;
  options.progress = &progress;
  compressBatch(batch, options);
  EXPECT_EQ(progress.n_stages, batch.size());
  EXPECT_EQ(progress.n_stages_done, batch.size());
  progress.is_cancelled = true;
  try {
    compressBatch(batch, options);
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace fz::test
