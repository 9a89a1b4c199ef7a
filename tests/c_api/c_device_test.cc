// The C interface on device memory and with a stream. Skipped where there is no device.
#include <limits>

#include <cuda_runtime_api.h>

#include "c_api_support.h"
#include "fz/presets.h"

namespace fz::test {
namespace {

void requireOk(cudaError_t status) {
  ASSERT_EQ(status, cudaSuccess) << cudaGetErrorString(status);
}

/// Device memory with the contents of a vector, or of a length.
class OnDevice {
 public:
  explicit OnDevice(std::size_t n_bytes) : n_bytes_(n_bytes) {
    EXPECT_EQ(cudaMalloc(&data_, n_bytes), cudaSuccess);
  }
  explicit OnDevice(const Bytes& bytes) : OnDevice(bytes.size()) {
    EXPECT_EQ(cudaMemcpy(data_, bytes.data(), n_bytes_, cudaMemcpyDefault), cudaSuccess);
    // A copy from pageable memory may still be under way, and the tests' stream does not wait.
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }

  void* data() const { return data_; }
  std::size_t size() const { return n_bytes_; }
  Bytes get(std::size_t n_bytes) const {
    Bytes bytes(n_bytes);
    EXPECT_EQ(cudaMemcpy(bytes.data(), data_, n_bytes, cudaMemcpyDefault), cudaSuccess);
    return bytes;
  }

 private:
  void* data_ = nullptr;
  std::size_t n_bytes_;
};

class CDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (fz_backend_available(FZ_BACKEND_CUDA) == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
    requireOk(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      cudaStreamDestroy(stream_);
    }
  }

  static fz_options options(int32_t memory) {
    fz_options options = defaultOptions();
    options.backend = FZ_BACKEND_CUDA;
    options.memory = memory;
    options.bound_mode = FZ_BOUND_NOA;
    options.error_bound = 1e-3;
    return options;
  }

  cudaStream_t stream_ = nullptr;
};

Bytes onCpu(const char* preset, const Bytes& values) {
  fz_options options = cpuOptions();
  options.bound_mode = FZ_BOUND_NOA;
  options.error_bound = 1e-3;
  return compressed(fromPreset(preset, options).get(), values);
}

TEST_F(CDevice, EveryPresetTakesDeviceMemoryOnAStreamAndWritesTheBytesOfTheCpu) {
  const Bytes values = smoothField(DataType::FLOAT32, {150, 70, 11}).bytes;
  const OnDevice input(values);
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(preset.name);
    const std::string name(preset.name);
    const PipelineHandle pipeline = fromPreset(name.c_str(), options(FZ_MEMORY_DEVICE));
    EXPECT_EQ(fz_pipeline_backend(pipeline.get()), FZ_BACKEND_CUDA);
    std::size_t bound = 0;
    ASSERT_EQ(fz_compress_bound(pipeline.get(), values.size(), &bound), FZ_OK) << fz_last_error();
    const OnDevice archive(bound);
    std::size_t n_bytes = 0;
    ASSERT_EQ(fz_compress(pipeline.get(), input.data(), input.size(), archive.data(), bound,
                          &n_bytes, stream_),
              FZ_OK)
        << fz_last_error();
    const Bytes cpu = onCpu(name.c_str(), values);
    EXPECT_TRUE(archive.get(n_bytes) == cpu);
    const OnDevice back(values.size());
    std::size_t n_decoded = 0;
    ASSERT_EQ(fz_decompress(pipeline.get(), archive.data(), n_bytes, back.data(), back.size(),
                            &n_decoded, stream_),
              FZ_OK)
        << fz_last_error();
    EXPECT_TRUE(back.get(n_decoded) ==
                decompressed(decoder(cpuOptions()).get(), cpu, values.size()));
    EXPECT_EQ(fz_verify(pipeline.get(), archive.data(), n_bytes, stream_), FZ_OK)
        << fz_last_error();
  }
}

TEST_F(CDevice, MissingValuesInDeviceMemoryGiveTheBytesOfTheCpu) {
  Bytes values = smoothField(DataType::FLOAT32, {150, 70, 11}).bytes;
  auto* const floats = reinterpret_cast<float*>(values.data());
  for (std::size_t i = 0; i < values.size() / sizeof(float); ++i) {
    const float missing = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -9999.0f;
    floats[i] = i / 100 % 5 == 0 ? missing : floats[i];
  }
  const OnDevice input(values);
  static const double kFill = -9999.0;
  for (const char* const preset : {"cuszp2", "pfpl", "fzgpu"}) {
    SCOPED_TRACE(preset);
    fz_options cpu = cpuOptions();
    cpu.bound_mode = FZ_BOUND_NOA;
    cpu.error_bound = 1e-3;
    fz_options device = options(FZ_MEMORY_DEVICE);
    for (fz_options* const made : {&cpu, &device}) {
      made->fill = &kFill;
      made->n_fill = 1;
    }
    const PipelineHandle pipeline = fromPreset(preset, device);
    std::size_t bound = 0;
    ASSERT_EQ(fz_compress_bound(pipeline.get(), values.size(), &bound), FZ_OK) << fz_last_error();
    const OnDevice archive(bound);
    std::size_t n_bytes = 0;
    ASSERT_EQ(fz_compress(pipeline.get(), input.data(), input.size(), archive.data(), bound,
                          &n_bytes, stream_),
              FZ_OK)
        << fz_last_error();
    EXPECT_TRUE(archive.get(n_bytes) == compressed(fromPreset(preset, cpu).get(), values));
  }
  fz_options device = options(FZ_MEMORY_DEVICE);
  const PipelineHandle pipeline = fromPreset("pfpl", device);
  for (std::size_t i = 0; i < values.size() / sizeof(float); ++i) {
    floats[i] = i / 100 % 5 == 0 ? -9999.0f : floats[i];
  }
  const OnDevice undeclared(values);
  const OnDevice archive(2 * values.size());
  std::size_t n_bytes = 0;
  EXPECT_EQ(fz_compress(pipeline.get(), undeclared.data(), undeclared.size(), archive.data(),
                        archive.size(), &n_bytes, stream_),
            FZ_ERROR_FILL_VALUE);
}

TEST_F(CDevice, HostMemoryOnTheCudaBackendGivesTheBytesOfTheCpu) {
  const Bytes values = smoothField(DataType::FLOAT64, {90, 40, 1}).bytes;
  fz_options host = options(FZ_MEMORY_HOST);
  host.type = FZ_TYPE_FLOAT64;
  const PipelineHandle pipeline = fromPreset("pfpl", host);
  const Bytes archive = compressed(pipeline.get(), values);
  fz_options cpu = cpuOptions();
  cpu.type = FZ_TYPE_FLOAT64;
  cpu.bound_mode = FZ_BOUND_NOA;
  cpu.error_bound = 1e-3;
  EXPECT_TRUE(archive == compressed(fromPreset("pfpl", cpu).get(), values));
  EXPECT_TRUE(decompressed(pipeline.get(), archive, values.size()) ==
              decompressed(decoder(cpuOptions()).get(), archive, values.size()));
}

/// Counts what is alive.
struct DeviceHeap {
  int n_alive = 0;
  static void* allocate(std::size_t n_bytes, std::size_t /*alignment*/, void* context) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, n_bytes) != cudaSuccess) {
      return nullptr;
    }
    ++static_cast<DeviceHeap*>(context)->n_alive;
    return memory;
  }
  static void release(void* memory, std::size_t /*n_bytes*/, void* context) {
    --static_cast<DeviceHeap*>(context)->n_alive;
    cudaFree(memory);
  }
};

TEST_F(CDevice, ResultsAreMemoryOfTheCallersAllocator) {
  DeviceHeap heap;
  const Bytes values = smoothField(DataType::FLOAT32, {3000, 7, 1}).bytes;
  const OnDevice input(values);
  fz_options device = options(FZ_MEMORY_DEVICE);
  device.allocator = {&DeviceHeap::allocate, &DeviceHeap::release, &heap};
  const PipelineHandle pipeline = fromPreset("cuszp2", device);
  void* archive = nullptr;
  std::size_t n_bytes = 0;
  ASSERT_EQ(
      fz_compress_alloc(pipeline.get(), input.data(), input.size(), &archive, &n_bytes, stream_),
      FZ_OK)
      << fz_last_error();
  void* back = nullptr;
  std::size_t n_decoded = 0;
  ASSERT_EQ(fz_decompress_alloc(pipeline.get(), archive, n_bytes, &back, &n_decoded, stream_),
            FZ_OK)
      << fz_last_error();
  EXPECT_EQ(n_decoded, values.size());
  EXPECT_EQ(heap.n_alive, 2);
  Bytes cpu = onCpu("cuszp2", values);
  Bytes copy(n_bytes);
  requireOk(cudaMemcpy(copy.data(), archive, n_bytes, cudaMemcpyDefault));
  EXPECT_TRUE(copy == cpu);
  fz_release(pipeline.get(), archive, n_bytes);
  fz_release(pipeline.get(), back, n_decoded);
  EXPECT_EQ(heap.n_alive, 0);
}

TEST_F(CDevice, SmallBuffersAndDamageAreErrorsThatChangeNothing) {
  const Bytes values = smoothField(DataType::FLOAT32, {500, 20, 1}).bytes;
  const PipelineHandle pipeline = fromPreset("pfpl", options(FZ_MEMORY_DEVICE));
  const OnDevice input(values);
  const OnDevice small(64);
  std::size_t n_bytes = 0;
  EXPECT_EQ(fz_compress(pipeline.get(), input.data(), input.size(), small.data(), small.size(),
                        &n_bytes, stream_),
            FZ_ERROR_BUFFER_TOO_SMALL);
  Bytes cpu = onCpu("pfpl", values);
  EXPECT_EQ(n_bytes, cpu.size());
  const OnDevice archive(cpu);
  EXPECT_EQ(fz_decompress(pipeline.get(), archive.data(), archive.size(), small.data(),
                          small.size(), &n_bytes, stream_),
            FZ_ERROR_BUFFER_TOO_SMALL);
  EXPECT_EQ(n_bytes, values.size());
  cpu[cpu.size() / 2] ^= 1;
  const OnDevice damaged(cpu);
  const OnDevice back(Bytes(values.size(), 0xee));
  EXPECT_EQ(fz_decompress(pipeline.get(), damaged.data(), damaged.size(), back.data(), back.size(),
                          &n_bytes, stream_),
            FZ_ERROR_CORRUPT);
  EXPECT_TRUE(back.get(back.size()) == Bytes(values.size(), 0xee));
}

}  // namespace
}  // namespace fz::test
