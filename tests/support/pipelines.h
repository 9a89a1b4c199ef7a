#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "coders/huffman/huffman_stage.h"
#include "coders/rle/rle.h"
#include "coders/rze/rze_stage.h"
#include "fused/bitplane_rze/bitplane_rze_stage.h"
#include "fused/lorenzo_quant/lorenzo_quant.h"
#include "fz/error.h"
#include "pipeline/compressor.h"
#include "pipeline/stat.h"
#include "predictors/diff/diff.h"
#include "shufflers/bitshuffle/bitshuffle_stage.h"

/// What most tests of pipelines need: data, chains, a round trip and the error of a call.
namespace fz::test {

using LorenzoQuantF32 = LorenzoQuantStage<float, std::uint16_t>;
using FrameBytes = std::vector<std::uint8_t>;

inline constexpr double kBound = 1e-2;

/// A smooth curve; `phase` tells data sets apart.
inline std::vector<float> wave(std::size_t n, double phase = 0.0) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i) + phase;
    values[i] = static_cast<float>(50 * std::sin(0.01 * x) + 20 * std::cos(0.003 * x));
  }
  return values;
}

template <class T>
std::size_t byteCount(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

/// A LorenzoQuant stage with the bound of the tests; its codes are below 2 * radius.
inline LorenzoQuantF32* addQuantizer(Pipeline& pipeline, int radius = 512) {
  auto* stage = pipeline.addStage<LorenzoQuantF32>(LorenzoQuantF32::Config(kBound, radius));
  stage->setZigzagCodes(true);
  return stage;
}

/// LorenzoQuant -> RLE on the codes; the outlier ports are stored as they are.
inline void buildRleChain(Pipeline& pipeline) {
  auto* quantizer = addQuantizer(pipeline);
  auto* rle = pipeline.addStage<RLEStage<std::uint16_t>>();
  pipeline.connect(rle, quantizer, "codes");
  pipeline.finalize();
}

/// A copy of the frame of `values`.
template <class T>
FrameBytes frameOf(Pipeline& pipeline, const std::vector<T>& values) {
  const CompressedView view = pipeline.compress(values.data(), byteCount(values));
  const auto* bytes = static_cast<const std::uint8_t*>(view.data);
  return {bytes, bytes + view.n_bytes};
}

/// A copy of what a frame decodes to; needs no finalized pipeline.
template <class T>
std::vector<T> decoded(Pipeline& pipeline, ByteView frame) {
  void* out = nullptr;
  std::size_t n_bytes = 0;
  pipeline.decompressFrame(frame, &out, &n_bytes);
  std::vector<T> values(n_bytes / sizeof(T));
  if (n_bytes > 0) {
    std::memcpy(values.data(), out, n_bytes);
  }
  if (!pipeline.isPoolManagedDecompOutput()) {
    std::free(out);
  }
  return values;
}

template <class T>
std::vector<T> roundTrip(Pipeline& pipeline, const std::vector<T>& values) {
  const FrameBytes frame = frameOf(pipeline, values);
  return decoded<T>(pipeline, frame);
}

/// Values that miss the bound; all of them when the lengths differ.
template <class T>
std::size_t countMisses(const std::vector<T>& original,
                        const std::vector<T>& back,
                        double bound = kBound) {
  return original.size() != back.size()
             ? original.size() + back.size()
             : countBoundViolations(original.data(), back.data(), original.size(), bound);
}

/// How a call failed; no code when it did not, or not with an error of the library.
struct Failure {
  std::optional<ErrorCode> code;
  std::string message;

  bool mentions(const std::string& text) const { return message.find(text) != std::string::npos; }
};

template <class F>
Failure failureOf(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const InvalidArgument& e) {
    return {e.code(), e.what()};
  }
  return {std::nullopt, "no error"};
}

template <class F>
std::optional<ErrorCode> codeOf(F&& f) {
  return failureOf(f).code;
}

/// A folder that disappears with its contents.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fz_test_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t fileCount() const {
    const auto files = std::filesystem::directory_iterator(path_);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

 private:
  std::filesystem::path path_;
};

inline FrameBytes readAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <class Bytes>
void writeAll(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

/// LorenzoQuant -> Difference -> Bitshuffle -> RZE.
inline void buildLongChain(Pipeline& pipeline) {
  auto* quantizer = addQuantizer(pipeline);
  auto* difference = pipeline.addStage<DifferenceStage<std::uint16_t>>();
  auto* shuffle = pipeline.addStage<BitshuffleStage>();
  shuffle->setElementWidth(2);
  auto* rze = pipeline.addStage<RZEStage>();
  pipeline.connect(difference, quantizer, "codes");
  pipeline.connect(shuffle, difference);
  pipeline.connect(rze, shuffle);
  pipeline.finalize();
}

inline void buildHuffmanChain(Pipeline& pipeline) {
  auto* huffman = pipeline.addStage<HuffmanStage<std::uint16_t>>();
  pipeline.connect(huffman, addQuantizer(pipeline), "codes");
  pipeline.finalize();
}

inline void buildBitplaneChain(Pipeline& pipeline) {
  auto* planes = pipeline.addStage<BitplaneRZEStage>();
  pipeline.connect(planes, addQuantizer(pipeline), "codes");
  pipeline.finalize();
}

using Build = void (*)(Pipeline&);
/// Every way the tests code LorenzoQuant's codes.
inline constexpr Build kCodeChains[] = {&buildRleChain, &buildLongChain, &buildHuffmanChain,
                                        &buildBitplaneChain};

}  // namespace fz::test
