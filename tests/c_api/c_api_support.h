#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "fz.h"
#include "support/fields.h"

namespace fz::test {

struct DestroyHandle {
  void operator()(fz_pipeline* handle) const { fz_pipeline_destroy(handle); }
  void operator()(fz_archive* handle) const { fz_archive_destroy(handle); }
  void operator()(fz_reader* handle) const { fz_reader_destroy(handle); }
  void operator()(fz_writer* handle) const { fz_writer_destroy(handle); }
};
using PipelineHandle = std::unique_ptr<fz_pipeline, DestroyHandle>;
using ArchiveHandle = std::unique_ptr<fz_archive, DestroyHandle>;
using ReaderHandle = std::unique_ptr<fz_reader, DestroyHandle>;
using WriterHandle = std::unique_ptr<fz_writer, DestroyHandle>;
using Bytes = std::vector<std::uint8_t>;

inline fz_options defaultOptions() {
  fz_options options;
  EXPECT_EQ(fz_options_init(&options, sizeof(options)), FZ_OK) << fz_last_error();
  return options;
}

/// The tests give host memory and compare with the CPU.
inline fz_options cpuOptions() {
  fz_options options = defaultOptions();
  options.backend = FZ_BACKEND_CPU;
  return options;
}

/// With the bound that the preset's file has, unless the options say one.
inline PipelineHandle fromPreset(const char* name, fz_options options) {
  if (options.error_bound == 0.0 && std::string(name) != "lossless") {
    options.error_bound = std::string(name) == "cusz" ? 1e-4 : 1e-3;
  }
  fz_pipeline* made = nullptr;
  EXPECT_EQ(fz_pipeline_from_preset(name, &options, &made), FZ_OK) << fz_last_error();
  return PipelineHandle(made);
}

inline PipelineHandle decoder(const fz_options& options) {
  fz_pipeline* made = nullptr;
  EXPECT_EQ(fz_pipeline_for_decoding(&options, &made), FZ_OK) << fz_last_error();
  return PipelineHandle(made);
}

inline Bytes compressed(fz_pipeline* pipeline, const Bytes& values) {
  std::size_t n_bytes = 0;
  EXPECT_EQ(fz_compress_bound(pipeline, values.size(), &n_bytes), FZ_OK) << fz_last_error();
  Bytes archive(n_bytes);
  EXPECT_EQ(fz_compress(pipeline, values.data(), values.size(), archive.data(), archive.size(),
                        &n_bytes, nullptr),
            FZ_OK)
      << fz_last_error();
  archive.resize(n_bytes);
  return archive;
}

inline Bytes decompressed(fz_pipeline* pipeline, const Bytes& archive, std::size_t n_bytes) {
  Bytes values(n_bytes);
  std::size_t n_decoded = 0;
  EXPECT_EQ(fz_decompress(pipeline, archive.data(), archive.size(), values.data(), values.size(),
                          &n_decoded, nullptr),
            FZ_OK)
      << fz_last_error();
  EXPECT_EQ(n_decoded, n_bytes);
  return values;
}

inline const Field& sampleField() {
  static const Field kField = smoothField(DataType::FLOAT32, {40, 20, 1});
  return kField;
}

/// Of the preset's own stages, although it is small.
inline Bytes sampleArchive(const char* preset = "cuszp2") {
  fz_options options = cpuOptions();
  options.fallback = FZ_FALLBACK_NONE;
  return compressed(fromPreset(preset, options).get(), sampleField().bytes);
}

/// The call failed with this status, and its message says this.
inline void expectError(fz_status got, fz_status wanted, const std::string& part) {
  EXPECT_EQ(got, wanted) << fz_status_name(got) << ": " << fz_last_error();
  EXPECT_NE(std::string(fz_last_error()).find(part), std::string::npos) << fz_last_error();
}

}  // namespace fz::test
