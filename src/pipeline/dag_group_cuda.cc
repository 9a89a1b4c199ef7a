// Running a fused group on a device: one kernel for all of its stages.
#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cuda/group/field_args.h"
#include "backends/cuda/group/plain_op.h"
#include "backends/cuda/group_kernels.h"
#include "backends/cuda/launch.h"
#include "core/require.h"
#include "fz/simple_stage.h"
#include "pipeline/dag_cuda.h"
#include "shared/bits.h"

namespace fz {

namespace {

SimpleStage& stageOf(const DAGNode& node) {
  return static_cast<SimpleStage&>(*node.stage);
}

}  // namespace

/// On a device a group must know the sizes between its stages; where only the data tell them
/// (behind a decoder that finds its size on the way), the stages run one after the other.
void CompressionDAG::dropUnsettledGroups() {
  for (std::size_t g = groups_.size(); g-- > 0;) {
    const FusedGroup& group = groups_[g];
    const DAGNode& last = *group.chain.back();
    const bool is_plain = last.tile_op.role != TileRole::kCoder;
    const auto isOpen = [&](int id) {
      return !bufferAt(id).size_exact && (bufferAt(id).is_virtual || is_plain);
    };
    const bool is_settled =
        std::none_of(group.chain.begin(), group.chain.end(), [&](const DAGNode* node) {
          return isOpen(node->input_buffer_ids.front()) || isOpen(node->output_buffer_ids.front());
        });
    if (is_settled) {
      continue;
    }
    fusion_notes_.push_back(group.name + ": only the data tell how many values there are");
    for (DAGNode* node : group.chain) {
      node->group = -1;
      for (const int id : node->output_buffer_ids) {
        bufferAt(id).is_virtual = false;
      }
    }
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(g));
    for (DAGNode* node : order_) {
      node->group -= node->group > static_cast<int>(g) ? 1 : 0;
    }
  }
}

void CompressionDAG::enqueueGroupCuda(FusedGroup& group, cudaStream_t stream) {
  CudaState& state = cudaState();
  const bool is_inverse = stageOf(*group.chain.front()).isInverse();
  struct Part {
    std::vector<CudaInput> inputs;
    std::vector<CudaOutput> outputs;
  };
  std::vector<Part> parts;
  unsigned n_passes = 1;
  for (DAGNode* node : group.chain) {
    const std::vector<std::size_t>& capacities =
        state.capacities[static_cast<std::size_t>(node->id)];
    prepareInputs(*node);
    for (const int id : node->output_buffer_ids) {
      const BufferInfo& buffer = bufferAt(id);
      if (!buffer.is_virtual) {
        provideOutput(id, capacities[static_cast<std::size_t>(buffer.producer_output_index)],
                      stream);
      } else {
        FZ_ASSERT(buffer.size_exact);
      }
    }
    parts.push_back({inputsCuda(*node), outputsCuda(*node, capacities)});
    stageOf(*node).setExecContext(exec_context_);
    stageOf(*node).beginRun();
    n_passes = std::max(n_passes, stageOf(*node).groupPasses());
  }
  const auto runOf = [&](std::size_t k) {
    return CudaRun{parts[k].inputs, parts[k].outputs,
                   state.block.onDevice(static_cast<std::size_t>(group.chain[k]->id)), stream,
                   pool_};
  };

  // The coder's side tells the number of values: it may differ from the field's.
  const bool has_coder = group.chain.back()->tile_op.role == TileRole::kCoder;
  const Part& last = parts.back();
  const bool is_coded_output =
      is_inverse == has_coder;  // decoders put values out, others take them
  const std::size_t coded_bytes =
      is_coded_output ? last.outputs[0].capacity_bytes : last.inputs[0].size.n_bytes;
  GroupRun run;
  run.shape = group.kernel->shape;
  run.n_values = coded_bytes / group.value_bytes;
  run.n_tiles =
      std::max<std::uint64_t>(1, bits::ceilDiv<std::uint64_t>(run.n_values, run.shape.tile_values));
  run.n_blocks = cuda::gridFor(run.n_tiles, 1);
  if (run.shape.blocks_per_processor != 0) {
    run.n_blocks =
        std::min(run.n_blocks, cuda::multiprocessorCount() * run.shape.blocks_per_processor);
  }
  run.all_passes = capture_mode_ || !caller_waits_;
  const unsigned first_pass = run.all_passes ? 0 : group.pass;
  const unsigned end_pass = run.all_passes ? n_passes : first_pass + 1;
  const ScratchScope scope(*this);
  for (run.pass = first_pass; run.pass < end_pass; ++run.pass) {
    GroupArgs args;
    group::FieldArgs field = {};
    if (is_inverse) {
      field.out = parts.front().outputs[0].data;
      field.size = {parts.front().outputs[0].capacity_bytes, nullptr};
    } else {
      field.in = parts.front().inputs[0].data;
      field.size = parts.front().inputs[0].size;
    }
    args.add(field);
    for (std::size_t k = 0; k < group.chain.size(); ++k) {
      stageOf(*group.chain[k]).beginGroupCuda(runOf(k), run, args);
    }
    if (!has_coder) {
      args.add(group::PlainArgs{last.inputs[0].data, last.outputs[0].data, run.n_values});
    }
    FZ_REQUIRE(args.fits() && args.size() == run.shape.args_bytes, ErrorCode::kInternal,
               "{}: the kernel takes {} bytes of arguments, {} came", group.name,
               run.shape.args_bytes, args.size());
    void* parameter = args.data();
    FZ_CUDA_CHECK(cudaLaunchKernel(group.kernel->function, dim3(run.n_blocks),
                                   dim3(run.shape.n_threads), &parameter, run.shape.shared_bytes,
                                   stream));
    for (std::size_t k = 0; k < group.chain.size(); ++k) {
      stageOf(*group.chain[k]).endGroupCuda(runOf(k), run);
    }
  }
  for (DAGNode* node : group.chain) {
    node->is_executed = true;
    releaseInputs(*node, stream);
  }
}

}  // namespace fz
