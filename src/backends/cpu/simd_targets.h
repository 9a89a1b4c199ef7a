#pragma once

// Vector targets that a source file with run-time dispatch is compiled for: a baseline for every
// x86-64 (which the Highway of Debian 12 calls scalar: the compiler still vectorises plain loops
// with SSE2), AVX2 and AVX-512. The ones between cost compile time and serve no machine that runs
// our loads. Include before hwy/foreach_target.h.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
