// Codes with lists of outliers in a fused group.
#include <fmt/format.h>

#include "backends/cuda/padding.h"
#include "quantizers/quantizer/cuda/op/args.h"
#include "quantizers/quantizer/cuda/stage.h"

namespace fz::quantizer {

using device::DecodeJob;

namespace {

const char* formName(ListForm form) {
  switch (form) {
    case ListForm::kPlain:
      return "kPlain";
    case ListForm::kZigzag:
      return "kZigzag";
    case ListForm::kRelFloat:
      return "kRelFloat";
    case ListForm::kRelDouble:
      return "kRelDouble";
    case ListForm::kRelSlow:
      break;
  }
  return "kRelSlow";
}

/// The form of REL; all decode alike, so decoders take that of the usual bounds.
ListForm relForm(double bound, bool is_float, bool is_inverse) {
  const RelShortcut shortcut = is_inverse ? (is_float ? RelShortcut::kFloat : RelShortcut::kDouble)
                               : is_float ? relShortcut<float>(bound)
                                          : relShortcut<double>(bound);
  switch (shortcut) {
    case RelShortcut::kFloat:
      return ListForm::kRelFloat;
    case RelShortcut::kDouble:
      return ListForm::kRelDouble;
    case RelShortcut::kNone:
      break;
  }
  return ListForm::kRelSlow;
}

}  // namespace

TileOp CudaSide::listTileOp() const {
  const bool rel = stage_.mode_ == ErrorBoundMode::REL;
  if (stage_.isInverse() && rel && stage_.getStageVersion() < 2) {
    return NoOp{"codes of an old version are decoded on their own"};
  }
  const ListForm form = rel ? relForm(stage_.error_bound_, isFloat(), stage_.isInverse())
                            : (stage_.zigzag_ ? ListForm::kZigzag : ListForm::kPlain);
  return MapOp{static_cast<std::uint64_t>(form), scansInput()};
}

std::string CudaSide::listOpType() const {
  const auto form = static_cast<ListForm>(std::get<MapOp>(listTileOp()).variant);
  return fmt::format("fz::quantizer::ListOp<{}, std::uint{}_t, fz::quantizer::ListForm::{}>",
                     isFloat() ? "float" : "double", stage_.codeBits(), formName(form));
}

void CudaSide::beginListGroup(const cuda::Call& call, GroupArgs& args) {
  ListArgs list{};
  if (stage_.isInverse()) {
    list.decode = decodeJob(call);
    list.decode.is_group = true;
  } else {
    checkEncode(call);
    list.encode = encodeJob(call, EncodeWay::kGroupBegins);
    const bool is_noa = stage_.mode_ == ErrorBoundMode::NOA;
    list.is_known = call.inputs[0].size.isExact() && (!is_noa || stage_.value_base_ > 0.0);
    if (!list.is_known) {
      prepareEncode(list.encode, call);
    } else if (stage_.mode_ != ErrorBoundMode::REL) {
      list.range = is_noa ? stage_.value_base_ : 0.0;
      const BinSettings settings = state_.binSettings(list.range, 0);
      list.absolute = settings.bound;
      list.in_use = settings.bound_in_use;
      if (isFloat()) {
        list.rule_float = makeBinRule<float>(settings);
      } else {
        list.rule_double = makeBinRule<double>(settings);
      }
    }
    if (stage_.mode_ == ErrorBoundMode::REL) {
      const RelSettings settings{stage_.error_bound_, stage_.threshold_, stage_.radius_,
                                 stage_.codeBits()};
      list.rel = isFloat() ? makeRelRule<float>(settings) : makeRelRule<double>(settings);
      if (relShortcut<float>(stage_.error_bound_) == RelShortcut::kFloat) {
        list.rel_float = makeRelFloatRule(list.rel);
      }
    }
  }
  cuda::clearPadding(list);
  args.add(list);
}

void CudaSide::endListGroup(const cuda::Call& call) {
  if (stage_.isInverse()) {
    DecodeJob job = decodeJob(call);
    job.is_group = true;
    cuda::clearPadding(job);
    device::launchScatter(job, call);
  } else {
    device::launchGather(encodeJob(call, EncodeWay::kGroupEnds), call);
    group_marks_.recordZero();
  }
}

}  // namespace fz::quantizer
