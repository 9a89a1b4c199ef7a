// Many arrays in one call, beside one call for each.
#include "c_api/c_api_support.h"
#include "fz_batch.h"

namespace fz::test {
namespace {

/// Fields of several lengths, the arguments of the calls, and room for what comes.
struct CBatch {
  explicit CBatch(std::size_t n_fields) {
    const Bytes& whole = sampleField().bytes;
    for (std::size_t i = 0; i < n_fields; ++i) {
      fields.emplace_back(whole.begin(),
                          whole.end() - static_cast<std::ptrdiff_t>(i % 3 * 4 * 100));
      archives.emplace_back(whole.size() + 1000);
      values.emplace_back(whole.size(), std::uint8_t{0x5a});
    }
    for (std::size_t i = 0; i < n_fields; ++i) {
      field_data.push_back(fields[i].data());
      field_bytes.push_back(fields[i].size());
      archive_data.push_back(archives[i].data());
      archive_rooms.push_back(archives[i].size());
      value_data.push_back(values[i].data());
      value_rooms.push_back(values[i].size());
    }
    archive_bytes.resize(n_fields);
    value_bytes.resize(n_fields);
    statuses.resize(n_fields);
  }

  fz_status compress(fz_pipeline* pipeline) {
    const fz_batch batch{sizeof(fz_batch),     fields.size(),       field_data.data(),
                         field_bytes.data(),   archive_data.data(), archive_rooms.data(),
                         archive_bytes.data(), statuses.data()};
    return fz_compress_batch(pipeline, &batch, nullptr);
  }
  fz_status decompress(fz_pipeline* pipeline) {
    const std::vector<const void*> from(archive_data.begin(), archive_data.end());
    const fz_batch batch{sizeof(fz_batch),     fields.size(),     from.data(),
                         archive_bytes.data(), value_data.data(), value_rooms.data(),
                         value_bytes.data(),   statuses.data()};
    return fz_decompress_batch(pipeline, &batch, nullptr);
  }
  Bytes archive(std::size_t i) const {
    return {archives[i].begin(),
            archives[i].begin() + static_cast<std::ptrdiff_t>(archive_bytes[i])};
  }

  std::vector<Bytes> fields;
  std::vector<Bytes> archives;
  std::vector<Bytes> values;
  std::vector<const void*> field_data;
  std::vector<std::size_t> field_bytes;
  std::vector<void*> archive_data;
  std::vector<std::size_t> archive_rooms;
  std::vector<std::size_t> archive_bytes;
  std::vector<void*> value_data;
  std::vector<std::size_t> value_rooms;
  std::vector<std::size_t> value_bytes;
  std::vector<fz_status> statuses;
};

TEST(CBatches, GiveWhatSingleCallsGive) {
  for (const char* preset : {"cuszp2", "pfpl", "balanced", "lossless"}) {
    SCOPED_TRACE(preset);
    const PipelineHandle pipeline = fromPreset(preset, cpuOptions());
    CBatch batch(7);
    ASSERT_EQ(batch.compress(pipeline.get()), FZ_OK) << fz_last_error();
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(batch.archive(i), compressed(pipeline.get(), batch.fields[i]));
    }
    ASSERT_EQ(batch.decompress(decoder(cpuOptions()).get()), FZ_OK) << fz_last_error();
    for (std::size_t i = 0; i < 7; ++i) {
      Bytes alone(batch.fields[i].size());
      std::size_t n_bytes = 0;
      ASSERT_EQ(fz_decompress(pipeline.get(), batch.archives[i].data(), batch.archive_bytes[i],
                              alone.data(), alone.size(), &n_bytes, nullptr),
                FZ_OK);
      ASSERT_EQ(batch.value_bytes[i], n_bytes);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), batch.values[i].begin()));
    }
  }
}

TEST(CBatches, AFieldThatFailsLeavesTheOthers) {
  const PipelineHandle pipeline = fromPreset("cuszp2", cpuOptions());
  CBatch batch(6);
  batch.archive_rooms[1] = 100;
  batch.field_bytes[4] -= 1;
  expectError(batch.compress(pipeline.get()), FZ_ERROR_BUFFER_TOO_SMALL, "field 1");
  EXPECT_EQ(batch.statuses[4], FZ_ERROR_BAD_SIZE);
  EXPECT_EQ(batch.archive_bytes[1], compressed(pipeline.get(), batch.fields[1]).size());
  for (const std::size_t i : {0, 2, 3, 5}) {
    EXPECT_EQ(batch.statuses[i], FZ_OK);
    EXPECT_EQ(batch.archive(i), compressed(pipeline.get(), batch.fields[i]));
  }
  CBatch whole(6);
  ASSERT_EQ(whole.compress(pipeline.get()), FZ_OK);
  whole.archives[2][whole.archive_bytes[2] - 2] ^= 8;
  whole.value_rooms[3] -= 8;
  expectError(whole.decompress(pipeline.get()), FZ_ERROR_CORRUPT, "checksum");
  EXPECT_EQ(whole.statuses[2], FZ_ERROR_CORRUPT);
  EXPECT_EQ(whole.value_bytes[2], 0u);
  EXPECT_EQ(whole.statuses[3], FZ_ERROR_BUFFER_TOO_SMALL);
  EXPECT_EQ(whole.value_bytes[3], whole.fields[3].size());
  for (const std::size_t i : {0, 1, 4, 5}) {
    EXPECT_EQ(whole.statuses[i], FZ_OK);
    EXPECT_EQ(whole.value_bytes[i], whole.fields[i].size());
  }
}

TEST(CBatches, MissingArgumentsAreRefused) {
  const PipelineHandle pipeline = fromPreset("cuszp2", cpuOptions());
  fz_batch none = {};
  expectError(fz_compress_batch(pipeline.get(), &none, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "struct_size");
  none.struct_size = sizeof(fz_batch);
  EXPECT_EQ(fz_compress_batch(pipeline.get(), &none, nullptr), FZ_OK);
  EXPECT_EQ(fz_decompress_batch(pipeline.get(), &none, nullptr), FZ_OK);
  expectError(fz_compress_batch(pipeline.get(), nullptr, nullptr), FZ_ERROR_INVALID_ARGUMENT,
              "batch is NULL");
  none.n_fields = 2;
  expectError(fz_compress_batch(pipeline.get(), &none, nullptr), FZ_ERROR_INVALID_ARGUMENT, "NULL");
  CBatch batch(2);
  expectError(batch.compress(nullptr), FZ_ERROR_INVALID_ARGUMENT, "pipeline is NULL");
  expectError(batch.compress(decoder(cpuOptions()).get()), FZ_ERROR_INVALID_STATE, "decoding");
}

}  // namespace
}  // namespace fz::test
