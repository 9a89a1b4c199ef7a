#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fz/host_api.h"

/// What stages find out about a field once, and the next field of its kind can be told.
namespace fz {

/// Settings that stages chose by looking at the values.
struct FoundSettings {
  /// For CompressOptions::params, which spares the next field the search: a time step, another
  /// member of an ensemble. Empty where no stage searches for anything.
  std::vector<std::pair<std::string, std::string>> params;
  /// For people: what came into question, and what it would have cost.
  std::string reason;
};

/// Compresses the field and drops the frame, which inspect() would have asked as well. Of the
/// presets `best`, `auto` and `balanced` search, for the plan of Interp. What is found depends on
/// the values and options alone: the same on every backend and for any number of threads. Throws as
/// compress() does.
FoundSettings findSettings(DataType type, ByteView values, const CompressOptions& options = {});

}  // namespace fz
