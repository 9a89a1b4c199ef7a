// Archives made to deceive: damaged, with checksums that fit the damage.
#include <cstring>
#include <random>

#include "c_api/c_api_support.h"
#include "format/crc32.h"
#include "fz/presets.h"

namespace fz::test {
namespace {

constexpr std::size_t kHeaderBytesOffset = 24;  // docs/format.md, header core
constexpr std::size_t kPayloadCrcOffset = 72;
constexpr std::size_t kHeaderCrcOffset = 76;

/// Makes both checksums right again, where the header's length lies within the archive.
void seal(Bytes& archive) {
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, archive.data() + kHeaderBytesOffset, sizeof(header_bytes));
  if (header_bytes < kHeaderCrcOffset + 4 || header_bytes > archive.size()) {
    return;
  }
  const ByteView all(archive);
  const std::uint32_t payload_crc = crc32(all.subspan(header_bytes));
  std::memcpy(archive.data() + kPayloadCrcOffset, &payload_crc, 4);
  std::memset(archive.data() + kHeaderCrcOffset, 0, 4);
  const std::uint32_t header_crc = crc32(all.first(header_bytes));
  std::memcpy(archive.data() + kHeaderCrcOffset, &header_crc, 4);
}

TEST(CHostile, SealedDamageEndsInAStatusForEveryCall) {
  std::mt19937 rng(20);
  fz_options options = cpuOptions();
  options.n_threads = 1;
  options.max_output_bytes = 1 << 20;
  options.max_memory_bytes = 1 << 24;
  const PipelineHandle shared_decoder = decoder(options);
  std::size_t n_accepted = 0;
  std::size_t n_rebuilt = 0;
  std::size_t n_refused = 0;
  for (const Preset& preset : allPresets()) {
    const Bytes archive = sampleArchive(preset.name.data());
    for (int round = 0; round < 150; ++round) {
      Bytes damaged = archive;
      const std::size_t n_edits = 1 + rng() % 4;
      for (std::size_t i = 0; i < n_edits; ++i) {
        // Half of the edits go into the header, where they steer.
        const std::size_t reach =
            rng() % 2 == 0 ? std::min<std::size_t>(900, damaged.size()) : damaged.size();
        damaged[rng() % reach] = static_cast<std::uint8_t>(rng());
      }
      seal(damaged);
      Bytes values(4000);
      std::size_t n_bytes = 0;
      const fz_status status = fz_decompress(shared_decoder.get(), damaged.data(), damaged.size(),
                                             values.data(), values.size(), &n_bytes, nullptr);
      n_accepted += status == FZ_OK ? 1 : 0;
      n_refused += status != FZ_OK ? 1 : 0;
      EXPECT_NE(status, FZ_ERROR_INTERNAL) << fz_last_error();
      fz_archive* inspection = nullptr;
      EXPECT_NE(fz_archive_inspect(damaged.data(), damaged.size(), &inspection), FZ_ERROR_INTERNAL)
          << fz_last_error();
      fz_archive_destroy(inspection);
      fz_pipeline* rebuilt = nullptr;
      EXPECT_NE(fz_pipeline_from_archive(damaged.data(), damaged.size(), &options, &rebuilt),
                FZ_ERROR_INTERNAL)
          << fz_last_error();
      n_rebuilt += rebuilt != nullptr ? 1 : 0;
      fz_pipeline_destroy(rebuilt);
    }
    // Whatever came before, the handle decodes what is sound.
    ASSERT_EQ(fz_verify(shared_decoder.get(), archive.data(), archive.size(), nullptr), FZ_OK);
  }
  // Else the damage was not of the kind that this test is about.
  EXPECT_GT(n_accepted, 100u);
  EXPECT_GT(n_rebuilt, 100u);
  EXPECT_GT(n_refused, 100u);
}

}  // namespace
}  // namespace fz::test
