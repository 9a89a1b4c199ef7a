#pragma once

// The CUDA stream handle, named without the toolkit so that public headers compile in CPU-only
// builds; identical to the toolkit's own alias, so both may be included.
struct CUstream_st;
using cudaStream_t = CUstream_st*;
