#pragma once

namespace fz {

namespace cuda {
struct HandOver;
}
struct CudaRun;
struct GroupRun;

/// A stage of a fused group that has work behind the group's kernel, whose last kernel can end the
/// run as well: one more launch, only to hand the records over, takes a small call microseconds.
class RunEnd {
 public:
  /// endGroupCuda() of a run behind which nothing else is enqueued. False: no kernel of its own
  /// hands over.
  virtual bool endGroupAndRun(const CudaRun& /*run*/,
                              const GroupRun& /*group*/,
                              const cuda::HandOver& /*hand_over*/) {
    return false;
  }

 protected:
  RunEnd() = default;
  RunEnd(const RunEnd&) = default;
  RunEnd& operator=(const RunEnd&) = default;
  ~RunEnd() = default;
};

}  // namespace fz
