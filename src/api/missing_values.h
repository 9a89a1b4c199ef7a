#pragma once

#include <span>

#include "fz/data_type.h"
#include "fz/missing.h"
#include "fz/span.h"
#include "pipeline/compressor.h"

namespace fz {

/// As hasMissing(), but all values are looked at whatever was declared.
bool hasAnyMissing(DataType type, ByteView values, std::span<const double> fill);

/// Whether a pipeline, loaded but not finalized, can have a Mask before its first stage: that takes
/// values of this type and loses something of them.
bool canBeMasked(Pipeline& pipeline, DataType type);
/// Puts it there, for a field with these values. Precondition: canBeMasked().
void addMask(Pipeline& pipeline, DataType type, ByteView values, std::span<const double> fill);

}  // namespace fz
