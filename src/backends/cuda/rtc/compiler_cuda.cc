#include <cstdlib>
#include <fmt/format.h>
#include <set>
#include <string_view>

#include "backends/cuda/rtc/compiler.h"
#include "backends/cuda/rtc/device_sources.h"
#include "backends/cuda/rtc/nvrtc_library.h"
#include "log.h"

namespace fz::cuda::rtc {

namespace {

/// Headers of the standard library that device code includes.
constexpr const char* kStandardHeaders[] = {"algorithm", "bit",         "cstddef",
                                            "cstdint",   "cstring",     "limits",
                                            "span",      "type_traits", "utility"};
constexpr const char* kStandardText = "#include \"backends/cuda/rtc/standard.h\"\n";

class Program {
 public:
  Program(const NvrtcLibrary& nvrtc, const std::string& source) : nvrtc_(nvrtc) {
    std::vector<const char*> names;
    std::vector<const char*> texts;
    for (const char* name : kStandardHeaders) {
      names.push_back(name);
      texts.push_back(kStandardText);
    }
    for (const DeviceSource& file : deviceSources()) {
      names.push_back(file.name);
      texts.push_back(file.text);
    }
    if (nvrtc_.create(&program_, source.c_str(), "fz_group.cu", static_cast<int>(names.size()),
                      texts.data(), names.data()) != NVRTC_SUCCESS) {
      program_ = nullptr;
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) {
      nvrtc_.destroy(&program_);
    }
  }

  bool compile(int architecture) {
    const std::string target = fmt::format("--gpu-architecture=sm_{}", architecture);
    const char* options[] = {target.c_str(), "--std=c++20", "-default-device", "--fmad=false",
                             "-DFZ_HAVE_CUDA=1"};
    return program_ != nullptr &&
           nvrtc_.compile(program_, static_cast<int>(std::size(options)), options) == NVRTC_SUCCESS;
  }
  std::string log() const {
    std::size_t n = 0;
    if (program_ == nullptr || nvrtc_.logSize(program_, &n) != NVRTC_SUCCESS || n == 0) {
      return {};
    }
    std::string text(n, '\0');
    nvrtc_.log(program_, text.data());
    return text;
  }
  std::vector<char> cubin() const {
    std::size_t n = 0;
    if (nvrtc_.cubinSize(program_, &n) != NVRTC_SUCCESS) {
      return {};
    }
    std::vector<char> code(n);
    return nvrtc_.cubin(program_, code.data()) == NVRTC_SUCCESS ? code : std::vector<char>{};
  }

 private:
  const NvrtcLibrary& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string sourceOf(const GroupChain& chain) {
  std::set<std::string> headers = {"backends/cuda/group/kernel.cuh"};
  std::set<std::string> sources;  // two stages of a kind bring the same one
  if (!chain.has_coder) {
    headers.insert("backends/cuda/group/plain_op.cuh");
  }
  for (const GroupChain::Op& op : chain.ops) {
    headers.insert(op.header);
    sources.insert(op.source);
  }
  std::string text;
  for (const std::string& header : headers) {
    text += fmt::format("#include \"{}\"\n", header);
  }
  for (const std::string& source : sources) {
    text += source + "\n";
  }
  const char* way = chain.is_inverse ? "Decoding" : "Encoding";
  const char* step = chain.is_inverse ? "decode" : "encode";
  text += fmt::format(
      "using C = fz::group::AnyChain<{}{}>;\n"
      "extern \"C\" __global__ void __launch_bounds__(C::{way}::kThreads, C::{way}::kBlocks)\n"
      "    fz_group(const __grid_constant__ typename C::Args args) {{\n"
      "  C::Steps::{step}(typename C::Field(args.own), args.rest);\n"
      "}}\n"
      "extern \"C\" __device__ fz::GroupShape fz_group_shape =\n"
      "    fz::group::shapeOf<C, typename C::{way}>();\n",
      chain.fieldTypeName(), chain.opTypes(), fmt::arg("way", way), fmt::arg("step", step));
  return text;
}

bool isEnabled() {
  const char* wish = std::getenv("FZ_NVRTC");
  return wish == nullptr || std::string_view(wish) != "off";
}

std::vector<char> compile(const std::string& source, int architecture, std::string& why) {
  const NvrtcLibrary& nvrtc = NvrtcLibrary::get();
  if (!nvrtc.missing.empty()) {
    why = nvrtc.missing;
    return {};
  }
  Program program(nvrtc, source);
  if (!program.compile(architecture)) {
    why = "the run-time compiler refused the chain; the log has its messages";
    FZ_LOG(WARN, "run-time compiler: %s", program.log().c_str());
    return {};
  }
  std::vector<char> code = program.cubin();
  if (code.empty()) {
    why = "the run-time compiler produced no code";
  }
  return code;
}

std::string compilerVersion() {
  const NvrtcLibrary& nvrtc = NvrtcLibrary::get();
  int major = 0;
  int minor = 0;
  if (!nvrtc.missing.empty() || nvrtc.version(&major, &minor) != NVRTC_SUCCESS) {
    return {};
  }
  return fmt::format("{}.{}", major, minor);
}

}  // namespace fz::cuda::rtc
