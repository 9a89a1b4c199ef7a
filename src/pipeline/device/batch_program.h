#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

#include "backends/cuda/batch_kernels.h"
#include "backends/cuda/batch_memory.h"
#include "pipeline/device/batch_recording.h"

namespace fz {

/// The launches that one field takes, made once for all fields of a batch: what a pipeline has in
/// its memory every field gets for itself, and the kernels' parameters point there.
///
/// Which words of the parameters, and of the memory, are addresses is learnt from recordings of two
/// pipelines that have done the same: an address is what stands at the same place of the same block
/// of either, or at the same distance from the addresses that either was recorded with; everything
/// else must be the same in both.
class BatchProgram {
 public:
  BatchProgram() = default;
  BatchProgram(const BatchProgram&) = delete;
  BatchProgram& operator=(const BatchProgram&) = delete;
  ~BatchProgram();

  /// Null where the recordings do not fit each other. Both pipelines must be idle, and may be
  /// destroyed afterwards.
  static std::unique_ptr<BatchProgram> make(const BatchRecording& one,
                                            const BatchAddresses& at_one,
                                            const BatchRecording& other,
                                            const BatchAddresses& at_other,
                                            bool is_decoding);

  /// Room that the output of a field must have.
  std::size_t outputBytes() const { return output_bytes_; }
  /// Whether verdicts have the bound in use.
  bool knowsBound() const { return job_.bound_word != 0; }
  /// Device memory for each field.
  std::size_t fieldBytes() const { return memory_words_.size() * 8 + argument_words_.size() * 8; }

  /// What is to be looked at besides.
  struct Sampling {
    DataType type;
    std::uint64_t n_bytes;
  };
  /// Runs all fields and waits. Throws Error (kOutOfMemory, kCuda).
  void run(std::span<const cuda::FieldEnds> ends,
           const std::optional<Sampling>& sampling,
           cudaStream_t stream);
  /// Of the last run.
  const cuda::FieldVerdict& verdict(std::size_t field) const { return verdicts()[field]; }
  const cuda::FieldLook::Part& sample(std::size_t field) const { return samples()[field]; }

 private:
  struct Launch {
    const void* function;
    unsigned n_blocks;
    unsigned least_blocks;
    unsigned n_threads;
    std::size_t shared_bytes;
    std::size_t arguments_at;
    unsigned blocks_at_once;  ///< of the whole device
  };
  class Learner;

  cuda::FieldVerdict* verdicts() const {
    return reinterpret_cast<cuda::FieldVerdict*>(verdict_memory_.data());
  }
  cuda::FieldLook::Part* samples() const {
    return reinterpret_cast<cuda::FieldLook::Part*>(sample_memory_.data());
  }
  void takeMemory(std::size_t n_fields, cudaStream_t stream);
  void sendEnds(std::span<const cuda::FieldEnds> ends, cudaStream_t stream);
  /// Fields from `first` on, n of all.
  struct Part {
    unsigned first;
    unsigned n;
    unsigned n_all;
  };
  void launch(const Launch& launch, const Part& part, cudaStream_t stream) const;
  void launchAll(unsigned n_fields, const std::optional<Sampling>& sampling, cudaStream_t stream);

  bool is_decoding_ = false;
  std::size_t output_bytes_ = 0;
  std::vector<Launch> launches_;
  std::vector<std::uint64_t> memory_words_;
  std::vector<cuda::BatchMove> memory_moves_;
  std::vector<std::uint64_t> argument_words_;
  std::vector<cuda::BatchMove> argument_moves_;
  std::uint64_t results_at_ = 0;  ///< in a field's memory
  cuda::VerdictJob job_ = {};

  cuda::BatchMemory images_;     ///< words and moves of both images
  cuda::BatchMemory memory_;     ///< of the fields
  cuda::BatchMemory arguments_;  ///< of the fields
  cuda::BatchMemory ends_;
  cuda::BatchMemory pinned_ends_;
  cuda::BatchMemory verdict_memory_;
  cuda::BatchMemory sample_memory_;
  cudaStream_t side_ = nullptr;  ///< of higher priority; null: not asked for yet
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
  std::size_t n_prepared_ = 0;  ///< fields whose memory is as after a run
  std::size_t n_sent_ = 0;      ///< fields whose ends and arguments are there
};

}  // namespace fz
