// What compress() gives instead of a larger lossy frame: the same values without loss.
#include <algorithm>
#include <optional>
#include <utility>

#include "backends/cpu/watched_executor.h"
#include "core/require.h"
#include "fz/params.h"
#include "fz/stage_descriptor.h"
#include "pipeline/compressor.h"
#include "pipeline/fill_check.h"
#include "pipeline/pipeline_impl.h"

namespace fz {

namespace {

// RZE counts its input in 32 bits.
constexpr std::size_t kCodedInputEnd = std::size_t{1} << 32;
// The core and the records of two stages and one segment.
constexpr std::size_t kCodedHeaderBytes = kCoreBytes + 3 * kRecordBytes;

/// With its second stage a frame pays off only from this length on.
bool canBeCoded(std::size_t n_bytes) {
  return n_bytes > kRecordBytes && n_bytes < kCodedInputEnd;
}

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

/// The frame stays in the memory of its pipeline.
CompressedView Pipeline::Impl::runLossless(const LosslessInput& input, bool coded) {
  const FrameDescription& description = input.description;
  const std::size_t value_bytes = isKnown(description.type) ? getDataTypeSize(description.type) : 1;
  if (std::exchange(lossless_value_bytes, value_bytes) != value_bytes) {
    lossless_coded.reset();
    lossless_stored.reset();
  }
  std::unique_ptr<Pipeline>& lossless = coded ? lossless_coded : lossless_stored;
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
  requireNotCancelled(progress);
  return lossless->compress(input.data, input.n_bytes, input.stream);
}

/// The smaller of the two that there are.
CompressedView Pipeline::Impl::compressLossless(const LosslessInput& input) {
  if (canBeCoded(input.n_bytes)) {
    const CompressedView coded = runLossless(input, true);
    if (coded.n_bytes <= input.n_bytes + kStoredFrameBytes) {
      return coded;
    }
    lossless_coded->reset(input.stream);
  }
  return runLossless(input, false);
}

/// The coded one, for a lossy frame that did not grow; nothing where the memory limit is too small
/// for both.
std::optional<CompressedView> Pipeline::Impl::tryLossless(const LosslessInput& input) try {
  return runLossless(input, true);
} catch (const Error& error) {
  if (error.code() != ErrorCode::kLimit) {
    throw;
  }
  return std::nullopt;
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

/// A lossless frame instead of one that saves little may be smaller; of a pipeline without loss,
/// and of one that promises nothing, only what grew is replaced.
bool Pipeline::Impl::mayLosslessBeSmaller(std::size_t n_bytes) const {
  return savesLittle(frame_bytes, n_bytes) && frame_bytes > kCodedHeaderBytes &&
         canBeCoded(n_bytes) && std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
           return entry.stage->boundInfo().has_value();
         });
}

void Pipeline::Impl::keepSmaller(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  const bool has_grown = frame_bytes > n_bytes + kStoredFrameBytes;
  if (!usesFallback() || !(has_grown || mayLosslessBeSmaller(n_bytes))) {
    return;
  }
  const LosslessInput same = {input, n_bytes, describeLast(stream), stream};
  const std::optional<CompressedView> made =
      has_grown ? std::optional(compressLossless(same)) : tryLossless(same);
  const bool is_smaller = made && made->n_bytes < frame_bytes;
  if (is_smaller) {
    // There is room, where a larger one was.
    copyAndWait(frame.data(), made->data, made->n_bytes, stream);
    frame_bytes = made->n_bytes;
    last_is_fallback = true;
  }
  for (const auto* lossless : {&lossless_coded, &lossless_stored}) {
    if (*lossless == nullptr) {
      continue;
    }
    Impl& other = *(*lossless)->impl_;
    if (is_smaller && other.frame_bytes > 0) {
      last_header = other.last_header;
    }
    (*lossless)->reset(stream);
    other.frame.release();
    other.pool.trim();
  }
}

void Pipeline::requireRangeWithoutFill(ByteView values,
                                       std::span<const double> fill,
                                       cudaStream_t stream) const try {
  // Other bounds are known without the frame, which may be on a device.
  const bool is_relative =
      std::any_of(impl_->entries.begin(), impl_->entries.end(), [](const Impl::Entry& entry) {
        const std::optional<BoundInfo> bound = entry.stage->boundInfo();
        return bound && bound->mode == ErrorBoundMode::NOA;
      });
  if (!is_relative || impl_->frame_bytes == 0) {
    return;
  }
  const FrameDescription description = impl_->describeLast(stream);
  const CpuExecutor* const executor = impl_->context.cpu;
  if (description.bound && description.original_bytes == values.size()) {
    checkRangeBound(*description.bound, description.type, values, fill,
                    executor != nullptr ? *executor : CpuExecutor::serial());
  }
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace fz
