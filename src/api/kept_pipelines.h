#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/compressor.h"

namespace fz {

/// Pipelines that one thread keeps from field to field of a batch, those on the CPU too.
class OwnPipelines {
 public:
  /// The one that was put under this key, else null.
  std::shared_ptr<Pipeline> take(const std::string& key);
  void put(std::string key, std::shared_ptr<Pipeline> pipeline);

 private:
  std::list<std::pair<std::string, std::shared_ptr<Pipeline>>> kept_;  ///< the last one put first
};

/// A pipeline on a device that a call has done with, kept with its memory for the next call that
/// asks for the same: making one takes longer than compressing a megabyte. Pipelines on the CPU are
/// kept in a batch alone: otherwise they are made in no time, and their results live in their
/// memory.
class KeptPipeline {
 public:
  /// The one that was kept under this key, for the device that is current; else none. `wish` is
  /// what the caller asked for: for the CPU nobody asks the driver. `own`, where it is not null,
  /// keeps those on the CPU.
  KeptPipeline(std::string key, Backend wish, OwnPipelines* own = nullptr);
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
  OwnPipelines* own_;
  std::shared_ptr<Pipeline> pipeline_;
  bool is_kept_ = false;
};

}  // namespace fz
