#pragma once

#include <memory>
#include <string>

#include "pipeline/compressor.h"

namespace fz {

/// A pipeline on a device that a call has done with, kept with its memory for the next call that
/// asks for the same: making one takes longer than compressing a megabyte. Pipelines on the CPU are
/// not kept, as they are made in no time and their results live in their memory.
class KeptPipeline {
 public:
  /// The one that was kept under this key, for the device that is current; else none. `wish` is
  /// what the caller asked for: for the CPU nobody asks the driver.
  KeptPipeline(std::string key, Backend wish);
  KeptPipeline(const KeptPipeline&) = delete;
  KeptPipeline& operator=(const KeptPipeline&) = delete;
  /// Keeps it, unless nobody called keep().
  ~KeptPipeline();

  /// Null where none was kept: put() a new one.
  Pipeline* get() const { return pipeline_.get(); }
  void put(std::shared_ptr<Pipeline> pipeline) { pipeline_ = std::move(pipeline); }
  const std::shared_ptr<Pipeline>& shared() const { return pipeline_; }
  /// All went well, and nobody else will use it. One that failed is dropped.
  void keep() { is_kept_ = true; }

 private:
  std::string key_;
  std::shared_ptr<Pipeline> pipeline_;
  bool is_kept_ = false;
};

}  // namespace fz
