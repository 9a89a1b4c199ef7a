#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <cuda_runtime_api.h>

#include "backends/cuda/group_kernels.h"
#include "backends/cuda/rtc/compiler.h"
#include "backends/cuda/rtc/loaded_kernel.h"
#include "backends/cuda/type_name.h"
#include "builtin_groups.h"
#include "cuda_check.h"

namespace fz::cuda {

namespace {

std::string withoutBlanks(std::string_view text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept),
               [](char c) { return c != ' ' && c != '\n' && c != '\t'; });
  return kept;
}

std::string keyOf(bool is_inverse, std::string_view types) {
  return (is_inverse ? "decode:" : "encode:") + withoutBlanks(types);
}

const std::map<std::string, GroupKernel>& builtinKernels() {
  static const std::map<std::string, GroupKernel> kKernels = [] {
    std::map<std::string, GroupKernel> kernels;
    for (const std::span<const BuiltinGroup> list : builtinGroups()) {
      for (const BuiltinGroup& group : list) {
        kernels.emplace(keyOf(group.is_inverse, group.types), group.kernel);
      }
    }
    return kernels;
  }();
  return kKernels;
}

/// Shared memory above the usual limit has to be asked for.
bool allowSharedMemory(const GroupKernel& kernel) {
  constexpr std::uint32_t kUsualBytes = 48 * 1024;
  const auto allow = [&](const void* function) {
    return function == nullptr ||
           cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(kernel.shape.shared_bytes)) == cudaSuccess;
  };
  return kernel.shape.shared_bytes <= kUsualBytes ||
         (allow(kernel.function) && allow(kernel.each_field));
}

}  // namespace

std::string cppTypeName(DataType type) {
  if (type == DataType::FLOAT32) {
    return "float";
  }
  if (type == DataType::FLOAT64) {
    return "double";
  }
  return fmt::format("std::{}_t", dataTypeToString(type));
}

std::string GroupChain::fieldTypeName() const {
  return cppTypeName(field_type);
}

std::string GroupChain::opTypes() const {
  std::string types;
  for (const Op& op : ops) {
    types += "," + op.type;
  }
  if (!has_coder) {
    types += ",fz::group::PlainOp";
  }
  return types;
}

std::string GroupChain::key() const {
  std::string key = keyOf(is_inverse, "fz::group::Field<" + fieldTypeName() + ">" + opTypes());
  for (const Op& op : ops) {
    key += op.source;
  }
  return key;
}

const GroupKernel* findGroupKernel(const GroupChain& chain, std::string& why) {
  const std::string key = chain.key();
  const auto found = builtinKernels().find(key);
  if (found != builtinKernels().end()) {
    if (!allowSharedMemory(found->second)) {
      cudaGetLastError();
      why = "the device has too little shared memory for the kernel";
      return nullptr;
    }
    return &found->second;
  }
  if (std::any_of(chain.ops.begin(), chain.ops.end(),
                  [](const GroupChain::Op& op) { return op.header.empty(); })) {
    why = "the library has no kernel for this chain";
    return nullptr;
  }
  if (!rtc::isEnabled()) {
    why = "the library has no kernel for this chain, and FZ_NVRTC=off forbids compiling one";
    return nullptr;
  }
  // What was made or refused once is not tried again. By device: code is for one architecture.
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::pair<std::optional<GroupKernel>, std::string>>
      made;
  int device = 0;
  FZ_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard lock(mutex);
  auto entry = made.find({device, key});
  if (entry == made.end()) {
    std::string reason;
    std::optional<GroupKernel> kernel = rtc::makeGroupKernel(chain, reason);
    if (kernel && !allowSharedMemory(*kernel)) {
      cudaGetLastError();
      kernel.reset();
      reason = "the device has too little shared memory for the kernel";
    }
    entry = made.try_emplace({device, key}, kernel, reason).first;
  }
  why = entry->second.second;
  return entry->second.first ? &*entry->second.first : nullptr;
}

}  // namespace fz::cuda
