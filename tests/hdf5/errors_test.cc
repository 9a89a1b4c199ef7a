// What cannot be done, and what was damaged: an HDF5 error with words, never anything worse.
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <thread>

#include "chunk_codec.h"
#include "fz/error.h"
#include "fz/hdf5.h"
#include "hdf5/hdf5_support.h"
#include "hdf5_calls.h"

namespace fz::hdf5::test {

using testing::Test;

class Hdf5Errors : public Hdf5Test {
 protected:
  void expectRefused(const Dataset& dataset, const std::string& why) {
    EXPECT_LT(make(dataset), 0);
    EXPECT_NE(error_.find(why), std::string::npos) << error_;
  }
};

TEST_F(Hdf5Errors, ABoundOnIntegersIsRefusedWhenTheDatasetIsMade) {
  expectRefused(
      {.type = H5T_STD_I32LE, .memory_type = H5T_NATIVE_INT, .values = valuesOf("pfpl", "abs:1")},
      "the preset lossless takes any");
}

TEST_F(Hdf5Errors, BigEndianFloatsWithABoundAreRefused) {
  expectRefused({.type = H5T_IEEE_F32BE, .values = valuesOf("pfpl", "abs:1")}, "little-endian");
}

TEST_F(Hdf5Errors, CompoundTypesAreRefused) {
  const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(type, "a", 0, H5T_IEEE_F32LE);
  H5Tinsert(type, "b", 4, H5T_IEEE_F32LE);
  expectRefused({.type = type}, "integers and floats of 1, 2, 4 or 8 bytes");
  H5Tclose(type);
}

TEST_F(Hdf5Errors, APresetThatLacksTheKindOfBoundIsRefused) {
  expectRefused({.values = valuesOf("cuszp2", "rel:1e-3")}, "does not take this bound");
  expectRefused({.values = valuesOf("cusz", "rel:1e-3")}, "does not take this bound");
}

TEST_F(Hdf5Errors, UnknownParametersAreRefused) {
  const std::vector<unsigned> good = valuesOf("pfpl", "abs:1e-3");
  const auto with = [&](std::size_t at, unsigned word) {
    std::vector<unsigned> values = good;
    values[at] = word;
    return Dataset{.values = values};
  };
  expectRefused(with(FZ_HDF5_WORD_LAYOUT, 2), "unknown layout 2");
  expectRefused(with(FZ_HDF5_WORD_FLAGS, 0x80), "flags");
  expectRefused(with(FZ_HDF5_WORD_PRESET, 999), "no preset has the number 999");
  expectRefused(with(FZ_HDF5_WORD_MODE, 3), "no kind of bound has the number 3");
  expectRefused(with(FZ_HDF5_WORD_BOUND + 1, 0x7ff80000u), "finite number above 0");
  expectRefused(with(FZ_HDF5_WORD_BOUND + 1, 0x80000000u), "finite number above 0");
  expectRefused({.values = {1, 0, 7}}, "3 words, expected 6");
}

TEST_F(Hdf5Errors, VariablesThatMakeNoSenseAreRefused) {
  const hid_t id = make({.values = valuesOf("pfpl", "abs:1e-3")});
  const auto refuses = [&](const char* name, const char* value, const std::string& words) {
    setenv(name, value, 1);
    const bool is_refused = H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                     field<float>(100).data()) < 0 ||
                            H5Dflush(id) < 0;
    unsetenv(name);
    return is_refused && errorText().find(words) != std::string::npos;
  };
  EXPECT_TRUE(refuses("FZ_HDF5_BACKEND", "gpu", "FZ_HDF5_BACKEND is 'gpu'"));
  EXPECT_TRUE(refuses("FZ_HDF5_THREADS", "-1", "FZ_HDF5_THREADS is '-1'"));
  EXPECT_TRUE(refuses("FZ_HDF5_THREADS", "2x", "FZ_HDF5_THREADS is '2x'"));
  // The chunk that could not be written is tried once more, now without them.
  EXPECT_GE(H5Dclose(id), 0);
}

TEST_F(Hdf5Errors, AnotherFilterBeforeThisOneIsRefused) {
  const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t extent = 64;
  const std::vector<unsigned> values = valuesOf("pfpl", "abs:1e-3");
  H5Pset_chunk(plist, 1, &extent);
  H5Pset_shuffle(plist);
  H5Pset_filter(plist, FZ_HDF5_FILTER_ID, 0, values.size(), values.data());
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  EXPECT_LT(H5Dcreate2(file_, "s", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT), 0);
  EXPECT_NE(errorText().find("must be the first filter"), std::string::npos);
  H5Sclose(space);
  H5Pclose(plist);
}

TEST_F(Hdf5Errors, StrictMakesANumberThatThePresetCannotKeepAnError) {
  std::vector<float> values = field<float>(100);
  values[40] = 1e30f;
  const hid_t id = make({.values = valuesOf("cuszp2", "abs:1e-3", FZ_HDF5_STRICT)});
  ASSERT_GE(id, 0);
  const bool is_written =
      H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0 &&
      H5Dflush(id) >= 0;
  const std::string text = errorText();
  EXPECT_FALSE(is_written);
  EXPECT_NE(text.find("cannot be kept within the bound"), std::string::npos) << text;
  // The chunk that cannot be written would be tried once more when the file closes.
  H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, field<float>(100).data());
  EXPECT_GE(H5Dclose(id), 0);
}

/// Puts `frame` into the dataset's one chunk as it is, and reads.
bool canRead(hid_t file, const std::vector<std::uint8_t>& frame, std::string* error) {
  hid_t id = H5Dopen2(file, "d", H5P_DEFAULT);
  const hsize_t origin = 0;
  EXPECT_GE(H5Dwrite_chunk(id, H5P_DEFAULT, 0, &origin, frame.size(), frame.data()), 0);
  H5Dclose(id);
  id = H5Dopen2(file, "d", H5P_DEFAULT);
  std::vector<float> back(256);
  const bool fine = H5Dread(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back.data()) >= 0;
  *error = errorText();
  H5Dclose(id);
  return fine;
}

std::vector<std::uint8_t> frameOf(std::size_t n_values) {
  Settings settings = settingsFromText("pfpl", "abs:1e-3", 0);
  settings.type = DataType::FLOAT32;
  settings.chunk_dims = {n_values};
  const std::vector<float> values = field<float>(n_values);
  const Frame frame = encodeChunk(
      settings, {reinterpret_cast<const std::uint8_t*>(values.data()), n_values * sizeof(float)});
  return {frame.bytes().begin(), frame.bytes().end()};
}

TEST_F(Hdf5Errors, EveryDamagedChunkIsAnError) {
  const hid_t id = make({.dims = {256}, .chunk = {256}, .values = valuesOf("pfpl", "abs:1e-3")});
  ASSERT_GE(id, 0);
  H5Dclose(id);
  const std::vector<std::uint8_t> good = frameOf(256);
  std::string error;
  ASSERT_TRUE(canRead(file_, good, &error)) << error;
  for (std::size_t n_bytes = 1; n_bytes < good.size(); n_bytes += 3) {
    ASSERT_FALSE(canRead(file_, {good.begin(), good.begin() + static_cast<long>(n_bytes)}, &error))
        << n_bytes;
  }
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 3) {
    std::vector<std::uint8_t> bad = good;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
    ASSERT_FALSE(canRead(file_, bad, &error)) << bit;
    ASSERT_NE(error.find("fz: "), std::string::npos) << error;
  }
  EXPECT_TRUE(canRead(file_, good, &error)) << "HDF5 goes on after the errors";
}

TEST_F(Hdf5Errors, AFrameOfAnotherLengthIsAnErrorBeforeItIsDecoded) {
  H5Dclose(make({.dims = {256}, .chunk = {256}, .values = valuesOf("pfpl", "abs:1e-3")}));
  for (const std::size_t n_values : {1u, 255u, 257u, 100000u}) {
    std::string text;
    EXPECT_FALSE(canRead(file_, frameOf(n_values), &text));
    EXPECT_NE(text.find("the chunk has 1024"), std::string::npos) << text;
  }
}

/// The filter function itself, as HDF5 calls it.
class Hdf5Function : public Hdf5Test {
 protected:
  void SetUp() override {
    Hdf5Test::SetUp();
    void* plugin = dlopen((pluginDir() + "/" + FZ_PLUGIN_NAME).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << dlerror();
    auto* info = reinterpret_cast<const void* (*)()>(dlsym(plugin, "H5PLget_plugin_info"));
    filter_ = static_cast<const FilterClass*>(info());
  }

  /// Gives what the filter gives; the buffer is one of HDF5's.
  std::vector<std::uint8_t> call(unsigned flags,
                                 const std::vector<unsigned>& values,
                                 const std::vector<std::uint8_t>& bytes) const {
    std::size_t buffer_bytes = bytes.size();
    void* buffer = H5allocate_memory(std::max<std::size_t>(1, bytes.size()), false);
    std::memcpy(buffer, bytes.data(), bytes.size());
    const std::size_t n_bytes =
        filter_->filter(flags, values.size(), values.data(), bytes.size(), &buffer_bytes, &buffer);
    const auto* begin = static_cast<const std::uint8_t*>(buffer);
    std::vector<std::uint8_t> result(begin, begin + n_bytes);
    H5free_memory(buffer);
    return result;
  }

  const FilterClass* filter_ = nullptr;
};

std::vector<unsigned> chunkValues(unsigned preset, std::uint64_t n_values) {
  std::vector<unsigned> values(FZ_HDF5_MAX_WORDS);
  fz_hdf5_cd_values(values.data(), preset, FZ_HDF5_ABS, 1e-3, 0);
  values.resize(fz_hdf5_cd_values_of_chunk(values.data(), static_cast<unsigned>(DataType::FLOAT32),
                                           1, &n_values));
  return values;
}

std::vector<std::uint8_t> bytesOf(const std::vector<float>& values) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return {begin, begin + values.size() * sizeof(float)};
}

TEST_F(Hdf5Function, ThreadsGetTheSameBytesAtTheSameTime) {
  const std::vector<std::uint8_t> chunk = bytesOf(field<float>(20000));
  const std::vector<unsigned> values = chunkValues(FZ_HDF5_PFPL, 20000);
  const std::vector<std::uint8_t> frame = call(0, values, chunk);
  const std::vector<std::uint8_t> back = call(H5Z_FLAG_REVERSE, values, frame);
  ASSERT_FALSE(frame.empty());
  ASSERT_EQ(back.size(), chunk.size());
  std::vector<int> n_wrong(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(n_wrong.size());
    for (int& wrong : n_wrong) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          wrong += call(0, values, chunk) != frame;
          wrong += call(H5Z_FLAG_REVERSE, values, frame) != back;
        }
      });
    }
  }
  EXPECT_EQ(n_wrong, std::vector<int>(8));
}

TEST_F(Hdf5Function, RandomParametersAndRandomFramesGiveNothingOrAChunk) {
  std::mt19937 random(1);
  const std::vector<std::uint8_t> chunk = bytesOf(field<float>(500));
  const std::vector<unsigned> good = chunkValues(FZ_HDF5_FZGPU, 500);
  const std::vector<std::uint8_t> frame = call(0, good, chunk);
  for (int i = 0; i < 4000; ++i) {
    std::vector<unsigned> values = good;
    std::vector<std::uint8_t> bytes = i % 2 == 0 ? frame : chunk;
    for (unsigned n = 0; n < 1 + random() % 3; ++n) {
      values[random() % values.size()] =
          static_cast<unsigned>(random() % 4 == 0 ? random() : random() % 12);
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    }
    values.resize(random() % 8 == 0 ? random() % (values.size() + 1) : values.size());
    const unsigned flags = i % 2 == 0 ? H5Z_FLAG_REVERSE : 0;
    const std::size_t n_bytes = call(flags, values, bytes).size();
    ASSERT_LE(n_bytes, chunk.size() * 5);
  }
  errorText();
}

}  // namespace fz::hdf5::test
