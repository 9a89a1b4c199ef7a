// The stage on a device: a kernel for when it runs alone, and its op in fused groups.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "fz/cuda_part.h"
#include "offset_map_text.h"
#include "offset_stage.h"

namespace example {

namespace {

constexpr unsigned kThreads = 256;

struct Encode {
  OffsetMap map;
  __device__ std::int32_t operator()(std::int32_t value) const { return map.encode(value); }
};
struct Decode {
  OffsetMap map;
  __device__ std::int32_t operator()(std::int32_t code) const { return map.decode(code); }
};

/// out[i] = f(in[i]). Where only the device knows the size, the record must hear of it.
template <class F>
__global__ void mapKernel(fz::CudaInput in, fz::CudaOutput out, fz::StageRecord* record, F f) {
  const std::uint64_t n_bytes = in.size.on_device == nullptr ? in.size.n_bytes : *in.size.on_device;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i == 0 && !out.size_known) {
    record->n_bytes[0] = n_bytes;
  }
  if (i < n_bytes / sizeof(std::int32_t)) {
    reinterpret_cast<std::int32_t*>(out.data)[i] =
        f(reinterpret_cast<const std::int32_t*>(in.data)[i]);
  }
}

class OffsetCuda final : public fz::CudaPart {
 public:
  explicit OffsetCuda(OffsetStage& stage) : stage_(stage) {}

  void encode(const fz::cuda::Call& call) override { enqueue(call, Encode{stage_.map()}); }
  void decode(const fz::cuda::Call& call) override { enqueue(call, Decode{stage_.map()}); }

  fz::TileOp tileOp() const override { return fz::MapOp{}; }
  std::string tileOpType() const override {
    return "fz::group::ValueMap<std::int32_t, std::int32_t, example::OffsetMap>";
  }
  std::string tileOpHeader() const override { return "backends/cuda/group/value_map.cuh"; }
  std::string tileOpSource() const override { return kOffsetMapText; }
  void beginGroup(const fz::cuda::Call& call,
                  const fz::GroupRun& /*group*/,
                  fz::GroupArgs& args) override {
    stage_.requireWholeValues(call.inputs[0].size.n_bytes);
    args.add(stage_.map());
  }

 private:
  template <class F>
  void enqueue(const fz::cuda::Call& call, F f) const {
    const fz::CudaInput& in = call.inputs[0];
    if (in.size.isExact()) {
      stage_.requireWholeValues(in.size.n_bytes);
    }
    const std::size_t n_values = in.size.n_bytes / sizeof(std::int32_t);
    const std::size_t n_blocks = std::max<std::size_t>(1, (n_values + kThreads - 1) / kThreads);
    mapKernel<<<static_cast<unsigned>(n_blocks), kThreads, 0, call.stream>>>(in, call.outputs[0],
                                                                             call.record, f);
    FZ_CUDA_CHECK(cudaGetLastError());
  }

  OffsetStage& stage_;
};

std::unique_ptr<fz::CudaPart> makePart(fz::SimpleStage& stage) {
  return std::make_unique<OffsetCuda>(static_cast<OffsetStage&>(stage));
}

}  // namespace

fz::MakeCudaPart offsetCudaPart() {
  return &makePart;
}

}  // namespace example
