#pragma once

#include <memory>

#include "fz/simple_stage.h"

namespace fz {

namespace detail {

template <template <class...> class SideT, template <class...> class StageT, class... Ts>
void makeCudaPartIf(SimpleStage& stage,
                    StageT<Ts...>* /*class of the stage*/,
                    std::unique_ptr<CudaPart>& part) {
  if (auto* own = dynamic_cast<StageT<Ts...>*>(&stage)) {
    part = std::make_unique<SideT<Ts...>>(*own);
  }
}

}  // namespace detail

/// StageDescriptor::make_cuda of a stage that is a template: SideT<Ts...> for that one of Stages,
/// a StageT<Ts...>, which the stage is.
template <template <class...> class SideT, class... Stages>
std::unique_ptr<CudaPart> makeCudaPart(SimpleStage& stage) {
  std::unique_ptr<CudaPart> part;
  (detail::makeCudaPartIf<SideT>(stage, static_cast<Stages*>(nullptr), part), ...);
  return part;
}

}  // namespace fz
