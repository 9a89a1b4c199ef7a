#include "stage_traits.h"

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

}  // namespace

StageTraits traitsOf(const StageDescriptor& stage) {
  StageTraits traits;
  traits.backends.emplace_back("cpu");
#if FZ_HAVE_CUDA
  traits.backends.emplace_back("cuda");
#endif
  traits.is_graph_safe_forward = stage.graph_compatible_forward;
  traits.is_graph_safe_inverse = stage.graph_compatible_inverse;
  const std::vector<DataType> types = defaultTypes(stage);
  const std::unique_ptr<Stage> made = stage.make(types);
  const auto* simple = dynamic_cast<const SimpleStage*>(made.get());
  if (simple == nullptr) {
    traits.part = "has no tile operation";
    return traits;
  }
  const TileOp op = simple->tileOp(Backend::CPU);
  traits.is_fusable = op.role != TileRole::kNone;
  traits.part = traits.is_fusable ? partName(op.role) : op.why;
  return traits;
}

}  // namespace fz::cli
