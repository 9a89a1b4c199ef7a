#pragma once

// Vector targets that a source file with run-time dispatch is compiled for: the baseline (SSE2 on
// x86-64), AVX2, AVX-512 and AVX-512 with byte permutes. The ones between cost compile time and
// serve no machine that runs our loads. Include before hwy/foreach_target.h.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
