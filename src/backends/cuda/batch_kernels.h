#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "backends/cuda/field_look.h"
#include "fz/data_type.h"
#include "fz/device_types.h"

namespace fz::cuda {

/// What the caller gave for a field of a batch: addresses and lengths, as words.
struct FieldEnds {
  std::uint64_t value[3];
};

/// A word of an image that is an address, and so another one for every field: `offset` bytes behind
/// the field's own memory (kind 0), or behind value[kind - 1] of its FieldEnds.
struct BatchMove {
  std::uint32_t word;
  std::uint32_t kind;
  std::uint64_t offset;
};

/// Bytes that each field of a batch has for itself, all on the device.
struct BatchImage {
  const std::uint64_t* words;
  std::uint32_t n_words;
  const BatchMove* moves;
  std::uint32_t n_moves;
};

/// A place for each field of a batch.
struct EachPlace {
  std::uint8_t* data;
  std::uint64_t stride;
};

/// The image for every field to `to`; kind 0 is `memory`.
void enqueueImages(const BatchImage& image,
                   const EachPlace& to,
                   const EachPlace& memory,
                   const FieldEnds* ends,
                   unsigned n_fields,
                   cudaStream_t stream);

/// What the host must know of a field.
struct FieldVerdict {
  std::uint64_t n_bytes;  ///< of its frame
  double absolute;        ///< the bound in use
  std::uint64_t needs_host;
};

/// Looks over the records that the runs of a batch have left.
struct VerdictJob {
  static constexpr std::uint32_t kMaxRecords = 16;

  EachPlace results;  ///< records, and behind them a FrameState
  std::uint32_t n_records;
  std::uint32_t quiet[kMaxRecords];  ///< CudaPart::quietValues()
  std::uint32_t bound_word;          ///< of the results; 0: there is none
  bool is_decoding;
  FieldVerdict* verdicts;  ///< of the host
};
void enqueueVerdicts(const VerdictJob& job, unsigned n_fields, cudaStream_t stream);

/// FieldLook::sample() of the fields at value[0], without declared values, to memory of the host.
void enqueueSamples(const FieldEnds* ends,
                    DataType type,
                    std::uint64_t n_bytes,
                    FieldLook::Part* samples,
                    unsigned n_fields,
                    cudaStream_t stream);

}  // namespace fz::cuda
