#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/frame_header.h"
#include "fz/stage_dims.h"
#include "pipeline/pool_buffer.h"
#include "pipeline/run/engine.h"

namespace fz {

class CpuExecutor;

/// What frames say about their data beyond what the stages know.
struct FrameSettings {
  std::array<std::size_t, 3> dims = {0, 1, 1};
  /// Of the input, for frames whose first stage takes any bytes.
  DataType declared_type = DataType::UNKNOWN;
  /// What frames promise where no stage has a bound of its own.
  std::optional<BoundInfo> declared_bound = {};
};

/// Turns the outputs of an engine's stages into frames.
class FrameWriter {
 public:
  explicit FrameWriter(Engine& engine) : engine_(engine) {}

  /// Decides which buffers are stored, in which order, and their ids in the frame. `source_buffer`
  /// is the engine's input. Throws Error(kGraph).
  void placeSinks(int source_buffer);

  int sourceBuffer() const { return source_buffer_; }
  /// Buffers that are stored, in the order of the frame.
  const std::vector<int>& sinks() const { return sinks_; }
  /// Where the first segment begins. Before a run of pipelines whose header depends on their data
  /// placeHeader() says so; until then it is more than any of them takes.
  std::size_t headerBytes() const { return header_bytes_; }
  /// Leaves room for the header of the next run, as far as settings tell how long it is.
  void placeHeader(std::size_t n_bytes,
                   std::size_t padded_bytes,
                   const FrameSettings& settings,
                   FrameHeader& header);
  /// What no header of these stages exceeds.
  std::size_t maxHeaderBytes() const { return max_header_bytes_; }

  /// What the first stage reads; where it takes any bytes, what the caller says that they are.
  DataType sourceType(std::size_t n_bytes, const FrameSettings& settings) const;
  /// Bytes of a value of the first stage; 1 where it takes any bytes.
  std::size_t sourceValueBytes() const;

  /// The header of the last run, but for its checksums, into one that is used again and again, so
  /// that nothing is allocated.
  void describe(std::size_t n_bytes,
                std::size_t padded_bytes,
                const FrameSettings& settings,
                FrameHeader& header) const;
  /// Host memory: moves the segments behind the first, which was written in place, to theirs and
  /// writes the header; a first segment that a longer or shorter header misplaced moves as well.
  /// Returns the bytes of the frame. Throws Error (kLimit, kOutOfMemory).
  std::size_t assemble(FrameHeader& header, PoolBuffer& frame, const CpuExecutor& executor) const;
  /// Bytes of all segments but the first, as far as they are known.
  std::size_t otherSegmentBytes() const;

 private:
  StageDims shapeOf(std::size_t n_values, const FrameSettings& settings) const;

  Engine& engine_;
  int source_buffer_ = -1;
  std::vector<int> sinks_;
  std::vector<std::string> sink_names_;   // their ports
  std::vector<std::uint16_t> frame_ids_;  // buffer -> id in the frame
  std::size_t header_bytes_ = 0;
  std::size_t max_header_bytes_ = 0;
  bool is_compact_ = false;
};

}  // namespace fz
