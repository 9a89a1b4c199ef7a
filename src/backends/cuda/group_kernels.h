#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/device_types.h"

namespace fz::cuda {

/// A chain of tile operations, from the field on.
struct GroupChain {
  struct Op {
    std::string type;         ///< full name of the device type
    std::string header;       ///< as device code includes it
    std::string source = {};  ///< text that comes behind the headers
  };

  bool is_inverse = false;
  DataType field_type = DataType::UNKNOWN;
  bool has_coder = false;  ///< false: the last op's values are stored as they are
  std::vector<Op> ops;

  /// The C++ type of the field's values.
  std::string fieldTypeName() const;
  /// Ops and coder as a list of C++ types, a comma before each.
  std::string opTypes() const;
  /// Text that is the same for chains with the same kernel: direction, types without blanks, and
  /// the code that stages outside the library bring.
  std::string key() const;
};

/// A kernel that runs a chain.
struct GroupKernel {
  const void* function = nullptr;  ///< as cudaLaunchKernel takes it
  GroupShape shape;
  const void* each_field = nullptr;  ///< as KernelLaunch has it
};

/// A kernel that was compiled with the library; `types` is what the compiler read between the
/// parentheses of FZ_GROUP.
struct BuiltinGroup {
  std::string_view types;
  bool is_inverse;
  GroupKernel kernel;
};

/// The kernel of a chain on the current device: one of the library's own, else one compiled now or
/// earlier. Null when there is none; `why` says the reason. The kernel lives as long as the
/// process.
const GroupKernel* findGroupKernel(const GroupChain& chain, std::string& why);

}  // namespace fz::cuda
