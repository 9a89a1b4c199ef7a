// Codes with lists of outliers in a fused group.
#include <cuda_runtime_api.h>

#include "core/require.h"
#include "cuda_check.h"
#include "quantizers/quantizer/quantizer.h"
#include "quantizers/quantizer/quantizer_bound_codec.h"
#include "quantizers/quantizer/quantizer_list_op.h"
#include "shared/bits.h"

namespace fz::quantizer {

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

TileOp QuantizerBase::listTileOp() const {
  const bool rel = mode_ == ErrorBoundMode::REL;
  if (isInverse() && rel && getStageVersion() < 2) {
    return NoOp{"codes of an old version are decoded on their own"};
  }
  const ListForm form = rel ? relForm(error_bound_, value_type_ == DataType::FLOAT32, isInverse())
                            : (zigzag_ ? ListForm::kZigzag : ListForm::kPlain);
  return MapOp{static_cast<std::uint64_t>(form)};
}

std::string QuantizerBase::listOpType() const {
  const auto form = static_cast<ListForm>(std::get<MapOp>(listTileOp()).variant);
  return fmt::format("fz::quantizer::ListOp<{}, std::uint{}_t, fz::quantizer::ListForm::{}>",
                     value_type_ == DataType::FLOAT32 ? "float" : "double", codeBits(),
                     formName(form));
}

void QuantizerBase::beginListGroup(const CudaRun& run, GroupArgs& args) {
  ListArgs list{};
  if (isInverse()) {
    list.decode = beginDecodeCuda(run);
  } else {
    checkEncodeCuda(run);
    list.encode = encodeJob(run, EncodeWay::kGroupBegins);
    const bool is_noa = mode_ == ErrorBoundMode::NOA;
    list.is_known = run.inputs[0].size.isExact() && (!is_noa || value_base_ > 0.0);
    if (!list.is_known) {
      prepareEncodeCuda(list.encode, run.stream);
    } else if (mode_ != ErrorBoundMode::REL) {
      const bool is_float = value_type_ == DataType::FLOAT32;
      list.range = is_noa ? value_base_ : 0.0;
      list.absolute = absoluteBound(error_bound_, list.range, is_float);
      list.in_use = boundOfRung(list.absolute, false, 0, is_float);
      const BinSettings settings{list.in_use, list.absolute, threshold_,
                                 radius_,     codeForm(),    codeBits()};
      if (is_float) {
        list.rule_float = makeBinRule<float>(settings);
      } else {
        list.rule_double = makeBinRule<double>(settings);
      }
    }
    if (mode_ == ErrorBoundMode::REL) {
      const RelSettings settings{error_bound_, threshold_, radius_, codeBits()};
      list.rel = value_type_ == DataType::FLOAT32 ? makeRelRule<float>(settings)
                                                  : makeRelRule<double>(settings);
      if (relShortcut<float>(error_bound_) == RelShortcut::kFloat) {
        list.rel_float = makeRelFloatRule(list.rel);
      }
    }
  }
  args.add(list);
}

void QuantizerBase::endGroupCuda(const CudaRun& run, const GroupRun& /*group*/) {
  if (!hasOutlierPorts()) {
    return;
  }
  if (isInverse()) {
    device::launchScatter(beginDecodeCuda(run), run);
  } else {
    device::launchGather(encodeJob(run, EncodeWay::kGroupEnds), run.stream);
    group_marks_.noteZero();
  }
}

}  // namespace fz::quantizer
