// What an inspection says, against the C++ interface.
#include "c_api/c_api_support.h"
#include "fz/host_api.h"
#include "fz/presets.h"

namespace fz::test {
namespace {

ArchiveHandle inspected(const Bytes& bytes) {
  fz_archive* made = nullptr;
  EXPECT_EQ(fz_archive_inspect(bytes.data(), bytes.size(), &made), FZ_OK) << fz_last_error();
  return ArchiveHandle(made);
}

template <class T>
T sized() {
  T row = {};
  row.struct_size = sizeof(T);
  return row;
}

void expectSameStages(const fz_archive* archive, const FrameInfo& info) {
  for (std::size_t i = 0; i < info.stages.size(); ++i) {
    auto stage = sized<fz_archive_stage_info>();
    ASSERT_EQ(fz_archive_stage_get(archive, i, &stage), FZ_OK) << fz_last_error();
    EXPECT_EQ(stage.name, info.stages[i].name);
    EXPECT_EQ(stage.id, info.stages[i].id);
    EXPECT_EQ(stage.version, info.stages[i].version);
    ASSERT_EQ(stage.n_types, info.stages[i].types.size());
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(stage.types[k], k < stage.n_types ? static_cast<int32_t>(info.stages[i].types[k])
                                                  : static_cast<int32_t>(FZ_TYPE_UNKNOWN));
    }
    ASSERT_EQ(stage.n_params, info.stages[i].params.size());
    for (std::size_t k = 0; k < stage.n_params; ++k) {
      const char* key = nullptr;
      const char* value = nullptr;
      ASSERT_EQ(fz_archive_stage_param(archive, i, k, &key, &value), FZ_OK) << fz_last_error();
      EXPECT_EQ(key, info.stages[i].params[k].first);
      EXPECT_EQ(value, toTomlText(info.stages[i].params[k].second));
    }
  }
}

TEST(CArchive, SaysWhatCxxSays) {
  for (const Preset& preset : allPresets()) {
    fz_options options = cpuOptions();
    options.type = FZ_TYPE_FLOAT64;
    options.dims[0] = 20;
    options.dims[1] = 10;
    options.dims[2] = 3;
    const Bytes bytes = compressed(fromPreset(preset.name.data(), options).get(),
                                   smoothField(DataType::FLOAT64, {20, 10, 3}).bytes);
    const FrameInfo wanted = inspect(bytes);
    const ArchiveHandle archive = inspected(bytes);
    auto info = sized<fz_archive_info>();
    ASSERT_EQ(fz_archive_get(archive.get(), &info), FZ_OK) << fz_last_error();
    EXPECT_EQ(info.version_major, wanted.version_major);
    EXPECT_EQ(info.version_minor, wanted.version_minor);
    EXPECT_EQ(info.type, FZ_TYPE_FLOAT64);
    EXPECT_EQ(info.n_dims, 3);
    EXPECT_EQ(info.dims[0], 20u);
    EXPECT_EQ(info.dims[1], 10u);
    EXPECT_EQ(info.dims[2], 3u);
    EXPECT_EQ(info.original_bytes, 20u * 10 * 3 * 8);
    EXPECT_EQ(info.header_bytes, wanted.header_bytes);
    EXPECT_EQ(info.payload_bytes, wanted.payload_bytes);
    EXPECT_EQ(info.archive_bytes, bytes.size());
    ASSERT_EQ(info.has_bound, 1);
    EXPECT_EQ(info.bound_mode, static_cast<int32_t>(wanted.bound->mode) + 1);
    EXPECT_EQ(info.bound_requested, wanted.bound->requested);
    EXPECT_EQ(info.bound_absolute, wanted.bound->absolute);
    EXPECT_EQ(info.is_lossless, 0);
    EXPECT_EQ(info.has_checksums, 1);
    ASSERT_EQ(info.n_stages, wanted.stages.size());
    expectSameStages(archive.get(), wanted);
    ASSERT_EQ(info.n_segments, wanted.segments.size());
    for (std::size_t i = 0; i < wanted.segments.size(); ++i) {
      auto segment = sized<fz_archive_segment_info>();
      ASSERT_EQ(fz_archive_segment_get(archive.get(), i, &segment), FZ_OK);
      EXPECT_EQ(segment.stage, wanted.segments[i].stage);
      EXPECT_EQ(segment.port, wanted.segments[i].port);
      EXPECT_EQ(segment.n_bytes, wanted.segments[i].n_bytes);
      EXPECT_EQ(segment.type, static_cast<int32_t>(wanted.segments[i].type));
    }
  }
}

TEST(CArchive, ALosslessOneHasNoBound) {
  const char* toml = "[[stage]]\nname = \"a\"\ntype = \"Zigzag\"\n";
  const fz_options options = cpuOptions();
  fz_pipeline* made = nullptr;
  ASSERT_EQ(fz_pipeline_from_toml(toml, &options, &made), FZ_OK) << fz_last_error();
  const PipelineHandle pipeline(made);
  const Bytes values(400, 3);
  const Bytes bytes = compressed(pipeline.get(), values);
  auto info = sized<fz_archive_info>();
  ASSERT_EQ(fz_archive_get(inspected(bytes).get(), &info), FZ_OK);
  EXPECT_EQ(info.is_lossless, 1);
  EXPECT_EQ(info.has_bound, 0);
  EXPECT_EQ(info.bound_mode, FZ_BOUND_DEFAULT);
  EXPECT_EQ(decompressed(pipeline.get(), bytes, values.size()), values);
}

TEST(CArchive, WhatIsNoneIsAnError) {
  fz_archive* made = nullptr;
  const Bytes bytes = sampleArchive();
  expectError(fz_archive_inspect(bytes.data(), 0, &made), FZ_ERROR_CORRUPT, "");
  EXPECT_EQ(made, nullptr);
  expectError(fz_archive_inspect("something that is no archive", 28, &made), FZ_ERROR_CORRUPT, "");
  expectError(fz_archive_inspect(bytes.data(), bytes.size() - 1, &made), FZ_ERROR_CORRUPT, "");
  Bytes newer = bytes;
  newer[5] = 9;  // the major version
  EXPECT_NE(fz_archive_inspect(newer.data(), newer.size(), &made), FZ_OK);
  EXPECT_EQ(made, nullptr);
}

TEST(CArchive, NullAndWrongArgumentsAreErrors) {
  const fz_status argument = FZ_ERROR_INVALID_ARGUMENT;
  const Bytes bytes = sampleArchive();
  const ArchiveHandle handle = inspected(bytes);
  const fz_archive* archive = handle.get();
  fz_archive* made = nullptr;
  const char* key = nullptr;
  const char* value = nullptr;
  auto info = sized<fz_archive_info>();
  auto stage = sized<fz_archive_stage_info>();
  auto segment = sized<fz_archive_segment_info>();
  expectError(fz_archive_inspect(nullptr, 10, &made), argument, "archive is NULL");
  expectError(fz_archive_inspect(bytes.data(), 10, nullptr), argument, "inspection is NULL");
  expectError(fz_archive_get(nullptr, &info), argument, "inspection is NULL");
  expectError(fz_archive_get(archive, nullptr), argument, "info is NULL");
  expectError(fz_archive_stage_get(nullptr, 0, &stage), argument, "inspection is NULL");
  expectError(fz_archive_stage_get(archive, 0, nullptr), argument, "info is NULL");
  expectError(fz_archive_stage_get(archive, 99, &stage), argument, "stage 99");
  expectError(fz_archive_stage_param(nullptr, 0, 0, &key, &value), argument, "inspection is NULL");
  expectError(fz_archive_stage_param(archive, 0, 0, nullptr, &value), argument, "key is NULL");
  expectError(fz_archive_stage_param(archive, 0, 0, &key, nullptr), argument, "value is NULL");
  expectError(fz_archive_stage_param(archive, 99, 0, &key, &value), argument, "stage 99");
  expectError(fz_archive_stage_param(archive, 0, 99, &key, &value), argument, "setting 99");
  expectError(fz_archive_segment_get(nullptr, 0, &segment), argument, "inspection is NULL");
  expectError(fz_archive_segment_get(archive, 0, nullptr), argument, "info is NULL");
  expectError(fz_archive_segment_get(archive, 99, &segment), argument, "segment 99");
  info.struct_size = 8;
  expectError(fz_archive_get(archive, &info), argument, "struct_size");
  stage.struct_size = 8;
  expectError(fz_archive_stage_get(archive, 0, &stage), argument, "struct_size");
  segment.struct_size = 8;
  expectError(fz_archive_segment_get(archive, 0, &segment), argument, "struct_size");
  fz_archive_destroy(nullptr);
}

}  // namespace
}  // namespace fz::test
