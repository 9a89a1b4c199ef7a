// LorenzoQuant of grids decoded with its coder: values, errors and memory against those of the
// stages, and that BitplaneRZE and it are one kernel.
#include "gpu/grid_decoding.h"

namespace fz::test {
namespace {

/// The last has all that the others have.
std::vector<Data> dataToTry() {
  return isSmallRun() ? std::vector{Data::kOdd}
                      : std::vector{Data::kSmooth, Data::kSteep, Data::kOdd};
}

TEST_P(DeviceGridDecoding, ValuesAreThoseOfTheStages) {
  // Rows of whole runs of 64, and others, which begin anywhere in a run. Tiles that end early in
  // all directions; columns that go on in another band of tiles than they begin in; runs of one
  // chunk and of several; fields of less than a block; rows of less than a run, and of one value.
  std::vector<Dims> all = {{192, 35, 1}, {64, 9, 11}, {131, 35, 1}, {67, 9, 11}};
  if (!isSmallRun()) {
    const Dims more[] = {{64, 2, 1},    {64, 32, 1},   {64, 33, 1},   {128, 31, 1},   {512, 64, 1},
                         {576, 70, 1},  {2048, 65, 1}, {8192, 40, 1}, {1344, 100, 1}, {64, 4000, 1},
                         {64, 8, 8},    {64, 2, 2},    {64, 1, 3},    {256, 5, 3},    {320, 17, 20},
                         {512, 16, 16}, {448, 40, 9},  {2112, 3, 9},  {128, 128, 40}, {100, 50, 1},
                         {449, 64, 1},  {3600, 41, 1}, {8191, 35, 1}, {1, 300, 1},    {5, 70, 1},
                         {898, 33, 1},  {500, 20, 11}, {193, 17, 9},  {3, 5, 70},     {1, 1, 500},
                         {65, 9, 9},    {386, 9, 17}};
    all.insert(all.end(), std::begin(more), std::end(more));
  }
  for (const Dims& dims : all) {
    for (const Data data : dataToTry()) {
      expectSameValues(dims, data);
      if (HasFailure()) {
        return;
      }
    }
  }
}

/// Behind Bitshuffle and RZE a tile's rows lie in many chunks.
TEST_P(DeviceGridDecoding, CodersWithoutRunsAreNamedAsTheObstacle) {
  const Dims dims = {256, 40, 1};
  const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
  const DeviceBytesBuffer input{ByteView(bytes)};
  Pipeline fused(bytes.size());
  build(fused, dims, Fusion::Auto);
  const FrameBytes frame = frameOnDevice(fused, input, bytes.size());
  ASSERT_EQ(decode(fused, frame, bytes.size(), 0).message, "");
  const std::string obstacle = "takes values from all over the stream";
  EXPECT_EQ(fused.explain().find(obstacle) != std::string::npos, GetParam().has_planes)
      << fused.explain();
}

TEST_P(DeviceGridDecoding, DamageEndsInTheSameErrors) {
  for (const Dims& dims : std::vector<Dims>{{192, 100, 1}, {128, 20, 11}, {201, 70, 1}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size());
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size());
    build(fused, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const std::size_t header = staged.buildHeader().core.header_size;
    std::size_t n_refused = 0;
    std::size_t n_taken = 0;
    const std::size_t step = isSmallRun() ? 4000 : 397;
    for (std::size_t at = header; at < frame.size(); at += at - header < 40 ? 7 : step) {
      FrameBytes damaged = frame;
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ (at % 2 == 0 ? 0xFFu : 0x41u));
      seal(damaged, header);
      const Outcome expected = decode(staged, damaged, bytes.size(), 0);
      const Outcome outcome = decode(fused, damaged, bytes.size(), 0);
      ASSERT_EQ(withoutNumbers(outcome.message), withoutNumbers(expected.message))
          << nameOf(dims) << ", byte " << at;
      ASSERT_TRUE(outcome.values == expected.values) << nameOf(dims) << ", byte " << at;
      ++(expected.message.empty() ? n_taken : n_refused);
    }
    EXPECT_GT(n_refused, 0u);
    EXPECT_GT(n_taken, 0u);
  }
}

/// Deltas that no integer holds are summed up in double, in a given order; doubles that need more
/// than 32 bits in 64.
TEST_P(DeviceGridDecoding, EntriesBeyondTheIntegersAreSummedUpAsByTheStages) {
  for (const Dims& dims :
       std::vector<Dims>{{128, 70, 1}, {64, 19, 11}, {101, 70, 1}, {69, 19, 11}}) {
    for (const double huge : {1e30, -4e19, 1e12}) {
      const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
      const DeviceBytesBuffer input{ByteView(bytes)};
      Pipeline staged(bytes.size());
      build(staged, dims, Fusion::Off);
      Pipeline fused(bytes.size());
      build(fused, dims, Fusion::Auto);
      FrameBytes frame = frameOnDevice(staged, input, bytes.size());
      const std::size_t header = staged.buildHeader().core.header_size;
      ASSERT_TRUE(GetParam().type == DataType::FLOAT32
                      ? replaceEntries(frame, header, static_cast<float>(huge))
                      : replaceEntries(frame, header, huge));
      seal(frame, header);
      const Outcome expected = decode(staged, frame, bytes.size(), 0x11);
      ASSERT_EQ(expected.message, "");
      ASSERT_TRUE(decode(fused, frame, bytes.size(), 0x22) == expected) << nameOf(dims);
      EXPECT_EQ(rowsOf(fused).size(), GetParam().kernelCount());
    }
  }
}

/// Streams of the original system may have more values than their dims hold; those are zero.
TEST_P(DeviceGridDecoding, ValuesBeyondTheDimsAreThoseOfTheStages) {
  for (const Dims& dims : std::vector<Dims>{{320, 70, 1}, {131, 75, 1}, {64, 19, 11}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size());
    build(staged, dims, Fusion::Off);
    Pipeline fused(bytes.size());
    build(fused, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const std::size_t header = staged.buildHeader().core.header_size;
    // The extents stand next to each other in the config, but not only there.
    const auto nx = static_cast<std::uint32_t>(dims[0]);
    const auto ny = static_cast<std::uint32_t>(dims[1]);
    const std::uint32_t stored[3] = {nx, ny, static_cast<std::uint32_t>(dims[2])};
    const std::uint32_t fewer[3] = {nx, ny - 9, stored[2]};
    const Outcome whole = decode(staged, frame, bytes.size(), 0x11);
    std::size_t n_shorter = 0;
    for (std::size_t at = 0; at + sizeof(stored) <= header; ++at) {
      if (std::memcmp(frame.data() + at, stored, sizeof(stored)) != 0) {
        continue;
      }
      FrameBytes changed = frame;
      std::memcpy(changed.data() + at, fewer, sizeof(fewer));
      seal(changed, header);
      const Outcome expected = decode(staged, changed, bytes.size(), 0x11);
      ASSERT_TRUE(decode(fused, changed, bytes.size(), 0x22) == expected) << nameOf(dims);
      if (expected.message.empty() && expected.values != whole.values) {
        EXPECT_EQ(rowsOf(fused).size(), GetParam().kernelCount());
        ++n_shorter;
      }
    }
    EXPECT_GT(n_shorter, 0u);
  }
}

TEST_P(DeviceGridDecoding, CodesTakeNoMemory) {
  if (GetParam().has_planes || isSmallRun()) {
    return;
  }
  for (const Dims& dims : {Dims{1024, 1024, 1}, Dims{128, 128, 64}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kSmooth);
    const std::size_t n_code_bytes = dims[0] * dims[1] * dims[2] * 2;
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline maker(bytes.size());
    build(maker, dims, Fusion::Off);
    const FrameBytes frame = frameOnDevice(maker, input, bytes.size());
    std::size_t peaks[2] = {};
    for (int side = 0; side < 2; ++side) {
      Pipeline pipeline(0, MemoryStrategy::MINIMAL);
      build(pipeline, dims, side == 0 ? Fusion::Off : Fusion::Auto);
      const Outcome outcome = decode(pipeline, frame, bytes.size(), 0);
      ASSERT_EQ(outcome.message, "");
      peaks[side] = pipeline.getMemoryPool().getPeakUsage();
    }
    EXPECT_LE(peaks[1] + n_code_bytes, peaks[0]) << nameOf(dims);
  }
}

TEST_P(DeviceGridDecoding, AsynchronousCallsGiveTheValuesOfTheStages) {
  const DeviceStream stream;
  for (const Dims& dims : std::vector<Dims>{{320, 77, 1}, {64, 30, 20}, {77, 30, 20}}) {
    const std::vector<std::uint8_t> bytes = fieldOf(dims, Data::kOdd);
    const DeviceBytesBuffer input{ByteView(bytes)};
    Pipeline staged(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(staged, dims, Fusion::Off);
    Pipeline async(bytes.size(), MemoryStrategy::PREALLOCATE);
    build(async, dims, Fusion::Auto);
    const FrameBytes frame = frameOnDevice(staged, input, bytes.size());
    const Outcome expected = decode(staged, frame, bytes.size(), 0x77);
    const DeviceBytesBuffer stored{ByteView(frame)};
    ASSERT_TRUE(decode(async, frame, bytes.size(), 0x78) == expected);  // what is a frame like?
    const DeviceBytesBuffer out(bytes.size());
    for (int i = 0; i < 3; ++i) {
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, out.size()));
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      async.decompressAsync(stored.data(), stored.size(), out.data(), out.size(), nullptr, stream);
      ASSERT_EQ(async.finishAsync(stream), bytes.size());
      ASSERT_TRUE(out.get(bytes.size()) == expected.values) << nameOf(dims);
    }
  }
}

TEST_P(DeviceGridDecoding, ReplaysOfACaptureGiveTheValuesOfTheStages) {
  const DeviceStream stream;
  for (const Dims& dims : std::vector<Dims>{{320, 77, 1}, {64, 30, 20}, {77, 30, 20}}) {
    const std::size_t n_bytes = fieldOf(dims, Data::kSmooth).size();
    Pipeline staged(n_bytes);
    build(staged, dims, Fusion::Off);
    const auto frameWith = [&](Data data) {
      return frameOnDevice(staged, DeviceBytesBuffer{ByteView(fieldOf(dims, data))}, n_bytes);
    };
    Pipeline fused(n_bytes, MemoryStrategy::PREALLOCATE);
    build(fused, dims, Fusion::Auto);
    const FrameBytes first = frameWith(Data::kSmooth);
    const DeviceBytesBuffer frame(3 * n_bytes + (1 << 16));
    frame.put(first);
    const DeviceBytesBuffer out(n_bytes);
    std::size_t n_out = 0;
    fused.decompress(frame.data(), first.size(), out.data(), n_bytes, &n_out, stream);
    EXPECT_EQ(rowsOf(fused).size(), GetParam().kernelCount());
    const auto enqueue = [&] {
      fused.decompressAsync(frame.data(), frame.size(), out.data(), n_bytes, nullptr, stream);
    };
    enqueue();  // takes the memory
    ASSERT_EQ(fused.finishAsync(stream), n_bytes);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    FZ_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    FZ_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    FZ_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (const Data data : {Data::kOdd, Data::kSmooth, Data::kSteep, Data::kOdd}) {
      const FrameBytes next = frameWith(data);
      const Outcome expected = decode(staged, next, n_bytes, 0x31);
      frame.put(next);
      FZ_CUDA_CHECK(cudaMemset(out.data(), 0xEE, n_bytes));
      FZ_CUDA_CHECK(cudaDeviceSynchronize());
      FZ_CUDA_CHECK(cudaGraphLaunch(exec, stream));
      ASSERT_EQ(fused.finishAsync(stream), n_bytes);
      ASSERT_TRUE(out.get(n_bytes) == expected.values) << nameOf(dims);
    }
    FrameBytes damaged = first;
    damaged[damaged.size() - 9] ^= 4;
    frame.put(damaged);
    FZ_CUDA_CHECK(cudaGraphLaunch(exec, stream));
    EXPECT_EQ(codeOf([&] { fused.finishAsync(stream); }), ErrorCode::kCorrupt);
    FZ_CUDA_CHECK(cudaGraphExecDestroy(exec));
    FZ_CUDA_CHECK(cudaGraphDestroy(graph));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         DeviceGridDecoding,
                         testing::ValuesIn(gridCases()),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace fz::test
