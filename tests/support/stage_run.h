#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "fzm_format.h"
#include "stage/stage_factory.h"
#include "support/stage_case.h"

/// Running one stage as a pipeline would, in memory of any kind.
namespace fz::test {

constexpr int kMaxStageAttempts = 8;

/// Where a stage runs: inputs of that side, and what Stage needs to know.
struct StageInputs {
  std::vector<void*> data;
  std::vector<std::size_t> n_bytes;
  const ExecContext* context;
  MemoryPool* pool;
};

template <class Buffer>
std::vector<Buffer> makeBuffers(const std::vector<std::size_t>& sizes, std::uint8_t poison) {
  std::vector<Buffer> buffers;
  for (const std::size_t n : sizes) {
    buffers.emplace_back(n, poison);
  }
  return buffers;
}

template <class Buffer>
std::vector<void*> pointers(std::vector<Buffer>& buffers) {
  std::vector<void*> all;
  for (Buffer& b : buffers) {
    all.push_back(b.data());
  }
  return all;
}

/// `Buffer`: made of a size and a poison, with a guard behind it; data(), take(n), isIntact().
template <class Buffer>
Encoded runEncoder(Stage& stage, const StageInputs& inputs, std::uint8_t poison) {
  stage.setExecContext(inputs.context);
  stage.setInverse(false);
  stage.beginRun();
  const std::vector<std::size_t> limits = stage.maxOutputSizes(inputs.n_bytes);
  std::vector<std::size_t> sizes = stage.estimateOutputSizes(inputs.n_bytes);
  for (int attempt = 0;; ++attempt) {
    std::vector<Buffer> buffers = makeBuffers<Buffer>(sizes, poison);
    stage.setOutputCapacities(sizes);
    stage.execute(nullptr, inputs.pool, inputs.data, pointers(buffers), inputs.n_bytes);
    for (const Buffer& b : buffers) {
      EXPECT_TRUE(b.isIntact()) << stage.getName() << " wrote past the end of an output";
    }
    const std::vector<std::size_t> needed = stage.neededOutputSizes();
    if (!needed.empty() && attempt < kMaxStageAttempts) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sizes[i] = std::max(sizes[i], needed[i]);
      }
      continue;
    }
    if (stage.wantsRerun() && attempt < kMaxStageAttempts) {
      continue;
    }
    stage.postStreamSync(nullptr);
    stage.checkResult();
    Encoded encoded;
    encoded.version = stage.getStageVersion();
    encoded.config.resize(FZM_STAGE_CONFIG_SIZE);
    encoded.config.resize(stage.serializeHeader(0, encoded.config.data(), encoded.config.size()));
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const std::size_t n_used = stage.getActualOutputSize(static_cast<int>(i));
      EXPECT_LE(n_used, sizes[i]) << stage.getName() << " port " << i;
      EXPECT_LE(n_used, limits[i]) << stage.getName() << " port " << i << " exceeds its limit";
      encoded.streams.push_back(buffers[i].take(std::min(n_used, sizes[i])));
    }
    return encoded;
  }
}

/// Throws what the stage throws, after a look at the guards.
template <class Buffer>
Bytes runDecoder(Stage& stage, const StageInputs& inputs) {
  stage.setExecContext(inputs.context);
  stage.setInverse(true);
  std::vector<std::size_t> sizes = stage.estimateOutputSizes(inputs.n_bytes);
  for (int attempt = 0;; ++attempt) {
    std::vector<Buffer> buffers = makeBuffers<Buffer>(sizes, 0xEE);
    stage.setOutputCapacities(sizes);
    try {
      stage.execute(nullptr, inputs.pool, inputs.data, pointers(buffers), inputs.n_bytes);
    } catch (...) {
      EXPECT_TRUE(buffers[0].isIntact()) << stage.getName() << " wrote past its output, then threw";
      throw;
    }
    EXPECT_TRUE(buffers[0].isIntact()) << stage.getName() << " decoder wrote past its output";
    const std::vector<std::size_t> needed = stage.neededOutputSizes();
    if (!needed.empty() && attempt < kMaxStageAttempts) {
      sizes[0] = std::max(sizes[0], needed[0]);
      continue;
    }
    stage.checkResult();
    const std::size_t n_used = stage.getActualOutputSize(0);
    EXPECT_LE(n_used, sizes[0]);
    return buffers[0].take(std::min(n_used, sizes[0]));
  }
}

}  // namespace fz::test
