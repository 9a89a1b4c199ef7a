#pragma once

#include <memory>

#include "native_pipeline.h"

namespace fz::python {

/// A decoder of the current device for one call. It is kept for the next call when this one ends
/// well: making one takes longer than a GPU needs to decode some hundred megabytes. Its lock is
/// held as long as the object lives.
class CachedDecoder {
 public:
  CachedDecoder(int device, const DecodeSettings& settings);
  CachedDecoder(const CachedDecoder&) = delete;
  CachedDecoder& operator=(const CachedDecoder&) = delete;
  ~CachedDecoder();

  Pipeline& pipeline() const { return session_->pipeline; }
  const std::shared_ptr<Session>& session() const { return session_; }
  /// To be called when the result is complete; without it the decoder is thrown away.
  void keep() { is_good_ = true; }

 private:
  int device_;
  std::shared_ptr<Session> session_;
  std::unique_lock<std::mutex> lock_;
  bool is_good_ = false;
};

/// Throws away all decoders that wait for a call, and with them their device memory.
void clearDecoders();

}  // namespace fz::python
