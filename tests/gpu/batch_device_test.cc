#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>

#include "fz/batch.h"
#include "gpu/device_pipeline.h"
#include "log.h"

// Batches of arrays in device memory: the frames and values of single calls.

namespace fz::test {
namespace {

constexpr std::size_t kSide = 80;
constexpr std::size_t kValues = kSide * kSide;

template <class T>
std::vector<T> wavesOf(std::size_t seed) {
  std::vector<T> values(kValues);
  const double scale = 10.0 * static_cast<double>(seed % 7 + 1);
  for (std::size_t i = 0; i < kValues; ++i) {
    const auto x = static_cast<double>(i + 31 * seed);
    values[i] = static_cast<T>(scale * (std::sin(x / 70) + 0.2 * std::cos(x / 9)));
  }
  return values;
}

/// Plain ones, and between them: gaps that a sample shows, one that it does not, a constant, noise
/// that is kept without loss, a step that is refined by a smaller one, and what sets its range.
template <class T>
std::vector<std::vector<T>> deviceFields(std::size_t n_fields) {
  std::vector<std::vector<T>> fields;
  for (std::size_t f = 0; f < n_fields; ++f) {
    fields.push_back(wavesOf<T>(f));
    std::vector<T>& values = fields.back();
    std::uint64_t state = f + 1;
    for (std::size_t i = 0; i < kValues; ++i) {
      switch (f % 16) {
        case 3:
          values[i] = i % 5 == 0 ? std::numeric_limits<T>::quiet_NaN() : values[i];
          break;
        case 6:
          values[i] = i == 4321 ? std::numeric_limits<T>::infinity() : values[i];
          break;
        case 8:
          values[i] = T{7};
          break;
        case 10:
          state = state * 6364136223846793005u + 1442695040888963407u;
          values[i] = static_cast<T>(std::ldexp(1.0 + static_cast<double>(state >> 40),
                                                static_cast<int>(state >> 33 & 63) - 40));
          break;
        case 12:
          values[i] = i % 3 == 0 ? T{-9999} : values[i];
          break;
        case 14:
          values[i] = i % 97 == 0 ? values[i] * T{1000} : values[i];
          break;
        default:
          break;
      }
    }
  }
  return fields;
}

/// Those of which none is refused.
std::vector<std::vector<float>> soundFields(std::size_t n_fields) {
  auto fields = deviceFields<float>(n_fields);
  for (std::size_t f = 10; f < n_fields; f += 16) {
    fields[f] = wavesOf<float>(f);
  }
  return fields;
}

template <class T>
ByteView bytesOfValues(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

CompressOptions batchOptions(std::string_view preset, ErrorBoundMode mode) {
  CompressOptions options;
  options.preset = preset;
  options.error_bound = mode == ErrorBoundMode::ABS ? 0.01 : 1e-3;
  options.mode = mode;
  options.dims = {kSide, kSide, 1};
  return options;
}

/// Fields, slots and results on the device.
template <class T>
class BatchOnDevice {
 public:
  explicit BatchOnDevice(const std::vector<std::vector<T>>& fields, std::size_t slot_bytes)
      : results(fields.size()) {
    for (const std::vector<T>& field : fields) {
      memory_.push_back(std::make_unique<DeviceBytesBuffer>(bytesOfValues(field)));
      inputs.push_back(memory_.back()->data());
      memory_.push_back(std::make_unique<DeviceBytesBuffer>(slot_bytes));
      slots.push_back({memory_.back()->data(), slot_bytes});
      memory_.push_back(std::make_unique<DeviceBytesBuffer>(kValues * sizeof(T)));
      outputs.push_back({memory_.back()->data(), kValues * sizeof(T)});
    }
  }

  std::vector<DeviceBytes> frames() const {
    std::vector<DeviceBytes> frames;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      frames.push_back({slots[i].data, results[i].n_bytes});
    }
    return frames;
  }

  std::vector<const void*> inputs;
  std::vector<DeviceRoom> slots;
  std::vector<DeviceRoom> outputs;
  std::vector<FieldResult> results;

 private:
  std::vector<std::unique_ptr<DeviceBytesBuffer>> memory_;
};

std::int32_t statusFor(ErrorCode code) {
  return static_cast<std::int32_t>(code) + 1;
}

/// What the library has said last of a CUDA error, for the message of a test.
std::string& lastMessage() {
  static std::string message;
  return message;
}

class DeviceBatches : public OnDevice<> {
 protected:
  void SetUp() override {
    OnDevice<>::SetUp();
    Logger::setCallback([](LogLevel /*level*/, const char* text) {
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      lastMessage() = std::strstr(text, "CUDA") != nullptr ? text : lastMessage();
    });
  }
  void TearDown() override { Logger::setCallback(nullptr); }

  std::size_t nFields() const { return isSmallRun() ? 17 : 70; }

  /// Every frame that one call gives, for the fields that it can do.
  template <class T>
  void expectFramesOfSingleCalls(const BatchOnDevice<T>& batch,
                                 const std::vector<std::vector<T>>& fields,
                                 CompressOptions options) {
    options.backend = Backend::CPU;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      SCOPED_TRACE(i);
      try {
        const Frame cpu = fz::compress(kDataTypeOf<T>, bytesOfValues(fields[i]), options);
        EXPECT_EQ(batch.results[i].status, 0) << lastMessage();
        if (batch.results[i].status != 0) {
          continue;
        }
        ASSERT_EQ(batch.results[i].n_bytes, cpu.size());
        const auto made = fromDevice(batch.slots[i].data, cpu.size());
        EXPECT_TRUE(std::equal(made.begin(), made.end(), cpu.bytes().begin()));
      } catch (const Error& error) {
        EXPECT_EQ(batch.results[i].status, statusFor(error.code()));
      }
    }
  }

  template <class T>
  void roundTripAll(std::string_view preset, ErrorBoundMode mode) {
    const CompressOptions options = batchOptions(preset, mode);
    const auto fields = deviceFields<T>(nFields());
    DeviceBatch batch(kDataTypeOf<T>, options);
    BatchOnDevice<T> data(fields, batch.slotBytes(kValues * sizeof(T)));
    const DeviceStream stream;
    for (int call = 0; call < 2; ++call) {
      batch.compress(data.inputs, kValues * sizeof(T), data.slots, data.results.data(), stream);
      expectFramesOfSingleCalls(data, fields, options);
    }
    // What was refused has no frame; decode those that there are.
    std::vector<DeviceBytes> frames;
    std::vector<DeviceRoom> outputs;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (data.results[i].status == 0) {
        frames.push_back(data.frames()[i]);
        outputs.push_back(data.outputs[i]);
      }
    }
    std::vector<FieldResult> decoded(frames.size());
    for (int call = 0; call < 2; ++call) {
      batch.decompress(frames, outputs, decoded.data(), stream);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        SCOPED_TRACE(i);
        ASSERT_EQ(decoded[i].status, 0);
        ASSERT_EQ(decoded[i].n_bytes, kValues * sizeof(T));
        const auto frame = fromDevice(frames[i].data, frames[i].n_bytes);
        const Array alone = fz::decompress(frame, {.backend = Backend::CPU});
        const auto values = fromDevice(outputs[i].data, kValues * sizeof(T));
        EXPECT_TRUE(std::equal(values.begin(), values.end(), alone.bytes().begin()));
        FZ_CUDA_CHECK(cudaMemset(outputs[i].data, 0, kValues * sizeof(T)));
      }
    }
  }
};

/// In a small run one of each kind: a group, a group with more kernels, stages one by one.
std::vector<std::string_view> presetsToTry() {
  if (isSmallRun()) {
    return {"cuszp2", "pfpl", "cusz"};
  }
  std::vector<std::string_view> names;
  for (const Preset& preset : allPresets()) {
    names.push_back(preset.name);
  }
  return names;
}

TEST_F(DeviceBatches, HaveTheFramesAndValuesOfSingleCallsForFloats) {
  for (const std::string_view preset : presetsToTry()) {
    for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
      SCOPED_TRACE(std::string(preset) + " " + std::string(errorBoundModeName(mode)));
      roundTripAll<float>(preset, mode);
    }
  }
}

TEST_F(DeviceBatches, HaveTheFramesAndValuesOfSingleCallsForDoubles) {
  for (const std::string_view preset : presetsToTry()) {
    SCOPED_TRACE(preset);
    roundTripAll<double>(preset, ErrorBoundMode::NOA);
  }
}

TEST_F(DeviceBatches, PresetsOfOneGroupAreDoneAtOnce) {
  std::vector<std::vector<float>> fields;
  for (std::size_t f = 0; f < nFields(); ++f) {
    fields.push_back(wavesOf<float>(f));
  }
  for (const std::string_view preset :
       {"cuszp", "cuszp2", "cuszp3", "cuszp3_fixed", "cuszp3_outlier", "fast", "pfpl"}) {
    for (const ErrorBoundMode mode : {ErrorBoundMode::ABS, ErrorBoundMode::NOA}) {
      SCOPED_TRACE(std::string(preset) + " " + std::string(errorBoundModeName(mode)));
      CompressOptions options = batchOptions(preset, mode);
      options.error_bound = 10 * *options.error_bound;  // what saves little is done one by one
      DeviceBatch batch(DataType::FLOAT32, options);
      BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
      batch.compress(data.inputs, kValues * sizeof(float), data.slots, data.results.data());
      EXPECT_EQ(batch.fusedFields(), fields.size());
      expectFramesOfSingleCalls(data, fields, options);
      batch.decompress(data.frames(), data.outputs, data.results.data());
      if (!isSmallRun()) {  // under compute-sanitizer frames are decoded one by one, rightly
        EXPECT_EQ(batch.fusedFields(), fields.size());
      }
      for (std::size_t i = 0; i < fields.size(); ++i) {
        ASSERT_EQ(data.results[i].status, 0);
        const auto values = fromDevice(data.outputs[i].data, kValues * sizeof(float));
        const Array alone = fz::decompress(fz::compress(std::span<const float>(fields[i]), options),
                                           {.backend = Backend::CPU});
        EXPECT_TRUE(std::equal(values.begin(), values.end(), alone.bytes().begin()));
      }
    }
  }
}

TEST_F(DeviceBatches, OtherFieldsInOtherPlacesFollow) {
  const CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::NOA);
  DeviceBatch batch(DataType::FLOAT32, options);
  for (const std::size_t n_fields : {5, 40, 12}) {
    std::vector<std::vector<float>> fields;
    for (std::size_t f = 0; f < n_fields; ++f) {
      fields.push_back(wavesOf<float>(f + 3 * n_fields));
    }
    BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
    batch.compress(data.inputs, kValues * sizeof(float), data.slots, data.results.data());
    expectFramesOfSingleCalls(data, fields, options);
    EXPECT_EQ(batch.fusedFields(), n_fields);
  }
}

TEST_F(DeviceBatches, KeepDeclaredFillValues) {
  CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::NOA);
  options.fill = {-9999.0};
  const auto fields = deviceFields<float>(nFields());
  DeviceBatch batch(DataType::FLOAT32, options);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  batch.compress(data.inputs, kValues * sizeof(float), data.slots, data.results.data());
  expectFramesOfSingleCalls(data, fields, options);
}

TEST_F(DeviceBatches, ASlotThatIsTooSmallLeavesTheOthers) {
  const CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::ABS);
  const auto fields = soundFields(9);
  DeviceBatch batch(DataType::FLOAT32, options);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  std::vector<DeviceRoom> slots = data.slots;
  slots[2].capacity_bytes = 900;
  slots[4].capacity_bytes = 0;
  slots[5] = {nullptr, 0};
  batch.compress(data.inputs, kValues * sizeof(float), slots, data.results.data());
  for (std::size_t i = 0; i < 9; ++i) {
    SCOPED_TRACE(i);
    const bool is_small = i == 2 || i == 4 || i == 5;
    EXPECT_EQ(data.results[i].status, is_small ? statusFor(ErrorCode::kBufferTooSmall) : 0);
    const Frame cpu = fz::compress(DataType::FLOAT32, bytesOfValues(fields[i]), options);
    EXPECT_EQ(data.results[i].n_bytes, cpu.size());
  }
  // A slot of just the frame's length is enough.
  slots[2].capacity_bytes = data.results[2].n_bytes;
  slots[4] = data.slots[4];
  slots[5] = data.slots[5];
  batch.compress(data.inputs, kValues * sizeof(float), slots, data.results.data());
  expectFramesOfSingleCalls(data, fields, options);
}

TEST_F(DeviceBatches, ADamagedFrameInTheMiddleLeavesTheOthers) {
  const CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::ABS);
  const auto fields = soundFields(nFields());
  DeviceBatch batch(DataType::FLOAT32, options);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  batch.compress(data.inputs, kValues * sizeof(float), data.slots, data.results.data());
  std::vector<DeviceBytes> frames = data.frames();
  const auto damage = [&](std::size_t i, std::size_t at) {
    auto bytes = fromDevice(frames[i].data, frames[i].n_bytes);
    bytes[at] ^= 64;
    FZ_CUDA_CHECK(cudaMemcpy(data.slots[i].data, bytes.data(), bytes.size(), cudaMemcpyDefault));
  };
  damage(1, frames[1].n_bytes - 5);  // the payload
  damage(4, 30);                     // the header
  damage(5, 2);                      // its magic number
  damage(7, 24);                     // its length
  frames[9].n_bytes -= 40;           // cut off
  frames[11].n_bytes = 20;
  frames[13] = {nullptr, 0};
  for (int call = 0; call < 2; ++call) {
    for (const DeviceRoom& output : data.outputs) {
      FZ_CUDA_CHECK(cudaMemset(output.data, 0x5a, output.capacity_bytes));
    }
    batch.decompress(frames, data.outputs, data.results.data());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      SCOPED_TRACE(i);
      const auto values = fromDevice(data.outputs[i].data, data.outputs[i].capacity_bytes);
      if (i == 1 || i == 4 || i == 5 || i == 7 || i == 9 || i == 11 || i == 13) {
        EXPECT_NE(data.results[i].status, 0);
        EXPECT_EQ(values, std::vector<std::uint8_t>(values.size(), 0x5a));
        continue;
      }
      EXPECT_EQ(data.results[i].status, 0);
      const auto frame = fromDevice(frames[i].data, frames[i].n_bytes);
      const Array alone = fz::decompress(frame, {.backend = Backend::CPU});
      EXPECT_TRUE(std::equal(values.begin(), values.end(), alone.bytes().begin()));
    }
  }
}

TEST_F(DeviceBatches, FramesOfOtherKindsAndSmallOutputsAreDealtWithOneByOne) {
  const CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::ABS);
  const auto fields = soundFields(24);
  DeviceBatch batch(DataType::FLOAT32, options);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  batch.compress(data.inputs, kValues * sizeof(float), data.slots, data.results.data());
  const CompressOptions other = batchOptions("pfpl", ErrorBoundMode::NOA);
  const Frame frame = fz::compress(DataType::FLOAT32, bytesOfValues(fields[1]), other);
  const DeviceBytesBuffer frame_memory(frame.bytes());
  std::vector<DeviceBytes> frames = data.frames();
  frames[2] = {frame_memory.data(), frame.size()};
  data.outputs[7].capacity_bytes -= 4;
  batch.decompress(frames, data.outputs, data.results.data());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(data.results[i].status, i == 7 ? statusFor(ErrorCode::kBufferTooSmall) : 0);
    if (i != 7) {
      const auto bytes = fromDevice(frames[i].data, frames[i].n_bytes);
      const Array alone = fz::decompress(bytes, {.backend = Backend::CPU});
      const auto values = fromDevice(data.outputs[i].data, kValues * sizeof(float));
      EXPECT_TRUE(std::equal(values.begin(), values.end(), alone.bytes().begin()));
    }
  }
}

TEST_F(DeviceBatches, MayBeEmptyOrOfOneFieldAndGiveResultsOnTheDevice) {
  const CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::NOA);
  const auto fields = soundFields(1);
  DeviceBatch batch(DataType::FLOAT32, options);
  batch.compress({}, 400, {}, nullptr);
  batch.decompress({}, {}, nullptr);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  const DeviceBytesBuffer results(sizeof(FieldResult));
  batch.compress(data.inputs, kValues * sizeof(float), data.slots,
                 reinterpret_cast<FieldResult*>(results.data()));
  const auto bytes = results.get(sizeof(FieldResult));
  std::memcpy(data.results.data(), bytes.data(), bytes.size());
  expectFramesOfSingleCalls(data, fields, options);
  EXPECT_THROW(batch.compress(data.inputs, 400, {}, data.results.data()), InvalidArgument);
}

TEST_F(DeviceBatches, OfOtherSizesFollowEachOther) {
  CompressOptions options = batchOptions("fast", ErrorBoundMode::NOA);
  options.dims = {0, 1, 1};
  DeviceBatch batch(DataType::FLOAT32, options);
  const auto fields = soundFields(20);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  for (const std::size_t n : {kValues, std::size_t{1000}, std::size_t{5}, kValues - 3}) {
    SCOPED_TRACE(n);
    batch.compress(data.inputs, n * sizeof(float), data.slots, data.results.data());
    std::vector<std::vector<float>> parts;
    parts.reserve(fields.size());
    for (const std::vector<float>& field : fields) {
      parts.emplace_back(field.begin(), field.begin() + static_cast<std::ptrdiff_t>(n));
    }
    expectFramesOfSingleCalls(data, parts, options);
  }
}

TEST_F(DeviceBatches, HostMemoryIsRefusedFieldByField) {
  const CompressOptions options = batchOptions("cuszp2", ErrorBoundMode::ABS);
  const auto fields = soundFields(18);
  DeviceBatch batch(DataType::FLOAT32, options);
  BatchOnDevice<float> data(fields, batch.slotBytes(kValues * sizeof(float)));
  auto inputs = data.inputs;
  inputs[1] = fields[1].data();
  batch.compress(inputs, kValues * sizeof(float), data.slots, data.results.data());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(data.results[i].status, i == 1 ? statusFor(ErrorCode::kInvalidArgument) : 0);
  }
}

TEST_F(DeviceBatches, OfTheHostHaveTheFramesOfTheCpu) {
  for (const std::string_view preset : {"cuszp2", "balanced", "fzgpu"}) {
    CompressOptions options = batchOptions(preset, ErrorBoundMode::NOA);
    const auto fields = deviceFields<float>(isSmallRun() ? 8 : 40);
    std::vector<BatchField> batch;
    batch.reserve(fields.size());
    for (const auto& field : fields) {
      batch.push_back({DataType::FLOAT32, bytesOfValues(field), std::nullopt});
    }
    options.backend = Backend::CPU;
    const auto cpu = compressBatch(batch, options);
    options.backend = Backend::CUDA;
    const auto cuda = compressBatch(batch, options);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_EQ(cuda[i].isDone(), cpu[i].isDone());
      if (!cpu[i].isDone()) {
        EXPECT_EQ(errorCodeOf(cuda[i].error), errorCodeOf(cpu[i].error));
        continue;
      }
      EXPECT_TRUE(std::equal(cpu[i].value.bytes().begin(), cpu[i].value.bytes().end(),
                             cuda[i].value.bytes().begin(), cuda[i].value.bytes().end()));
      const ByteView frame = cuda[i].value.bytes();
      const auto decoded = decompressBatch({&frame, 1}, {.backend = Backend::CUDA});
      const Array alone = fz::decompress(frame, {.backend = Backend::CPU});
      EXPECT_TRUE(
          std::equal(alone.bytes().begin(), alone.bytes().end(), decoded[0].get().bytes().begin()));
    }
  }
}

}  // namespace
}  // namespace fz::test
