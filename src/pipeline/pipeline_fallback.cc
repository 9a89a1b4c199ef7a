// What compress() gives instead of a frame that grew: the same values without loss.
#include <algorithm>
#include <utility>

#include "core/require.h"
#include "fz/params.h"
#include "fz/stage_descriptor.h"
#include "pipeline/compressor.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

// RZE counts its input in 32 bits.
constexpr std::size_t kCodedInputEnd = std::size_t{1} << 32;

std::unique_ptr<Stage> newStage(StageType type) {
  const StageDescriptor* descriptor = findStage(static_cast<std::uint16_t>(type));
  FZ_ASSERT(descriptor != nullptr);
  return descriptor->make({});
}

}  // namespace

/// A pipeline like this one that keeps every bit. Bitshuffle takes any bytes and stores as many, so
/// alone it makes the shortest frame there is, and before RZE one without the zeros.
std::unique_ptr<Pipeline> Pipeline::Impl::makeLossless(std::size_t value_bytes, bool coded) {
  auto made = std::make_unique<Pipeline>();
  made->setBackend(backend);
  if (backend == Backend::CUDA) {
    made->setDevice(device);
  } else {
    MemoryPoolConfig config;
    config.host_allocator = pool.getHostAllocator();
    made->getMemoryPool().reconfigure(config);
  }
  made->setFusion(context.fusion);
  made->setThreads(n_threads);
  Stage* shuffle = made->addStage(newStage(StageType::BITSHUFFLE));
  setParam(*shuffle, "element_width", static_cast<std::int64_t>(value_bytes));
  if (coded) {
    made->connect(made->addStage(newStage(StageType::RZE)), shuffle);
  }
  made->finalize();
  return made;
}

/// The smaller of the two; the frame stays in the memory of its pipeline.
CompressedView Pipeline::Impl::compressLossless(const void* input,
                                                std::size_t n_bytes,
                                                const FrameDescription& description,
                                                cudaStream_t stream) {
  const std::size_t value_bytes = isKnown(description.type) ? getDataTypeSize(description.type) : 1;
  if (std::exchange(lossless_value_bytes, value_bytes) != value_bytes) {
    lossless_coded.reset();
    lossless_stored.reset();
  }
  const auto run = [&](std::unique_ptr<Pipeline>& lossless, bool coded) {
    if (lossless == nullptr) {
      lossless = makeLossless(value_bytes, coded);
    }
    Impl& other = *lossless->impl_;
    other.frame_settings.declared_type = description.type;
    other.frame_settings.declared_bound = description.bound;
    std::copy_n(description.dims.begin(), 3, other.frame_settings.dims.begin());
    if (memory_limit_bytes > 0) {
      const std::size_t n_used = engine->buffers.currentBytes() + frame.capacity();
      other.memory_limit_bytes = std::max<std::size_t>(
          memory_limit_bytes - std::min(memory_limit_bytes, n_used), 1);  // 0 would be no limit
    }
    return lossless->compress(input, n_bytes, stream);
  };
  // With its second stage a frame pays off only from this length on.
  if (n_bytes > kRecordBytes && n_bytes < kCodedInputEnd) {
    const CompressedView coded = run(lossless_coded, true);
    if (coded.n_bytes <= n_bytes + kStoredFrameBytes) {
      return coded;
    }
    lossless_coded->reset(stream);
  }
  return run(lossless_stored, false);
}

/// On a device parts of the description are known there first.
FrameDescription Pipeline::Impl::describeLast(cudaStream_t stream) const {
  if (on_device != nullptr) {
    FrameHeader header;
    on_device->fetchHeader({frame.data(), frame_bytes}, header, stream);
    return header.description;
  }
  return last_header.description;
}

void Pipeline::Impl::storeIfGrown(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  if (!usesFallback() || frame_bytes <= n_bytes + kStoredFrameBytes) {
    return;
  }
  const CompressedView made = compressLossless(input, n_bytes, describeLast(stream), stream);
  // It is smaller than the frame that it replaces, so there is room.
  copyAndWait(frame.data(), made.data, made.n_bytes, stream);
  frame_bytes = made.n_bytes;
  last_is_fallback = true;
  for (const auto* lossless : {&lossless_coded, &lossless_stored}) {
    if (*lossless == nullptr) {
      continue;
    }
    Impl& other = *(*lossless)->impl_;
    if (other.frame_bytes > 0) {
      last_header = other.last_header;
    }
    (*lossless)->reset(stream);
    other.frame.release();
    other.pool.trim();
  }
}

}  // namespace fz
