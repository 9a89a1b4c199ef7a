#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>

#include "backends/cuda/group_kernels.h"
#include "backends/cuda/groups/builtin_groups.h"
#include "backends/cuda/shared_memory.h"

namespace fz::cuda {

namespace {

std::string withoutBlanks(std::string_view text) {
  std::string kept;
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept),
               [](char c) { return c != ' ' && c != '\n' && c != '\t'; });
  return kept;
}

std::string cppTypeName(DataType type) {
  if (type == DataType::FLOAT32) {
    return "float";
  }
  if (type == DataType::FLOAT64) {
    return "double";
  }
  return fmt::format("std::{}_t", dataTypeToString(type));
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

}  // namespace

std::string GroupChain::key() const {
  std::string types = "fz::group::Field<" + cppTypeName(field_type) + ">";
  for (const Op& op : ops) {
    types += "," + op.type;
  }
  if (!has_coder) {
    types += ",fz::group::PlainOp";
  }
  return keyOf(is_inverse, types);
}

const GroupKernel* findGroupKernel(const GroupChain& chain, std::string& why) {
  const auto found = builtinKernels().find(chain.key());
  if (found != builtinKernels().end()) {
    allowSharedBytes(found->second.function, found->second.shape.shared_bytes);
    return &found->second;
  }
  why = "no kernel was compiled for this chain";
  return nullptr;
}

}  // namespace fz::cuda
