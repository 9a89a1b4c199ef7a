#include "fz/tune.h"

#include "api/host_run.h"

namespace fz {

FoundSettings findSettings(DataType type, ByteView values, const CompressOptions& options) {
  HostCompression compression(type, values, options);
  compression.keepPipeline();
  compression.run();
  const Pipeline& pipeline = compression.pipeline();
  FoundSettings found;
  for (const Stage* stage : pipeline.getStages()) {
    for (auto& [key, value] : stage->foundSettings()) {
      found.params.emplace_back(pipeline.getStageName(stage) + "." + key, std::move(value));
    }
    if (const std::string note = stage->runNote(); !note.empty()) {
      found.reason += (found.reason.empty() ? "" : "\n") + note;
    }
  }
  return found;
}

}  // namespace fz
