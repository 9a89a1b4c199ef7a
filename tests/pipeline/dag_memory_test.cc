#include <cstdlib>
#include <gtest/gtest.h>
#include <numeric>

#include "coders/rle/rle.h"
#include "fz/error.h"
#include "mem/mempool.h"
#include "pipeline/dag.h"
#include "pipeline/run/engine.h"
#include "support/test_stages.h"
#include "transforms/zigzag/zigzag_stage.h"

// Memory of a graph that is driven by hand, on a pool whose allocations are counted.

namespace fz::test {
namespace {

/// Counts, and refuses from a given call on.
struct CountingAllocator {
  std::size_t n_taken = 0;
  std::size_t n_returned = 0;
  std::size_t n_allowed = static_cast<std::size_t>(-1);

  MemoryPoolConfig config() {
    MemoryPoolConfig config;
    config.host_allocator = {[](std::size_t n_bytes, void* self) -> void* {
                               auto& counter = *static_cast<CountingAllocator*>(self);
                               if (counter.n_taken >= counter.n_allowed) {
                                 return nullptr;
                               }
                               ++counter.n_taken;
                               return std::aligned_alloc(64, n_bytes);
                             },
                             [](void* memory, std::size_t /*n_bytes*/, void* self) {
                               ++static_cast<CountingAllocator*>(self)->n_returned;
                               std::free(memory);
                             },
                             this};
    return config;
  }
};

/// Zigzag -> PassThrough -> RLE on a pool of its own.
struct Chain {
  explicit Chain(CountingAllocator& counter, MemoryStrategy strategy)
      : pool(counter.config()), dag(&pool, strategy) {
    auto* first = dag.addStage(&zigzag);
    auto* second = dag.addStage(&pass);
    auto* third = dag.addStage(&rle);
    input = dag.setInputBuffer(first, byteCount());
    middle = dag.addDependency(second, first, byteCount());
    dag.addDependency(third, second, byteCount());
    output = dag.setOutputBuffer(third, byteCount());
    dag.finalize();
    std::iota(values.begin(), values.end(), -500);
  }
  std::size_t byteCount() const { return values.size() * sizeof(std::int32_t); }
  void run() {
    dag.reset();
    dag.updateBufferSize(input, byteCount());
    dag.setExternalPointer(input, values.data());
    dag.execute(nullptr);
  }

  std::vector<std::int32_t> values = std::vector<std::int32_t>(5000);
  MemoryPool pool;
  ZigzagStage<std::int32_t> zigzag;
  PassThroughStage pass;
  RLEStage<std::uint32_t> rle;
  CompressionDAG dag;
  int input = -1;
  int middle = -1;
  int output = -1;
};

class DagMemory : public testing::TestWithParam<MemoryStrategy> {};

TEST_P(DagMemory, OnlyTheFirstRunTakesMemoryFromTheSystem) {
  CountingAllocator counter;
  {
    Chain chain(counter, GetParam());
    chain.run();
    const std::size_t n_taken = counter.n_taken;
    EXPECT_GT(n_taken, 0u);
    for (int i = 0; i < 5; ++i) {
      chain.run();
    }
    EXPECT_EQ(counter.n_taken, n_taken);
    EXPECT_EQ(counter.n_taken, chain.pool.getSystemAllocationCount());
    EXPECT_EQ(counter.n_returned, 0u);
  }
  EXPECT_EQ(counter.n_returned, counter.n_taken);
}

TEST_P(DagMemory, MemoryThatCannotBeHadIsAnErrorAndTheGraphStaysUsable) {
  CountingAllocator probe;
  Chain(probe, GetParam()).run();
  for (std::size_t n_allowed = 0; n_allowed < probe.n_taken; ++n_allowed) {
    CountingAllocator counter;
    Chain chain(counter, GetParam());
    counter.n_allowed = n_allowed;
    try {
      chain.run();
      ADD_FAILURE() << n_allowed << " allocations were enough";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory) << e.what();
    }
    counter.n_allowed = static_cast<std::size_t>(-1);
    chain.run();
    EXPECT_GT(chain.dag.getBufferSize(chain.output), 0u);
  }
}

TEST_P(DagMemory, APersistentBufferKeepsItsPlaceAcrossReset) {
  CountingAllocator counter;
  Chain chain(counter, GetParam());
  chain.dag.setBufferPersistent(chain.middle, true);
  chain.run();
  const void* place = chain.dag.getBuffer(chain.middle);
  ASSERT_NE(place, nullptr);
  chain.dag.reset();
  EXPECT_EQ(chain.dag.getBuffer(chain.middle), place);
  chain.run();
  EXPECT_EQ(chain.dag.getBuffer(chain.middle), place);
}

TEST_P(DagMemory, LentMemoryIsSeenAndUsed) {
  CountingAllocator counter;
  Chain chain(counter, GetParam());
  std::vector<std::uint32_t> codes(chain.values.size());
  chain.dag.engine().buffers.lendOutput(chain.middle, codes.data(), chain.byteCount());
  chain.run();
  EXPECT_EQ(chain.dag.getBuffer(chain.input), chain.values.data());
  EXPECT_EQ(chain.dag.getBuffer(chain.middle), codes.data());
  EXPECT_EQ(codes[0], 999u);  // zigzag of -500
  EXPECT_EQ(codes[500], 0u);
}

TEST_P(DagMemory, ALimitIsKeptAndTheGraphStaysUsable) {
  CountingAllocator counter;
  Chain chain(counter, GetParam());
  chain.dag.engine().buffers.setLimit(100);
  try {
    chain.run();
    ADD_FAILURE() << "the limit was ignored";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kLimit);
  }
  chain.dag.engine().buffers.setLimit(0);
  chain.run();
  EXPECT_GT(chain.dag.getBufferSize(chain.output), 0u);
}

INSTANTIATE_TEST_SUITE_P(CompressionDAG,
                         DagMemory,
                         testing::Values(MemoryStrategy::MINIMAL, MemoryStrategy::PREALLOCATE),
                         [](const auto& row) {
                           return row.param == MemoryStrategy::MINIMAL ? "Minimal" : "Preallocate";
                         });

TEST(CompressionDAG, EditsAfterFinalizeAndUnknownBuffersAreRefused) {
  CountingAllocator counter;
  Chain chain(counter, MemoryStrategy::MINIMAL);
  PassThroughStage extra;
  EXPECT_THROW(chain.dag.addStage(&extra), Error);
  EXPECT_THROW(chain.dag.finalize(), Error);
  EXPECT_THROW(chain.dag.getBuffer(99), Error);
  EXPECT_THROW(chain.dag.getBufferInfo(-1), Error);

  CompressionDAG open(&chain.pool);
  DAGNode* a = open.addStage(&extra);
  EXPECT_THROW(open.execute(nullptr), Error);
  EXPECT_THROW(open.addDependency(a, a, 0), Error);
  EXPECT_FALSE(open.connectExistingOutput(a, a, 3));
  EXPECT_THROW(open.addStage(nullptr), Error);
}

}  // namespace
}  // namespace fz::test
