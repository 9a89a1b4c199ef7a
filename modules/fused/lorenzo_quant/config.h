#pragma once

#include <string_view>

#include "fused/lorenzo_quant/codec.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"

namespace fz::lorenzo_quant {

inline constexpr std::string_view kName = "LorenzoQuant";

void writeConfig(const LorenzoQuantConfig& config, ByteWriter& out);
/// Reads 32 bytes or more of a stored config and checks everything but the types, which select the
/// instantiation. Throws Error(kCorrupt).
LorenzoQuantConfig readConfig(ByteReader& in);
StageTypes typesFromConfig(ByteView config);

/// Grid of a stream. Streams of the original system may hold more values than their dims; in one
/// dimension the count alone matters. Throws Error(kCorrupt) when the dims hold more.
Grid gridOfStream(const LorenzoQuantConfig& config);

}  // namespace fz::lorenzo_quant
