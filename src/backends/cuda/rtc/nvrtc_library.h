#pragma once

#include <nvrtc.h>
#include <string>

namespace fz::cuda::rtc {

/// The functions of NVRTC, found in a library that is loaded when first asked for: the library fz
/// neither links it nor needs it.
struct NvrtcLibrary {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) logSize = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubinSize = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;

  std::string missing;  ///< why there is none; empty when all is there

  static const NvrtcLibrary& get();
};

}  // namespace fz::cuda::rtc
