#pragma once

namespace fz::lorenzo_quant {

/// Whether grids are decoded by the chunk only where that is quicker than stage by stage, as they
/// are unless told otherwise. For tests, which have small grids; of the whole process.
void setChunksForSpeedOnly(bool only);

}  // namespace fz::lorenzo_quant
