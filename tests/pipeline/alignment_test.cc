#include <cstring>
#include <gtest/gtest.h>

#include "fz/presets.h"
#include "support/fields.h"
#include "support/pipelines.h"

// A caller's memory may stand anywhere: arrays inside files and messages do.

namespace fz::test {
namespace {

TEST(Alignment, InputAndOutputMayStandAtAnyAddress) {
  for (const Preset& preset : allPresets()) {
    SCOPED_TRACE(std::string(preset.name));
    const Field field = smoothField(DataType::FLOAT32, {37, 11, 3});
    Pipeline pipeline;
    pipeline.setBackend(Backend::CPU);
    pipeline.setThreads(1);
    pipeline.loadConfigText(std::string(preset.toml), std::string(preset.name));
    const CompressedView view = pipeline.compress(field.bytes.data(), field.bytes.size());
    const auto* begin = static_cast<const std::uint8_t*>(view.data);
    const FrameBytes frame(begin, begin + view.n_bytes);
    const auto expected = decoded<std::uint8_t>(pipeline, frame);
    for (const std::size_t shift : {1u, 2u, 4u, 7u}) {
      std::vector<std::uint8_t> room(field.bytes.size() + 16);
      std::memcpy(room.data() + shift, field.bytes.data(), field.bytes.size());
      const CompressedView again = pipeline.compress(room.data() + shift, field.bytes.size());
      EXPECT_TRUE(again.n_bytes == frame.size() &&
                  std::memcmp(again.data, frame.data(), frame.size()) == 0)
          << "input shifted by " << shift;
      std::size_t n_bytes = 0;
      pipeline.decompress(frame.data(), frame.size(), room.data() + shift, field.bytes.size(),
                          &n_bytes);
      EXPECT_TRUE(n_bytes == expected.size() &&
                  std::memcmp(room.data() + shift, expected.data(), n_bytes) == 0)
          << "output shifted by " << shift;
    }
  }
}

}  // namespace
}  // namespace fz::test
