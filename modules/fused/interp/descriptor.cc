#include <limits>
#include <memory>

#include "fused/interp/config.h"
#include "fused/interp/interp_stage.h"

namespace fz::interp {

MakeCudaPart cudaPartMaker();  // cuda/stage.cc; null in a build without CUDA

namespace {

template <class TInput, class TCode>
bool makeIf(std::span<const DataType> types, std::unique_ptr<Stage>& made) {
  if (types.size() == 2 && types[0] == kDataTypeOf<TInput> && types[1] == kDataTypeOf<TCode>) {
    made = std::make_unique<InterpStage<TInput, TCode>>();
  }
  return made != nullptr;
}

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  std::unique_ptr<Stage> made;
  makeIf<float, std::int16_t>(types, made) || makeIf<float, std::int32_t>(types, made) ||
      makeIf<double, std::int16_t>(types, made) || makeIf<double, std::int32_t>(types, made);
  return made;
}

const ParamTable& table() {
  using S = InterpBase;
  static const ParamTable kTable = [] {
    std::vector<Param> rows = {
        realParam<S>("error_bound", 1e-3, {std::numeric_limits<double>::denorm_min(), 1e300},
                     "largest error of a value, relative to the base of the mode",
                     &S::getErrorBound, [](S& s, double v) { s.setErrorBound(v); }),
        choiceParam<S>(
            "error_bound_mode", "ABS", {"ABS", "NOA"},
            "ABS: as it is; NOA: times (max - min). Bins have one width: for REL, use the Quantizer",
            [](const S& s) { return errorBoundModeName(s.getErrorBoundMode()); },
            [](S& s, const std::string& v) { s.setErrorBoundMode(*errorBoundModeFromName(v)); }),
        textParam<S>(
            "plan", "iso",
            "iso: interpolation along all axes; lorenzo; auto: what crops of the field say; "
            "lorenzo:auto: the same without levels; or levels from coarse to fine, such as "
            "'lorenzo:xy xy:cc:0 xy:cc:0' (SPEC.md)",
            &S::getPlan, [](S& s, const std::string& v) { s.setPlan(v); }, {"lorenzo"}),
        choiceParam<S>(
            "missing", "exact", {"exact", "skip"},
            "NaN is stored exactly, or skipped: a Mask in front puts it back",
            [](const S& s) { return s.getSkipsMissing() ? "skip" : "exact"; },
            [](S& s, const std::string& v) { s.setSkipsMissing(v == "skip"); }),
        realParam<S>("value_base", 0.0, {0.0, std::numeric_limits<double>::max()},
                     "max - min (NOA) when known; 0 scans the data", &S::getValueBase,
                     [](S& s, double v) { s.setValueBase(v); }),
    };
    rows.back().saved = false;
    return ParamTable(std::move(rows));
  }();
  return kTable;
}

}  // namespace

const ParamTable& InterpBase::paramTable() const {
  return table();
}

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = 20483,
      .name = "Interp",
      .category = "fused",
      .summary = "error-bounded prediction by interpolation from lattice to lattice",
      .type_keys = {{"input_type", DataType::FLOAT32}, {"code_type", DataType::INT16}},
      .type_combinations = {{DataType::FLOAT32, DataType::INT16},
                            {DataType::FLOAT32, DataType::INT32},
                            {DataType::FLOAT64, DataType::INT16},
                            {DataType::FLOAT64, DataType::INT32}},
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &table,
      .adjust_config_defaults = nullptr,
      .make_cuda = cudaPartMaker(),
      .graph_compatible_forward = true,  // with a plan that is given
      .graph_compatible_inverse = true,
  };
  return kDescriptor;
}

}  // namespace fz::interp
