// Running a fused group on a device: one kernel for all of its stages.
#include <algorithm>

#include <cuda_runtime_api.h>

#include "backends/cuda/group/field_args.h"
#include "backends/cuda/group/plain_op.h"
#include "backends/cuda/group_kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/run_context.h"
#include "core/require.h"
#include "core/stage_access.h"
#include "pipeline/dag_cuda.h"
#include "pipeline/tile_role.h"
#include "shared/bits.h"
#include "shared/function_ref.h"

namespace fz {

namespace {

SimpleStage& stageOf(const DAGNode& node) {
  return static_cast<SimpleStage&>(*node.stage);
}

/// One stage's share of a run.
struct GroupPart {
  SimpleStage* stage;
  std::vector<CudaInput> inputs;
  std::vector<CudaOutput> outputs;
  StageRecord* record;
};

bool hasCoder(const FusedGroup& group) {
  return std::holds_alternative<CoderOp>(group.chain.back()->tile_op);
}

/// The coder's side tells the number of values: it may differ from the field's.
std::size_t codedBytes(const FusedGroup& group, const GroupPart& last) {
  const bool puts_values_out = last.stage->isInverse() == hasCoder(group);  // others take them in
  return puts_values_out ? last.outputs[0].capacity_bytes : last.inputs[0].size.n_bytes;
}

GroupRun planRun(const FusedGroup& group, const GroupPart& last) {
  GroupRun run;
  run.shape = group.kernel->shape;
  run.n_values = codedBytes(group, last) / group.value_bytes;
  run.n_tiles =
      std::max<std::uint64_t>(1, bits::ceilDiv<std::uint64_t>(run.n_values, run.shape.tile_values));
  run.n_blocks = cuda::gridFor(run.n_tiles, 1);
  if (run.shape.blocks_per_processor != 0) {
    run.n_blocks =
        std::min(run.n_blocks, cuda::multiprocessorCount() * run.shape.blocks_per_processor);
  }
  return run;
}

group::FieldArgs fieldOf(const GroupPart& first, const std::uint64_t* gate) {
  group::FieldArgs field = {};
  if (first.stage->isInverse()) {
    field.out = first.outputs[0].data;
    field.size = {first.outputs[0].capacity_bytes, gate};
  } else {
    field.in = first.inputs[0].data;
    field.size = first.inputs[0].size;
  }
  return field;
}

/// Whether the field is sure to be whole values of the group. Stages that take values see to that
/// themselves.
bool hasWholeField(const CompressionDAG& dag, const FusedGroup& group) {
  const DAGNode& first = *group.chain.front();
  if (takesValues(first.tile_op)) {
    return true;
  }
  const bool is_inverse = first.stage->isInverse();
  const BufferInfo& field = dag.getBufferInfo(is_inverse ? first.output_buffer_ids.front()
                                                         : first.input_buffer_ids.front());
  if (field.size_exact) {
    return field.size % group.value_bytes == 0;
  }
  if (is_inverse || field.producer_stage_id < 0) {
    return group.value_bytes == 1;
  }
  const Stage& producer = *dag.getNodes()[static_cast<std::size_t>(field.producer_stage_id)]->stage;
  const auto type = static_cast<DataType>(
      producer.getOutputDataType(static_cast<std::size_t>(field.producer_output_index)));
  return (isKnown(type) ? getDataTypeSize(type) : 1) % group.value_bytes == 0;
}

CudaPart& deviceSide(const GroupPart& part) {
  return *StageAccess::cudaPart(*part.stage);
}

/// What the stages need after the kernel. Where nothing comes behind it, the last stage that can
/// ends the run.
void endPass(const std::vector<GroupPart>& parts,
             const GroupRun& group_run,
             FunctionRef<cuda::Call(const GroupPart&)> call_of,
             cuda::RunContext* run_to_end) {
  const GroupPart* last = nullptr;
  for (const GroupPart& part : parts) {
    last = run_to_end != nullptr && deviceSide(part).endsRuns() ? &part : last;
  }
  for (const GroupPart& part : parts) {
    if (&part != last) {
      deviceSide(part).endGroup(call_of(part), group_run);
    }
  }
  if (last != nullptr) {
    run_to_end->openReadback();
    deviceSide(*last).endGroup(call_of(*last), group_run);
    run_to_end->closeReadback();
  }
}

/// Enqueues one pass: what the stages need before the kernel, the kernel, what they need after it.
/// A kernel that is told where to look whether it may write need not be waited for.
void enqueuePass(const FusedGroup& group,
                 const std::vector<GroupPart>& parts,
                 const GroupRun& run,
                 MemoryPool* pool,
                 cuda::RunContext& context,
                 FunctionRef<void()> before_output,
                 bool ends_run) {
  const auto callOf = [&](const GroupPart& part) {
    return cuda::Call{part.inputs, part.outputs, part.record, context.stream(), pool, &context};
  };
  const std::uint64_t* gate = context.mayWrite();
  if (gate == nullptr) {
    before_output();
  }
  GroupArgs args;
  args.add(fieldOf(parts.front(), gate));
  for (const GroupPart& part : parts) {
    deviceSide(part).beginGroup(callOf(part), run, args);
  }
  if (!hasCoder(group)) {
    const GroupPart& last = parts.back();
    args.add(group::PlainArgs{last.inputs[0].data, last.outputs[0].data, run.n_values});
  }
  FZ_REQUIRE(args.fits() && args.size() == run.shape.args_bytes, ErrorCode::kInternal,
             "{}: the kernel takes {} bytes of arguments, {} came", group.name,
             run.shape.args_bytes, args.size());
  const cuda::KernelLaunch::Parameter parameter = {args.data(), args.size()};
  callOf(parts.front())
      .launch({group.kernel->function,
               group.name.c_str(),
               run.n_blocks,
               run.shape.n_threads,
               run.shape.shared_bytes,
               {&parameter, 1}});
  if (gate != nullptr) {
    before_output();
  }
  endPass(parts, run, callOf, ends_run ? &context : nullptr);
}

}  // namespace

/// On a device a group must know the sizes between its stages; where only the data tell them
/// (behind a decoder that finds its size on the way), the stages run one after the other. So they
/// do where bytes are left behind the last whole value: a group works on values, and Bitshuffle,
/// which takes any bytes, keeps those of its end as they are.
void CompressionDAG::dropUnsettledGroups() {
  for (std::size_t g = groups_.size(); g-- > 0;) {
    const FusedGroup& group = groups_[g];
    const DAGNode& last = *group.chain.back();
    const bool is_plain = !std::holds_alternative<CoderOp>(last.tile_op);
    const auto isOpen = [&](int id) {
      return !bufferAt(id).size_exact && (bufferAt(id).is_virtual || is_plain);
    };
    const auto isRagged = [&](int id) {
      return bufferAt(id).is_virtual && bufferAt(id).size % group.value_bytes != 0;
    };
    const auto isAny = [&](auto holds) {
      return std::any_of(group.chain.begin(), group.chain.end(), [&](const DAGNode* node) {
        return holds(node->input_buffer_ids.front()) || holds(node->output_buffer_ids.front());
      });
    };
    const bool is_open = isAny(isOpen);
    if (!is_open && !isAny(isRagged) && hasWholeField(*this, group)) {
      continue;
    }
    fusion_notes_.push_back(group.name + (is_open
                                              ? ": only the data tell how many values there are"
                                              : ": the bytes may be no whole number of values"));
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

void CompressionDAG::enqueueGroupCuda(FusedGroup& group, cuda::RunContext& context) {
  const cudaStream_t stream = context.stream();
  CudaState& state = cudaState();
  std::vector<GroupPart> parts;
  unsigned n_passes = 1;
  for (DAGNode* node : group.chain) {
    const auto i = static_cast<std::size_t>(node->id);
    const std::vector<std::size_t>& capacities = state.capacities[i];
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
    SimpleStage& stage = stageOf(*node);
    parts.push_back(
        {&stage, inputsCuda(*node), outputsCuda(*node, capacities), state.block.onDevice(i)});
    stage.setExecContext(exec_context_);
    stage.beginRun();
    n_passes = std::max(n_passes, deviceSide(parts.back()).groupPasses());
  }
  GroupRun run = planRun(group, parts.back());
  run.all_passes = capture_mode_ || !caller_waits_;
  const unsigned first_pass = run.all_passes ? 0 : group.pass;
  const unsigned end_pass = run.all_passes ? n_passes : first_pass + 1;
  if (state.timed) {  // when the host has made up its mind: the device would wait for it meanwhile
    state.begin_events[static_cast<std::size_t>(group.runs_at->id)].record(stream);
  }
  const ScratchScope scope(*this);
  for (run.pass = first_pass; run.pass < end_pass; ++run.pass) {
    const bool ends_run =
        context.isReadbackOffered() && run.pass + 1 == end_pass && group.runs_at == order_.back();
    enqueuePass(
        group, parts, run, pool_, context, [this] { announceOutput(); }, ends_run);
  }
  for (DAGNode* node : group.chain) {
    node->is_executed = true;
    releaseInputs(*node, stream);
  }
}

}  // namespace fz
