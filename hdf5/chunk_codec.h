#pragma once

#include "cd_values.h"
#include "fz/host_api.h"
#include "fz/span.h"

/// Chunks to frames and back. The frames are ordinary ones, which `fz decompress` reads too.
namespace fz::hdf5 {

/// Throws Error(kUnsupported) when the preset takes neither this kind of bound nor this type.
void checkPresetTakes(const Settings& settings);

/// One chunk as a frame, the smaller of a lossy and a lossless one. NaN, infinities and the fill
/// value come back bit for bit and are no part of a range. Values that the preset cannot keep
/// within the bound make the chunk lossless, and so does one that nobody declared but that sets the
/// range as fill values do; with isStrict() these are an Error (kBoundViolation, kFillValue).
/// Throws Error.
Frame encodeChunk(const Settings& settings, ByteView bytes);

/// The bytes of a chunk. One at the edge of an archive, whose frame says that it is a part of a
/// larger array, may have fewer values; the rest is the fill value. Untrusted input: throws Error,
/// and takes no more memory than a chunk of the size in the settings (or of 4 GiB where they have
/// none) can need.
Array decodeChunk(const Settings& settings, ByteView frame);

}  // namespace fz::hdf5
