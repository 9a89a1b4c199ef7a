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

std::unique_ptr<Stage> newStage(std::uint16_t id, const std::vector<DataType>& types = {}) {
  const StageDescriptor* descriptor = findStage(id);
  FZ_ASSERT(descriptor != nullptr);
  return descriptor->make(types);
}
std::unique_ptr<Stage> newStage(StageType type, const std::vector<DataType>& types = {}) {
  return newStage(static_cast<std::uint16_t>(type), types);
}

/// A Mask like this one that leaves zeros in missing places.
Stage* addMaskLike(Pipeline& pipeline, const Stage& mask) {
  Stage* const added = pipeline.addStage(
      newStage(mask.getStageTypeId(), {static_cast<DataType>(mask.getInputDataType(0))}));
  setParam(*added, "hold", std::string("1"));
  if (const auto dims = mask.ownDims()) {
    added->setDims(*dims);
  }
  return added;
}

Stage* addShuffle(Pipeline& pipeline, std::int64_t element_width, Stage* producer) {
  Stage* const shuffle = pipeline.addStage(newStage(StageType::BITSHUFFLE));
  setParam(*shuffle, "element_width", element_width);
  if (producer != nullptr) {
    pipeline.connect(shuffle, producer);
  }
  return shuffle;
}

Stage* addRze(Pipeline& pipeline, Stage* producer) {
  Stage* const rze = pipeline.addStage(newStage(StageType::RZE));
  pipeline.connect(rze, producer);
  return rze;
}

/// RZE stores six bytes for a chunk of zeros, the same ones again and again. In bit planes of them
/// all bytes are alike, and their differences are zeros.
void addRepeatCoder(Pipeline& pipeline, Stage* producer) {
  Stage* const shuffle = addShuffle(pipeline, 1, producer);
  constexpr std::int64_t kLeastBlock = 1024;  // what is behind the last one stays as it is
  setParam(*shuffle, "block_size", kLeastBlock);
  Stage* const difference =
      pipeline.addStage(newStage(StageType::DIFFERENCE, {DataType::UINT8, DataType::UINT8}));
  pipeline.connect(difference, shuffle);
  addRze(pipeline, difference);
}

/// Hardly any value is valid where no more than one in so many is.
constexpr std::uint64_t kSparseShare = 64;

}  // namespace

/// A pipeline like this one that keeps every bit. Bitshuffle takes any bytes and stores as many, so
/// alone it makes the shortest frame there is, and before RZE one without the zeros.
std::unique_ptr<Pipeline> Pipeline::Impl::makeLossless(LosslessForm form,
                                                       const LosslessInput& input) {
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
  const bool has_mask = form == LosslessForm::kMasked || form == LosslessForm::kSparse;
  Stage* const mask = has_mask ? addMaskLike(*made, *input.mask) : nullptr;
  if (form == LosslessForm::kSparse) {
    addRepeatCoder(*made, addRze(*made, mask));
  } else {
    const std::size_t width = isKnown(lossless_type) ? getDataTypeSize(lossless_type) : 1;
    Stage* const shuffle = addShuffle(*made, static_cast<std::int64_t>(width), mask);
    if (form != LosslessForm::kStored) {
      addRze(*made, shuffle);
    }
  }
  if (has_mask) {
    made->setDims(frame_settings.dims);
  }
  made->finalize();
  return made;
}

/// The frame stays in the memory of its pipeline.
CompressedView Pipeline::Impl::runLossless(LosslessForm form, const LosslessInput& input) {
  const FrameDescription& description = input.description;
  if (std::exchange(lossless_type, description.type) != description.type) {
    for (std::unique_ptr<Pipeline>& other : lossless) {
      other.reset();
    }
  }
  std::unique_ptr<Pipeline>& made = lossless[static_cast<std::size_t>(form)];
  if (made == nullptr) {
    made = makeLossless(form, input);
  }
  Impl& other = *made->impl_;
  other.frame_settings.declared_type = description.type;
  other.frame_settings.declared_bound = description.bound;
  std::copy_n(description.dims.begin(), 3, other.frame_settings.dims.begin());
  if (form == LosslessForm::kMasked || form == LosslessForm::kSparse) {
    setParam(*other.entries.front().stage, "fill",
             input.mask->paramTable().find("fill")->get(*input.mask));
  }
  if (memory_limit_bytes > 0) {
    const std::size_t n_used = engine->buffers.currentBytes() + frame.capacity();
    other.memory_limit_bytes = std::max<std::size_t>(
        memory_limit_bytes - std::min(memory_limit_bytes, n_used), 1);  // 0 would be no limit
  }
  requireNotCancelled(progress);
  return made->compress(input.data, input.n_bytes, input.stream);
}

std::optional<CompressedView> Pipeline::Impl::tryLossless(LosslessForm form,
                                                          const LosslessInput& input,
                                                          std::size_t most_bytes) try {
  const CompressedView made = runLossless(form, input);
  if (made.n_bytes <= most_bytes) {
    return made;
  }
  dropLossless(form, input.stream);
  return std::nullopt;
} catch (const Error& error) {
  if (error.code() != ErrorCode::kLimit) {
    throw;
  }
  dropLossless(form, input.stream);
  return std::nullopt;
}

void Pipeline::Impl::dropLossless(LosslessForm form, cudaStream_t stream) {
  const std::unique_ptr<Pipeline>& made = lossless[static_cast<std::size_t>(form)];
  if (made != nullptr) {
    made->reset(stream);
    made->impl_->frame.release();
    made->impl_->pool.trim();
  }
}

/// The smaller of the two that need no Mask.
CompressedView Pipeline::Impl::compressLossless(const LosslessInput& input) {
  if (canBeCoded(input.n_bytes)) {
    const CompressedView coded = runLossless(LosslessForm::kCoded, input);
    if (coded.n_bytes <= input.n_bytes + kStoredFrameBytes) {
      return coded;
    }
    lossless[static_cast<std::size_t>(LosslessForm::kCoded)]->reset(input.stream);
  }
  return runLossless(LosslessForm::kStored, input);
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

/// The Mask that took missing values out of the last field, where that begins with it.
const Stage* Pipeline::Impl::maskOfLast() const {
  const Stage* const first = engine->graph.order().front()->stage;
  return first->missingCount() > 0 ? first : nullptr;
}

bool Pipeline::Impl::hasBound() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.stage->boundInfo().has_value(); });
}

/// A lossless frame instead of one that saves little may be smaller; of a pipeline without loss,
/// and of one that promises nothing, only what grew is replaced.
bool Pipeline::Impl::mayLosslessBeSmaller(std::size_t n_bytes) const {
  return savesLittle(frame_bytes, n_bytes) && frame_bytes > kCodedHeaderBytes &&
         canBeCoded(n_bytes) && hasBound();
}

/// Whether hardly any value is valid: then most of a frame is what coders store for each of their
/// blocks, which without loss may be next to nothing.
bool Pipeline::Impl::isSparse(std::size_t n_bytes) const {
  const Stage* const mask = maskOfLast();
  if (mask == nullptr || !canBeCoded(n_bytes) || !hasBound()) {
    return false;
  }
  const std::uint64_t n_values =
      n_bytes / getDataTypeSize(static_cast<DataType>(mask->getInputDataType(0)));
  return (n_values - mask->missingCount()) * kSparseShare <= n_values;
}

/// One that grew is always replaced.
std::optional<CompressedView> Pipeline::Impl::findSmaller(const LosslessInput& input) {
  const std::size_t limit = input.n_bytes + kStoredFrameBytes;
  const std::size_t most_bytes = std::min(frame_bytes - 1, limit);
  std::optional<CompressedView> made;
  if (isSparse(input.n_bytes)) {
    made = tryLossless(LosslessForm::kSparse, input, most_bytes);
  }
  const bool has_grown = frame_bytes > limit;
  if (made || !(has_grown || mayLosslessBeSmaller(input.n_bytes))) {
    return made;
  }
  if (input.mask != nullptr && canBeCoded(input.n_bytes)) {
    made = tryLossless(LosslessForm::kMasked, input, most_bytes);
  } else if (!has_grown) {
    made = tryLossless(LosslessForm::kCoded, input, most_bytes);
  }
  return made || !has_grown ? made : compressLossless(input);
}

void Pipeline::Impl::keepSmaller(const void* input, std::size_t n_bytes, cudaStream_t stream) {
  const bool has_grown = frame_bytes > n_bytes + kStoredFrameBytes;
  if (!usesFallback() || !(has_grown || mayLosslessBeSmaller(n_bytes) || isSparse(n_bytes))) {
    return;
  }
  const std::optional<CompressedView> made =
      findSmaller({input, n_bytes, describeLast(stream), maskOfLast(), stream});
  if (made) {
    // There is room, where a larger one was.
    copyAndWait(frame.data(), made->data, made->n_bytes, stream);
    frame_bytes = made->n_bytes;
    last_is_fallback = true;
  }
  for (std::size_t form = 0; form < kLosslessForms; ++form) {
    const std::unique_ptr<Pipeline>& other = lossless[form];
    if (made && other != nullptr && other->impl_->frame_bytes > 0) {
      last_header = other->impl_->last_header;
    }
    dropLossless(static_cast<LosslessForm>(form), stream);
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
