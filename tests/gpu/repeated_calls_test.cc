// The second and later calls of a pipeline launch their kernels in another way than the first
// (backends/cuda/graph_launcher.h).
#include <gtest/gtest.h>

#include "gpu/device_pipeline.h"

namespace fz::test {
namespace {

constexpr std::size_t kValues = 30'000;
constexpr std::size_t kBytes = kValues * sizeof(float);

class DeviceRepeatedCalls : public OnDevice<testing::TestWithParam<std::string>> {
 protected:
  /// One value in `every` is an outlier, from another place on for each call.
  static Field fieldOf(int call, std::size_t every) {
    const std::size_t n = call % 4 == 3 ? kValues - 1111 : kValues;
    std::vector<float> values = wave(n, 100.0 * call);
    for (std::size_t i = static_cast<std::size_t>(call); every != 0 && i < n; i += every) {
      values[i] *= 1e5f;
    }
    Field field{"wave", DataType::FLOAT32, {0, 1, 1}, {}};
    field.bytes.resize(byteCount(values));
    std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
    return field;
  }
};

class PriorityStream {
 public:
  PriorityStream() {
    int lowest = 0;
    int highest = 0;
    FZ_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    FZ_CUDA_CHECK(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest));
  }
  PriorityStream(const PriorityStream&) = delete;
  PriorityStream& operator=(const PriorityStream&) = delete;
  ~PriorityStream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_P(DeviceRepeatedCalls, GiveTheBytesOfTheCpuOnAnyStreamWhateverChanges) {
  const DeviceStream plain;
  const PriorityStream urgent;
  const cudaStream_t streams[] = {plain, urgent.get(), nullptr};
  Pipeline pipeline;
  pipeline.setBackend(Backend::CUDA);
  loadPreset(pipeline, GetParam(), fieldOf(0, 0), "0.01");
  pipeline.finalize();
  const DeviceBytesBuffer out(kBytes);
  const std::size_t outliers[] = {0, 500, 500, 3, 0};
  for (int call = 0; call < 15; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    const Field field = fieldOf(call, outliers[call % 5]);
    const std::size_t n_bytes = field.bytes.size();
    const FrameBytes cpu = cpuFrame(GetParam(), field, "0.01");
    const DeviceBytesBuffer input{ByteView(field.bytes)};
    const cudaStream_t stream = streams[call / 2 % 3];
    ASSERT_TRUE(frameOnDevice(pipeline, input, n_bytes, stream) == cpu);
    const DeviceBytesBuffer stored{ByteView(cpu)};
    std::size_t n_out = 0;
    pipeline.decompress(stored.data(), cpu.size(), out.data(), kBytes, &n_out, stream);
    ASSERT_EQ(n_out, n_bytes);
    Pipeline on_cpu;
    on_cpu.setBackend(Backend::CPU);
    loadPreset(on_cpu, GetParam(), field, "0.01");
    on_cpu.finalize();
    FrameBytes expected(n_bytes);
    on_cpu.decompress(cpu.data(), cpu.size(), expected.data(), n_bytes, &n_out);
    ASSERT_TRUE(out.get(n_bytes) == expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Presets,
                         DeviceRepeatedCalls,
                         testing::Values("cuszp",
                                         "cuszp2",
                                         "cuszp3",
                                         "cuszp3_fixed",
                                         "cuszp3_outlier",
                                         "fzgpu",
                                         "pfpl",
                                         "speed",
                                         "cusz"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace fz::test
