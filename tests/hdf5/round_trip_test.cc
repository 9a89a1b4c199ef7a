// Datasets through HDF5 and the plugin.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "cd_values.h"
#include "fz/backend.h"
#include "fz/hdf5.h"
#include "fz/host_api.h"
#include "fz/presets.h"
#include "hdf5/hdf5_support.h"
#include "hdf5_calls.h"
#include "pipeline/compressor.h"

namespace fz::hdf5::test {

// The declarations of the plugin against HDF5's own.
static_assert(sizeof(hid_t) == sizeof(Hid));
static_assert(sizeof(H5Z_class2_t) == sizeof(FilterClass));
static_assert(offsetof(H5Z_class2_t, name) == offsetof(FilterClass, name));
static_assert(offsetof(H5Z_class2_t, can_apply) == offsetof(FilterClass, can_apply));
static_assert(offsetof(H5Z_class2_t, set_local) == offsetof(FilterClass, set_local));
static_assert(offsetof(H5Z_class2_t, filter) == offsetof(FilterClass, filter));
static_assert(H5Z_CLASS_T_VERS == kFilterClassVersion && H5Z_FLAG_OPTIONAL == kFlagOptional &&
              H5Z_FLAG_REVERSE == kFlagReverse);
static_assert(H5PL_TYPE_FILTER == kPluginTypeFilter && H5T_INTEGER == kClassInteger &&
              H5T_FLOAT == kClassFloat && H5T_BITFIELD == kClassBitfield &&
              H5T_ENUM == kClassEnum && H5T_ORDER_LE == kOrderLittleEndian &&
              H5D_FILL_VALUE_USER_DEFINED == kFillUserDefined);

class Hdf5RoundTrip : public Hdf5Test {};

template <class T>
void expectWithin(const std::vector<T>& in, const std::vector<T>& out, double bound) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(in[i]) - static_cast<double>(out[i])), bound) << i;
  }
}

template <class T>
void expectSameBits(const std::vector<T>& in, const std::vector<T>& out) {
  EXPECT_EQ(std::memcmp(in.data(), out.data(), in.size() * sizeof(T)), 0);
}

TEST_F(Hdf5RoundTrip, EveryPresetKeepsItsBoundForFloatsAndDoubles) {
  const std::vector<float> floats = field<float>(37 * 41 * 43);
  const std::vector<double> doubles = field<double>(floats.size());
  for (unsigned number = 1; presetName(number) != nullptr; ++number) {
    SCOPED_TRACE(presetName(number));
    // Chunks that do not divide the dataset, so that edges are in it.
    Dataset dataset = {.dims = {37, 41, 43},
                       .chunk = {16, 16, 32},
                       .values = valuesOf(presetName(number), "abs:1e-3")};
    expectWithin(floats, roundTrip(dataset, floats), 1e-3);
    dataset.type = H5T_IEEE_F64LE;
    dataset.memory_type = H5T_NATIVE_DOUBLE;
    expectWithin(doubles, roundTrip(dataset, doubles), 1e-3);
  }
}

/// The first chunk of a dataset as it is stored.
std::vector<std::uint8_t> firstChunk(hid_t dataset, std::size_t rank) {
  const std::vector<hsize_t> origin(rank, 0);
  hsize_t n_bytes = 0;
  EXPECT_GE(H5Dget_chunk_storage_size(dataset, origin.data(), &n_bytes), 0) << errorText();
  std::vector<std::uint8_t> bytes(n_bytes);
  std::uint32_t skipped = 0;
  EXPECT_GE(H5Dread_chunk(dataset, H5P_DEFAULT, origin.data(), &skipped, bytes.data()), 0)
      << errorText();
  return bytes;
}

/// Sets FZ_HDF5_BACKEND while it lives.
class BackendOfFilter {
 public:
  explicit BackendOfFilter(const char* name) { setenv("FZ_HDF5_BACKEND", name, 1); }
  BackendOfFilter(const BackendOfFilter&) = delete;
  BackendOfFilter& operator=(const BackendOfFilter&) = delete;
  ~BackendOfFilter() { unsetenv("FZ_HDF5_BACKEND"); }
};

TEST_F(Hdf5RoundTrip, AGpuStoresTheChunksOfTheCpuAndReadsThem) {
  if (!isBackendAvailable(Backend::CUDA)) {
    GTEST_SKIP() << "no CUDA device";
  }
  const std::vector<float> values = field<float>(40 * 50 * 60);
  std::vector<const char*> presets = {"lossless"};
  for (unsigned number = 1; presetName(number) != nullptr; ++number) {
    presets.push_back(presetName(number));
  }
  for (const char* preset : presets) {
    SCOPED_TRACE(preset);
    const std::string bound = std::string(preset) == "lossless" ? "" : "abs:1e-3";
    const Dataset dataset = {
        .dims = {40, 50, 60}, .chunk = {40, 50, 60}, .values = valuesOf(preset, bound)};
    const auto stored = [&](const char* backend, const char* name) {
      const BackendOfFilter chosen(backend);
      const hid_t id = make(dataset, name);
      EXPECT_GE(H5Dwrite(id, dataset.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
          << errorText();
      H5Dclose(id);
      const hid_t again = H5Dopen2(file_, name, H5P_DEFAULT);
      std::vector<std::uint8_t> chunk = firstChunk(again, 3);
      H5Dclose(again);
      return chunk;
    };
    const auto read = [&](const char* backend, const char* name) {
      const BackendOfFilter chosen(backend);
      const hid_t id = H5Dopen2(file_, name, H5P_DEFAULT);
      std::vector<float> back(values.size());
      EXPECT_GE(H5Dread(id, dataset.memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0)
          << errorText();
      H5Dclose(id);
      return back;
    };
    EXPECT_TRUE(stored("cpu", "a") == stored("cuda", "b"));
    expectSameBits(read("cpu", "b"), read("cuda", "a"));
    H5Ldelete(file_, "a", H5P_DEFAULT);
    H5Ldelete(file_, "b", H5P_DEFAULT);
  }
}

TEST_F(Hdf5RoundTrip, EveryPresetOfTheLibraryHasANumber) {
  unsigned n_numbers = 0;
  while (presetName(n_numbers) != nullptr) {
    ++n_numbers;
  }
  EXPECT_EQ(n_numbers, allPresets().size() + 1);
  for (const Preset& preset : allPresets()) {
    EXPECT_TRUE(presetNumber(preset.name)) << preset.name;
  }
}

TEST_F(Hdf5RoundTrip, AnyRankFromOneToFiveIsTaken) {
  const std::vector<float> values = field<float>(2 * 3 * 5 * 7 * 11);
  const std::vector<std::vector<hsize_t>> shapes = {{2310},        {30, 77},         {6, 5, 77},
                                                    {2, 3, 5, 77}, {2, 3, 5, 7, 11}, {1, 2310, 1}};
  for (const std::vector<hsize_t>& dims : shapes) {
    for (const char* preset : {"cuszp3", "pfpl", "fzgpu", "lossless"}) {
      const std::string bound = std::string(preset) == "lossless" ? "" : "abs:1e-2";
      const Dataset dataset = {.dims = dims, .chunk = dims, .values = valuesOf(preset, bound)};
      expectWithin(values, roundTrip(dataset, values), 1e-2);
    }
  }
}

TEST_F(Hdf5RoundTrip, ChunksOfOneValueWork) {
  const std::vector<float> values = field<float>(3);
  const Dataset dataset = {.dims = {3}, .chunk = {1}, .values = valuesOf("pfpl", "abs:1e-3")};
  expectWithin(values, roundTrip(dataset, values), 1e-3);
}

TEST_F(Hdf5RoundTrip, RelativeBoundsHoldForEachValue) {
  std::vector<float> values = field<float>(5000);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    values[i] *= 1e-6f;
  }
  const std::vector<float> back =
      roundTrip({.dims = {5000}, .chunk = {1024}, .values = valuesOf("pfpl", "rel:1e-3")}, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(back[i]) - static_cast<double>(values[i])),
              1e-3 * std::fabs(static_cast<double>(values[i])));
  }
}

template <class T>
void losslessOf(Hdf5Test& /*fixture*/, hid_t type, auto round_trip) {
  const std::vector<T> values = field<T>(3000);
  Dataset dataset = {.type = type, .memory_type = type, .dims = {3000}, .chunk = {1000}};
  dataset.values = valuesOf("lossless");
  expectSameBits(values, round_trip(dataset, values));
}

TEST_F(Hdf5RoundTrip, LosslessKeepsEveryTypeBitForBit) {
  const auto run = [this](const Dataset& d, const auto& v) { return roundTrip(d, v); };
  losslessOf<std::int8_t>(*this, H5T_STD_I8LE, run);
  losslessOf<std::uint8_t>(*this, H5T_STD_U8LE, run);
  losslessOf<std::int16_t>(*this, H5T_STD_I16LE, run);
  losslessOf<std::uint16_t>(*this, H5T_STD_U16BE, run);
  losslessOf<std::int32_t>(*this, H5T_STD_I32LE, run);
  losslessOf<std::uint64_t>(*this, H5T_STD_U64LE, run);
  losslessOf<float>(*this, H5T_IEEE_F32LE, run);
  losslessOf<float>(*this, H5T_IEEE_F32BE, run);
  losslessOf<double>(*this, H5T_IEEE_F64LE, run);
}

TEST_F(Hdf5RoundTrip, NoParametersMeanLossless) {
  const std::vector<float> values = field<float>(3000);
  expectSameBits(values, roundTrip({.dims = {3000}, .chunk = {1000}}, values));
}

TEST_F(Hdf5RoundTrip, NanInfinityAndTheirPayloadsSurviveEveryPreset) {
  std::vector<float> values = field<float>(4096);
  values[5] = std::bit_cast<float>(0x7fc12345u);
  values[6] = std::bit_cast<float>(0xff812345u);
  values[7] = std::numeric_limits<float>::infinity();
  values[2000] = -std::numeric_limits<float>::infinity();
  for (unsigned number = 1; presetName(number) != nullptr; ++number) {
    for (const char* bound : {"abs:1e-3", "range:1e-4"}) {
      SCOPED_TRACE(presetName(number));
      const std::vector<float> back = roundTrip(
          {.dims = {4096}, .chunk = {1024}, .values = valuesOf(presetName(number), bound)}, values);
      for (const std::size_t i : {5, 6, 7, 2000}) {
        EXPECT_EQ(std::bit_cast<unsigned>(back[i]), std::bit_cast<unsigned>(values[i])) << bound;
      }
    }
  }
}

/// Some fill values in one chunk of three; every chunk by the range of its other values.
template <class T>
void expectFillSurvives(T fill, const char* preset, Dataset dataset, auto round_trip) {
  SCOPED_TRACE(testing::Message() << preset << ' ' << fill);
  constexpr std::size_t kFirst = 100;
  constexpr std::size_t kEnd = 900;
  constexpr std::size_t kChunk = 3000;
  const std::vector<T> plain = field<T>(8000);
  std::vector<T> values = plain;
  std::fill(values.begin() + kFirst, values.begin() + kEnd, fill);
  dataset.dims = {values.size()};
  dataset.chunk = {kChunk};
  dataset.values = valuesOf(preset, "range:1e-3");
  dataset.fill = &fill;
  const std::vector<T> back = round_trip(dataset, values);
  for (std::size_t start = 0; start < values.size(); start += kChunk) {
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -lowest;
    const std::size_t end = std::min(start + kChunk, values.size());
    const auto is_fill = [](std::size_t i) { return i >= kFirst && i < kEnd; };
    for (std::size_t i = start; i < end; ++i) {
      lowest = is_fill(i) ? lowest : std::min(lowest, static_cast<double>(values[i]));
      highest = is_fill(i) ? highest : std::max(highest, static_cast<double>(values[i]));
    }
    for (std::size_t i = start; i < end; ++i) {
      if (is_fill(i)) {
        using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        ASSERT_EQ(std::bit_cast<Bits>(back[i]), std::bit_cast<Bits>(fill)) << i;
      } else {
        const double error = static_cast<double>(back[i]) - static_cast<double>(values[i]);
        ASSERT_LE(std::fabs(error), 1e-3 * (highest - lowest)) << i;
      }
    }
  }
}

TEST_F(Hdf5RoundTrip, FillValuesSurviveAndDoNotCountForARange) {
  const auto run = [this](const Dataset& d, const auto& v) { return roundTrip(d, v); };
  for (const double fill : {-9999.0, 9.96921e36, 1e20, -0.1, std::nan("")}) {
    for (unsigned number = 1; presetName(number) != nullptr; ++number) {
      expectFillSurvives(static_cast<float>(fill), presetName(number), {}, run);
      expectFillSurvives(fill, presetName(number),
                         {.type = H5T_IEEE_F64LE, .memory_type = H5T_NATIVE_DOUBLE}, run);
    }
  }
}

TEST_F(Hdf5RoundTrip, ChunksWithMissingValuesAreLittleLargerThanThoseWithout) {
  const std::vector<float> plain = field<float>(1 << 16);
  const float fill = -9999.0f;
  std::vector<float> with_fill = plain;
  std::vector<float> with_nan = plain;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (i / 700 % 3 == 0) {
      with_fill[i] = fill;
      with_nan[i] = std::bit_cast<float>(0x7fc12345u);
    }
  }
  for (unsigned number = 1; presetName(number) != nullptr; ++number) {
    for (const char* bound : {"abs:1e-2", "range:1e-3"}) {
      SCOPED_TRACE(presetName(number));
      const Dataset dataset = {.dims = {1 << 16},
                               .chunk = {1 << 15},
                               .values = valuesOf(presetName(number), bound, FZ_HDF5_STRICT),
                               .fill = &fill};
      roundTrip(dataset, plain);
      const hsize_t n_plain = stored_bytes_;
      for (const std::vector<float>* values : {&with_fill, &with_nan}) {
        const std::vector<float> back = roundTrip(dataset, *values);
        EXPECT_LE(stored_bytes_, n_plain + n_plain / 20 + 2 * 1024) << bound;
        for (std::size_t i = 0; i < back.size(); ++i) {
          if (i / 700 % 3 == 0) {
            ASSERT_EQ(std::bit_cast<unsigned>(back[i]), std::bit_cast<unsigned>((*values)[i])) << i;
          }
        }
      }
    }
  }
}

/// Version 0.1 had no Mask; a Pipeline puts none before its stages either.
TEST_F(Hdf5RoundTrip, ChunksWithFillValuesThatOlderVersionsWroteAreRead) {
  const float fill = -9999.0f;
  std::vector<float> values = field<float>(4096);
  std::fill(values.begin() + 100, values.begin() + 900, fill);
  Pipeline pipeline;
  CompressOptions options;
  options.preset = "cuszp2";
  options.backend = Backend::CPU;
  options.mode = ErrorBoundMode::ABS;
  options.error_bound = 1e-3;
  configure(pipeline, DataType::FLOAT32, options);
  const CompressedView frame = pipeline.compress(values.data(), values.size() * sizeof(float));
  const hid_t id = make(
      {.dims = {4096}, .chunk = {4096}, .values = valuesOf("cuszp2", "abs:1e-3"), .fill = &fill});
  const hsize_t origin = 0;
  ASSERT_GE(H5Dwrite_chunk(id, H5P_DEFAULT, 0, &origin, frame.n_bytes, frame.data), 0)
      << errorText();
  std::vector<float> back(values.size());
  ASSERT_GE(H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0)
      << errorText();
  H5Dclose(id);
  expectWithin(values, back, 1e-3);
  const Array wanted = decompress({static_cast<const std::uint8_t*>(frame.data), frame.n_bytes});
  expectSameBits(std::vector<float>(wanted.as<float>().begin(), wanted.as<float>().end()), back);
}

/// -9999 in the first of two chunks, and nobody said that it means anything.
TEST_F(Hdf5RoundTrip, AChunkWhoseRangeIsSetByAnUndeclaredFillValueIsKeptBitForBit) {
  std::vector<float> values = field<float>(8000);
  for (std::size_t i = 0; i < 4000; i += 9) {
    values[i] = -9999.0f;
  }
  const Dataset dataset = {
      .dims = {8000}, .chunk = {4000}, .values = valuesOf("pfpl", "range:1e-3")};
  const std::vector<float> back = roundTrip(dataset, values);
  EXPECT_TRUE(std::equal(values.begin(), values.begin() + 4000, back.begin()));
  EXPECT_FALSE(std::equal(values.begin() + 4000, values.end(), back.begin() + 4000));
}

/// A bound relative to nothing must not become one that is larger than the values.
TEST_F(Hdf5RoundTrip, ConstantChunksAreKeptBitForBitUnderARangeBound) {
  std::vector<float> values(3000, 2.5e-4f);
  std::copy_n(field<float>(1000).begin(), 1000, values.begin());
  for (const char* preset : {"pfpl", "cuszp2"}) {
    const std::vector<float> back = roundTrip(
        {.dims = {3000}, .chunk = {1000}, .values = valuesOf(preset, "range:1e-3")}, values);
    EXPECT_TRUE(std::equal(values.begin() + 1000, values.end(), back.begin() + 1000)) << preset;
  }
}

TEST_F(Hdf5RoundTrip, ChunksOfHardlyAnyValidValueTakeLittle) {
  const float fill = -9999.0f;
  std::vector<float> values(1 << 16, fill);
  values[50'000] = 271.25f;
  for (unsigned number = 1; presetName(number) != nullptr; ++number) {
    // Without a range to be relative to, chunks are kept by the filter's own lossless chain.
    for (const auto& [bound, n_most] : {std::pair("abs:1e-2", 700u), {"range:1e-3", 2000u}}) {
      SCOPED_TRACE(presetName(number));
      const std::vector<float> back = roundTrip({.dims = {1 << 16},
                                                 .chunk = {1 << 15},
                                                 .values = valuesOf(presetName(number), bound),
                                                 .fill = &fill},
                                                values);
      EXPECT_LE(stored_bytes_, 2 * n_most) << bound;
      EXPECT_NEAR(back[50'000], 271.25f, 0.01f);
      std::vector<float> others = back;
      others[50'000] = values[50'000];
      expectSameBits(values, others);
    }
  }
}

TEST_F(Hdf5RoundTrip, UnwrittenChunksReadAsTheFillValue) {
  const float fill = -7.5f;
  const hid_t id = make({.values = valuesOf("cuszp2", "abs:1e-3"), .fill = &fill});
  std::vector<float> back(100);
  ASSERT_GE(H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()), 0);
  EXPECT_EQ(back, std::vector<float>(100, fill));
  H5Dclose(id);
}

TEST_F(Hdf5RoundTrip, DataThatCannotBeCompressedGrowsByLittle) {
  std::vector<float> values(1 << 16);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = std::bit_cast<float>(state ^ state >> 15);
  }
  for (unsigned number = 0; presetName(number) != nullptr; ++number) {
    const std::string bound = number == 0 ? "" : "abs:1e-3";
    const std::vector<float> back = roundTrip(
        {.dims = {1 << 16}, .chunk = {1 << 14}, .values = valuesOf(presetName(number), bound)},
        values);
    EXPECT_LE(stored_bytes_, values.size() * 4 + values.size() * 4 / 100 + 4 * 2048)
        << presetName(number);
  }
}

}  // namespace fz::hdf5::test
