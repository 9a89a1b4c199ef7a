// Running a fused chain on a device: one kernel for all of its stages.
#include <algorithm>

#include "backends/cuda/group/field_args.h"
#include "backends/cuda/group/plain_op.h"
#include "backends/cuda/group_kernels.h"
#include "backends/cuda/launch.h"
#include "core/stage_access.h"
#include "pipeline/plan/tile_role.h"
#include "pipeline/run/cuda_executor.h"
#include "shared/bits.h"

namespace fz {

namespace {

GroupRun planGroup(const Step& step, std::size_t coded_bytes) {
  GroupRun group;
  group.shape = step.kernel->shape;
  group.n_values = coded_bytes / step.value_bytes;
  group.n_tiles = std::max<std::uint64_t>(
      1, bits::ceilDiv<std::uint64_t>(group.n_values, group.shape.tile_values));
  group.n_blocks = cuda::gridFor(group.n_tiles, 1);
  if (group.shape.blocks_per_processor != 0) {
    group.n_blocks =
        std::min(group.n_blocks, cuda::multiprocessorCount() * group.shape.blocks_per_processor);
  }
  return group;
}

group::FieldArgs fieldOf(bool is_inverse,
                         const std::vector<CudaInput>& inputs,
                         const std::vector<CudaOutput>& outputs,
                         const std::uint64_t* may_write) {
  group::FieldArgs field = {};
  if (is_inverse) {
    field.out = outputs[0].data;
    field.size = {outputs[0].capacity_bytes, may_write};
  } else {
    field.in = inputs[0].data;
    field.size = inputs[0].size;
  }
  return field;
}

}  // namespace

CudaExecutor::Share CudaExecutor::shareOf(const DAGNode& node) {
  SimpleStage* stage = simpleStage(node);
  return {stage, StageAccess::cudaPart(*stage), inputsOf(node), outputsOf(node),
          state_.onDevice(static_cast<std::size_t>(node.id))};
}

cuda::Call CudaExecutor::callOf(const Share& share, cuda::RunContext& run) const {
  return {share.inputs, share.outputs, share.record, run.stream(), engine_.buffers.pool(), &run};
}

/// Whether the field is sure to be whole values of the chain. Stages that take values see to that
/// themselves.
bool CudaExecutor::hasWholeField(const Step& step) const {
  const DAGNode& first = *step.chain.front();
  if (takesValues(engine_.plan.opOf(first))) {
    return true;
  }
  const bool is_inverse = first.stage->isInverse();
  const Buffer& field = engine_.buffers.at(is_inverse ? first.output_buffer_ids.front()
                                                      : first.input_buffer_ids.front());
  if (field.size_exact) {
    return field.size % step.value_bytes == 0;
  }
  if (is_inverse || field.producer_stage_id < 0) {
    return step.value_bytes == 1;
  }
  const Stage& producer = *engine_.graph.node(field.producer_stage_id).stage;
  const auto type = static_cast<DataType>(
      producer.getOutputDataType(static_cast<std::size_t>(field.producer_output_index)));
  return (isKnown(type) ? getDataTypeSize(type) : 1) % step.value_bytes == 0;
}

/// On a device a chain must know the sizes between its stages; where only the data tell them
/// (behind a decoder that finds its size on the way), the stages run one after the other. So they
/// do where bytes are left behind the last whole value: a chain works on values, and Bitshuffle,
/// which takes any bytes, keeps those of its end as they are.
void CudaExecutor::dissolveUnsettled() {
  Buffers& buffers = engine_.buffers;
  for (std::size_t i = engine_.plan.steps().size(); i-- > 0;) {
    const Step& step = engine_.plan.steps()[i];
    if (!step.isFused()) {
      continue;
    }
    const bool is_plain = !std::holds_alternative<CoderOp>(engine_.plan.opOf(*step.chain.back()));
    const auto isOpen = [&](int id) {
      return !buffers.at(id).size_exact && (buffers.at(id).is_inside || is_plain);
    };
    const auto isRagged = [&](int id) {
      return buffers.at(id).is_inside && buffers.at(id).size % step.value_bytes != 0;
    };
    const auto isAny = [&](auto holds) {
      return std::any_of(step.chain.begin(), step.chain.end(), [&](const DAGNode* node) {
        return holds(node->input_buffer_ids.front()) || holds(node->output_buffer_ids.front());
      });
    };
    const bool is_open = isAny(isOpen);
    if (!is_open && !isAny(isRagged) && hasWholeField(step)) {
      continue;
    }
    for (const DAGNode* node : step.chain) {
      for (const int id : node->output_buffer_ids) {
        buffers.setInside(id, false, nullptr);
      }
    }
    engine_.plan.dissolve(step, is_open ? "the number of values depends on the data"
                                        : "the bytes may not be a multiple of the value size");
  }
}

/// Enqueues one pass: what the stages need before the kernel, and the kernel.
void CudaExecutor::enqueueKernel(const Step& step,
                                 const std::vector<Share>& shares,
                                 const GroupRun& group,
                                 cuda::RunContext& run) {
  const Share& first = shares.front();
  GroupArgs args;
  args.add(fieldOf(first.stage->isInverse(), first.inputs, first.outputs, run.mayWrite()));
  for (const Share& share : shares) {
    share.part->beginGroup(callOf(share, run), group, args);
  }
  if (!std::holds_alternative<CoderOp>(engine_.plan.opOf(*step.chain.back()))) {
    const Share& last = shares.back();
    args.add(group::PlainArgs{last.inputs[0].data, last.outputs[0].data, group.n_values});
  }
  for (const Share& share : shares) {
    share.part->readyGroup(callOf(share, run), group);
  }
  FZ_REQUIRE(args.fits() && args.size() == group.shape.args_bytes, ErrorCode::kInternal,
             "{}: the kernel takes {} bytes of arguments, got {}", step.name,
             group.shape.args_bytes, args.size());
  const cuda::KernelLaunch::Parameter parameter = {args.data(), args.size()};
  callOf(first, run)
      .launch({step.kernel->function,
               step.name.c_str(),
               group.n_blocks,
               group.shape.n_threads,
               group.shape.shared_bytes,
               {&parameter, 1},
               step.kernel->each_field,
               group.shape.blocks_per_processor != 0 ? 1u : 0u});
}

/// What the stages need after the kernel. Where nothing comes behind it, the last stage that can
/// ends the run.
void CudaExecutor::endGroup(const std::vector<Share>& shares,
                            const GroupRun& group,
                            cuda::RunContext& run,
                            bool ends_run) {
  const Share* last = nullptr;
  for (const Share& share : shares) {
    last = ends_run && share.part->endsRuns() ? &share : last;
  }
  for (const Share& share : shares) {
    if (&share != last) {
      share.part->endGroup(callOf(share, run), group);
    }
  }
  if (last != nullptr) {
    run.openReadback();
    last->part->endGroup(callOf(*last, run), group);
    run.closeReadback();
  }
}

void CudaExecutor::enqueueFused(Step& step, const Request& request, cuda::RunContext& run) {
  std::vector<Share> shares;
  unsigned n_passes = 1;
  for (const DAGNode* node : step.chain) {
    engine_.prepareInputs(*node);
    const NodeRun& node_run = engine_.runOf(*node);
    for (const int id : node->output_buffer_ids) {
      const Buffer& buffer = engine_.buffers.at(id);
      if (!buffer.is_inside) {
        const auto port = static_cast<std::size_t>(buffer.producer_output_index);
        engine_.buffers.provide(id, node_run.capacities[port], run.stream());
      } else {
        FZ_ASSERT(buffer.size_exact);
      }
    }
    shares.push_back(shareOf(*node));
    node->stage->setExecContext(request.context);
    node->stage->beginRun();
    n_passes = std::max(n_passes, shares.back().part->groupPasses());
  }
  // The coder's side tells the number of values: it may differ from the field's.
  const Share& last = shares.back();
  const bool has_coder = std::holds_alternative<CoderOp>(engine_.plan.opOf(*step.chain.back()));
  const bool puts_values_out = last.stage->isInverse() == has_coder;  // others take them in
  GroupRun group = planGroup(
      step, puts_values_out ? last.outputs[0].capacity_bytes : last.inputs[0].size.n_bytes);
  group.all_passes = request.mode != Request::Mode::kWaits;
  const unsigned first_pass = group.all_passes ? 0 : step.pass;
  const unsigned end_pass = group.all_passes ? n_passes : first_pass + 1;
  if (is_timed_) {  // when the host has made up its mind: the device would wait for it meanwhile
    begin_events_[static_cast<std::size_t>(step.runs_at->id)].record(run.stream());
  }
  const Buffers::ScratchScope scope(engine_.buffers);
  for (group.pass = first_pass; group.pass < end_pass; ++group.pass) {
    // A kernel that is told where to look whether it may write need not be waited for.
    if (run.mayWrite() == nullptr) {
      announceOutput(request);
    }
    enqueueKernel(step, shares, group, run);
    announceOutput(request);
    endGroup(shares, group, run,
             run.isReadbackOffered() && group.pass + 1 == end_pass &&
                 step.runs_at == engine_.graph.order().back());
  }
}

}  // namespace fz
