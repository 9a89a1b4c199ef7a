#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cuda/device_image.h"
#include "backends/cuda/frame_kernels.h"
#include "format/frame_header.h"
#include "pipeline/frame/decode_plan.h"

namespace fz {

/// Decodes frames of one kind (one graph, one original length) without a look at them on the host:
/// the header is checked on the device against that of a frame which was decoded before, and sizes
/// and configs that data decide are taken from it there. Can be captured in a graph.
class AsyncDecoder {
 public:
  /// `header` and its bytes are those of a frame that has been decoded.
  AsyncDecoder(const FrameHeader& header,
               ByteView header_bytes,
               const std::vector<Stage*>& custom_stages,
               MemoryPool& pool);

  const DecodePlan& plan() const { return *plan_; }
  bool isFor(std::uint64_t original_bytes) const { return original_bytes == original_bytes_; }

  /// Enqueues a decode. All memory is in place from the second call on.
  void enqueue(const std::uint8_t* frame,
               std::size_t capacity_bytes,
               std::uint8_t* out,
               const ExecContext& context,
               cudaStream_t stream);
  /// The same for a frame of a batch: its start values stand there from the run before, nothing is
  /// written for a damaged frame, and the run ends with a readback.
  void enqueueForBatch(const std::uint8_t* frame,
                       std::size_t capacity_bytes,
                       std::uint8_t* out,
                       const ExecContext& context,
                       const cuda::Launcher& launcher);
  /// Records and state of that run.
  cuda::DeviceRunState& state();
  /// Bytes that were decoded, on the device.
  const std::uint64_t* lengthOnDevice() const;
  /// Once the stream is through: throws what was found, else returns the length.
  std::size_t finish(cudaStream_t stream);

 private:
  void enqueueRun(const std::uint8_t* frame,
                  std::size_t capacity_bytes,
                  std::uint8_t* out,
                  const ExecContext& context,
                  const cuda::Launcher& launcher,
                  bool is_for_batch);
  void planSizes(const FrameHeader& header);
  void listFields(const FrameHeader& header);

  MemoryPool& pool_;
  std::unique_ptr<DecodePlan> plan_;
  std::uint64_t original_bytes_;
  std::uint32_t header_bytes_;
  bool stores_offsets_ = true;  // headers say where segments begin
  std::vector<std::uint8_t> template_;
  std::vector<cuda::FieldTarget> fields_;
  DeviceImage template_image_;
  DeviceImage fields_image_;
  std::vector<int> segment_buffers_;        // by segment; -1: not needed
  std::vector<std::uint64_t> max_segment_;  // by segment
  std::vector<Scratch> segments_{FZM_MAX_BUFFERS};
};

}  // namespace fz
