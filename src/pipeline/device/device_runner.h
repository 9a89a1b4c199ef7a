#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "format/frame_header.h"
#include "fz/span.h"
#include "fz/stream.h"
#include "pipeline/frame/decoder.h"

namespace fz {

class Stage;
struct PipelineCore;
struct BatchAddresses;
struct BatchRecording;

/// The header of the frame that a pipeline opened and decoded last, and what did it, or null.
struct LastDecoded {
  const FrameHeader& header;
  const FrameDecoder* decoder;
};

/// The part of a pipeline that works on a device: runs, frames, graphs. The CPU has none.
class DeviceRunner {
 public:
  DeviceRunner() = default;
  DeviceRunner(const DeviceRunner&) = delete;
  DeviceRunner& operator=(const DeviceRunner&) = delete;
  virtual ~DeviceRunner() = default;

  /// One run over zeros of this length, so that compress() finds all memory in place: what stages
  /// keep on the device they take when they run. Throws Error(kOutOfMemory).
  virtual void prepare(std::size_t n_bytes) = 0;
  /// Compresses into the pipeline's frame, which is complete on return; returns its bytes.
  virtual std::size_t compress(const void* input, std::size_t n_bytes, cudaStream_t stream) = 0;
  /// Enqueues a compression into the caller's buffer; the frame's size goes to d_frame_bytes.
  virtual void compressAsync(const void* input,
                             std::size_t n_bytes,
                             void* d_frame,
                             std::size_t capacity_bytes,
                             std::uint64_t* d_frame_bytes,
                             cudaStream_t stream) = 0;
  /// Enqueues the decoding of a frame like the last one that was opened and decoded.
  virtual void decompressAsync(const void* d_frame,
                               std::size_t capacity_bytes,
                               void* d_out,
                               std::size_t original_bytes,
                               std::uint64_t* d_out_bytes,
                               const LastDecoded& last,
                               cudaStream_t stream) = 0;
  /// Waits for the last compressAsync or decompressAsync and throws what it found.
  virtual std::size_t finishAsync(cudaStream_t stream) = 0;

  /// For batches: records the launches of a compression and of a decoding whose fields stand at
  /// addresses that need not exist, when this pipeline has done such a compression, and one
  /// decoding of its frame. False: a batch cannot do without the host, or needs a kernel that has
  /// no form for many fields.
  virtual bool recordCompress(std::size_t n_bytes,
                              const BatchAddresses& at,
                              BatchRecording& recording) = 0;
  virtual bool recordDecompress(std::size_t original_bytes,
                                const BatchAddresses& at,
                                BatchRecording& recording,
                                const FrameHeader& last_header,
                                const FrameDecoder* decoder) = 0;

  /// Captures a run over inputs of up to this many bytes.
  virtual void captureGraph(std::size_t n_bytes, cudaStream_t stream) = 0;
  virtual bool isGraphCaptured() const = 0;

  /// Reads a frame's header; `frame` becomes device memory, aligned. The device goes on to compute
  /// the payload's checksum.
  virtual void openFrame(ByteView& frame, FrameHeader& header, cudaStream_t stream) = 0;
  /// After it the device reads that frame no more.
  virtual void closeFrame() noexcept = 0;
  /// How to decode the frame that is open.
  virtual void prepareDecoder(FrameDecoder& decoder) = 0;
  /// The header of any frame on the device, which is not opened by that. Waits.
  virtual void fetchHeader(ByteView frame, FrameHeader& header, cudaStream_t stream) = 0;

  /// One that nobody else uses, made when it is asked for.
  virtual cudaStream_t ownStream() = 0;
  /// Values of the host in memory of the device, behind what the stream has; there until the next
  /// call. Throws Error(kOutOfMemory).
  virtual const void* upload(ByteView values, cudaStream_t stream) = 0;
  virtual void clear(void* memory, std::size_t n_bytes, cudaStream_t stream) = 0;
  /// Copies between any two places and waits. `ends_call`: the copy is part of the timed call.
  virtual void copyAndWait(
      void* to, const void* from, std::size_t n_bytes, cudaStream_t stream, bool ends_call) = 0;
  /// From the first to the last work that the current call gave its stream.
  virtual float callMilliseconds() const = 0;
};

/// Throws Error(kNoDevice) in a build without CUDA.
std::unique_ptr<DeviceRunner> makeDeviceRunner(PipelineCore& core);

}  // namespace fz
