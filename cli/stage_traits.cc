#include "stage_traits.h"

#include <fmt/format.h>
#include <iterator>

#include "fz/simple_stage.h"

namespace fz::cli {

namespace {

const char* partName(const TileOp& op) {
  constexpr const char* kNames[] = {"none", "map", "order", "rows", "planes", "coder"};
  static_assert(std::size(kNames) == std::variant_size_v<TileOp>);
  return kNames[op.index()];
}

TileOp tileOpOf(const Stage& stage) {
  const auto* simple = dynamic_cast<const SimpleStage*>(&stage);
  return simple == nullptr ? TileOp{} : simple->tileOp(Backend::CPU);
}

bool isFusable(const Stage& stage) {
  return !std::holds_alternative<NoOp>(tileOpOf(stage));
}

/// "uint16" or "uint16, chunk_size = 16384", the first that makes the stage fusable.
std::string fusableWith(const StageDescriptor& stage) {
  constexpr std::int32_t kUsualSizes[] = {16384, 1024, 32};
  for (const std::vector<DataType>& types : stage.type_combinations) {
    std::string text(types.empty() ? "" : dataTypeToString(types.front()));
    if (isFusable(*stage.make(types))) {
      return text;
    }
    // The table of a stage of these types: setters of another type's would take it for theirs.
    const std::unique_ptr<Stage> any = stage.make(types);
    for (const Param& param : any->paramTable().rows()) {
      for (const std::int32_t value : kUsualSizes) {
        const std::unique_ptr<Stage> made = stage.make(types);
        if (param.kind != ParamKind::kInt || value < param.min || value > param.max ||
            !param.choices.empty()) {
          continue;
        }
        param.set(*made, std::int64_t{value});
        if (isFusable(*made)) {
          return fmt::format("{}, {} = {}", text, param.key, value);
        }
      }
    }
  }
  return "";
}

}  // namespace

StageTraits traitsOf(const StageDescriptor& stage) {
  StageTraits traits;
  traits.backends.emplace_back("cpu");
  if (stage.make_cuda != nullptr) {
    traits.backends.emplace_back("cuda");
  }
  traits.is_graph_safe_forward = stage.graph_compatible_forward;
  traits.is_graph_safe_inverse = stage.graph_compatible_inverse;
  const TileOp op = tileOpOf(*stage.make(defaultTypes(stage)));
  const NoOp* obstacle = std::get_if<NoOp>(&op);
  traits.is_fusable = obstacle == nullptr;
  traits.part = traits.is_fusable ? partName(op) : obstacle->reason;
  if (!traits.is_fusable) {
    traits.fusable_with = fusableWith(stage);
  }
  return traits;
}

}  // namespace fz::cli
