#include <gtest/gtest.h>

#include "allocation/counting_new.h"
#include "fz/presets.h"
#include "support/fields.h"
#include "support/pipelines.h"

namespace fz::test {
namespace {

/// Allocations of this thread while f runs.
template <class F>
std::size_t allocationsOf(F&& f) {
  const std::size_t before = allocationCount();
  f();
  return allocationCount() - before;
}

TEST(Allocation, TheCounterSeesVectorsAndStrings) {
  EXPECT_EQ(allocationsOf([] { const std::vector<int> v(10, 1); }), 1u);
  EXPECT_EQ(allocationsOf([] { const std::string s(100, 'a'); }), 1u);
  EXPECT_EQ(allocationsOf([] {}), 0u);
}

/// A pipeline that calls of one size use again and again.
struct Reused {
  Reused(const Preset& preset, const Field& field, MemoryStrategy strategy)
      : pipeline(field.bytes.size(), strategy) {
    ConfigOverrides overrides;
    overrides.input_type = field.type;
    overrides.dims = field.dims;
    pipeline.setThreads(1);
    pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name), overrides);
    frame.resize(pipeline.getMaxCompressedSize(field.bytes.size()));
    back.resize(field.bytes.size());
  }

  /// Allocations of one call of each kind; the results stay in frame and back.
  std::size_t compressView(const Field& field) {
    return allocationsOf([&] { pipeline.compress(field.bytes.data(), field.bytes.size()); });
  }
  std::size_t compressIntoBuffer(const Field& field) {
    return allocationsOf([&] {
      pipeline.compress(field.bytes.data(), field.bytes.size(), frame.data(), frame.size(),
                        &frame_bytes);
    });
  }
  std::size_t decompressToPool() {
    void* out = nullptr;
    std::size_t n = 0;
    return allocationsOf([&] { pipeline.decompress(frame.data(), frame_bytes, &out, &n); });
  }
  std::size_t decompressOwnFrame() {
    void* out = nullptr;
    std::size_t n = 0;
    return allocationsOf([&] { pipeline.decompress(nullptr, 0, &out, &n); });
  }
  std::size_t decompressIntoBuffer() {
    std::size_t n = 0;
    return allocationsOf(
        [&] { pipeline.decompress(frame.data(), frame_bytes, back.data(), back.size(), &n); });
  }

  Pipeline pipeline;
  FrameBytes frame;
  std::size_t frame_bytes = 0;
  FrameBytes back;
};

void runAll(Reused& reused, const Field& field) {
  reused.compressView(field);
  reused.compressIntoBuffer(field);
  reused.decompressToPool();
  reused.decompressOwnFrame();
  reused.decompressIntoBuffer();
}

void expectNoAllocations(Reused& reused, const Field& field, int call) {
  const std::size_t taken = reused.pipeline.getMemoryPool().getSystemAllocationCount();
  EXPECT_EQ(reused.compressView(field), 0u) << "call " << call;
  EXPECT_EQ(reused.compressIntoBuffer(field), 0u) << "call " << call;
  EXPECT_EQ(reused.decompressToPool(), 0u) << "call " << call;
  EXPECT_EQ(reused.decompressOwnFrame(), 0u) << "call " << call;
  EXPECT_EQ(reused.decompressIntoBuffer(), 0u) << "call " << call;
  EXPECT_EQ(reused.pipeline.getMemoryPool().getSystemAllocationCount(), taken) << "call " << call;
  Pipeline fresh;
  EXPECT_EQ(reused.back,
            decoded<std::uint8_t>(fresh, ByteView(reused.frame.data(), reused.frame_bytes)));
}

/// A search for a plan makes lattices of its own, and plans have a text.
bool searchesForPlan(const Preset& preset) {
  return preset.toml.find("auto\"") != std::string_view::npos;
}

// One thread: the library that runs the threads may allocate for itself.
TEST(Allocation, TheSecondCallOfTheSameSizeTakesNothingFromTheHeap) {
  for (const Preset& preset : allPresets()) {
    if (searchesForPlan(preset)) {
      continue;
    }
    for (const DataType type : {DataType::FLOAT32, DataType::FLOAT64}) {
      SCOPED_TRACE(std::string(preset.name) + " " + std::string(dataTypeToString(type)));
      const Field field = smoothField(type, {67, 41, 11});
      Reused reused(preset, field, MemoryStrategy::PREALLOCATE);
      runAll(reused, field);
      expectNoAllocations(reused, field, 2);
      expectNoAllocations(reused, field, 3);
    }
  }
}

TEST(Allocation, OtherDataOfTheSameSizeTakeNothingFromTheHeap) {
  for (const Preset& preset : allPresets()) {
    if (searchesForPlan(preset)) {
      continue;
    }
    SCOPED_TRACE(std::string(preset.name));
    const Field field = smoothField(DataType::FLOAT32, {67, 41, 11});
    Field other = field;
    auto* values = reinterpret_cast<float*>(other.bytes.data());
    std::fill_n(values, other.valueCount() / 2, 1.5f);
    Reused reused(preset, field, MemoryStrategy::PREALLOCATE);
    runAll(reused, field);
    runAll(reused, other);
    expectNoAllocations(reused, field, 3);
    expectNoAllocations(reused, other, 4);
  }
}

TEST(Allocation, ChainsOfTheOtherCodersTakeNothingFromTheHeapEither) {
  const auto values = wave(30'000);
  for (std::size_t chain = 0; chain < std::size(kCodeChains); ++chain) {
    Pipeline pipeline(byteCount(values), MemoryStrategy::PREALLOCATE);
    pipeline.setThreads(1);
    kCodeChains[chain](pipeline);
    roundTrip(pipeline, values);
    void* out = nullptr;
    std::size_t n = 0;
    EXPECT_EQ(allocationsOf([&] { pipeline.compress(values.data(), byteCount(values)); }), 0u)
        << "chain " << chain;
    EXPECT_EQ(allocationsOf([&] { pipeline.decompress(nullptr, 0, &out, &n); }), 0u)
        << "chain " << chain;
  }
}

// MINIMAL takes every buffer from the pool anew, whose lists of blocks are on the heap.
TEST(Allocation, WithMinimalOnlyThePoolsListsAreFromTheHeap) {
  constexpr std::size_t kMax = 16;  // two or three per buffer of the graph
  for (const Preset& preset : allPresets()) {
    if (searchesForPlan(preset)) {
      continue;
    }
    SCOPED_TRACE(std::string(preset.name));
    std::array<std::size_t, 2> n_compress = {};
    std::array<std::size_t, 2> n_decompress = {};
    for (const std::size_t i : {0u, 1u}) {
      const Field field = smoothField(DataType::FLOAT32, {67, 41, i == 0 ? 3u : 24u});
      Reused reused(preset, field, MemoryStrategy::MINIMAL);
      runAll(reused, field);
      n_compress[i] = reused.compressView(field);
      n_decompress[i] = reused.decompressOwnFrame();
    }
    EXPECT_LE(n_compress[0], kMax);
    EXPECT_LE(n_decompress[0], kMax);
    EXPECT_EQ(n_compress[0], n_compress[1]) << "grows with the data";
    EXPECT_EQ(n_decompress[0], n_decompress[1]) << "grows with the data";
  }
}

}  // namespace
}  // namespace fz::test
