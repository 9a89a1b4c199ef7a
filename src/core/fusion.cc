#include "fz/fusion.h"

namespace fz {

const char* fusionName(Fusion fusion) noexcept {
  return fusion == Fusion::Off ? "off" : "auto";
}

}  // namespace fz
