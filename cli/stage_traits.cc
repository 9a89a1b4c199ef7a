#include "stage_traits.h"

#include <fmt/format.h>

#include "fz/simple_stage.h"

namespace fz::cli {

namespace {

const char* partName(TileRole role) {
  switch (role) {
    case TileRole::kNone:
      break;
    case TileRole::kMap:
      return "map";
    case TileRole::kOrder:
      return "order";
    case TileRole::kRows:
      return "rows";
    case TileRole::kPlanes:
      return "planes";
    case TileRole::kCoder:
      return "coder";
  }
  return "none";
}

TileOp tileOpOf(const Stage& stage) {
  const auto* simple = dynamic_cast<const SimpleStage*>(&stage);
  return simple == nullptr ? TileOp{} : simple->tileOp(Backend::CPU);
}

bool isFusable(const Stage& stage) {
  return tileOpOf(stage).role != TileRole::kNone;
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
        if (param.kind != ParamKind::kInt || value < param.min || value > param.max) {
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
#if FZ_HAVE_CUDA
  traits.backends.emplace_back("cuda");
#endif
  traits.is_graph_safe_forward = stage.graph_compatible_forward;
  traits.is_graph_safe_inverse = stage.graph_compatible_inverse;
  const TileOp op = tileOpOf(*stage.make(defaultTypes(stage)));
  traits.is_fusable = op.role != TileRole::kNone;
  traits.part = traits.is_fusable ? partName(op.role) : op.why;
  if (!traits.is_fusable) {
    traits.fusable_with = fusableWith(stage);
  }
  return traits;
}

}  // namespace fz::cli
