#include <algorithm>
#include <atomic>

#include "backends/cpu/missing.h"
#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "fz/byte_io.h"
#include "shared/fp.h"
#include "transforms/mask/cpu/state.h"

namespace fz::mask {

template <class T>
void MaskBase::State::readStream(const CpuRun& run) {
  ByteView in = run.inputs[1];
  const auto need = [&](std::size_t n_bytes) {
    FZ_REQUIRE(in.size() >= n_bytes, ErrorCode::kCorrupt,
               "Mask: {} bytes of the mask needed, {} are left", n_bytes, in.size());
    const ByteView taken = in.first(n_bytes);
    in = in.subspan(n_bytes);
    return taken;
  };
  const std::size_t n_patterns = loadLe<std::uint32_t>(need(4).data());
  FZ_REQUIRE(n_patterns <= kMaxPatterns, ErrorCode::kCorrupt, "Mask: {} patterns, {} allowed",
             n_patterns, kMaxPatterns);
  const ByteView stored = need(n_patterns * sizeof(T));
  patterns.clear();
  for (std::size_t i = 0; i < n_patterns; ++i) {
    patterns.push_back(loadLe<BitsOf<T>>(stored.data() + i * sizeof(T)));
    FZ_REQUIRE(i == 0 || patterns[i - 1] < patterns[i], ErrorCode::kCorrupt,
               "Mask: pattern {} is not above the one before it", i);
  }
  readLayer(grid, in, run.executor, words);
  const std::uint64_t n_missing = countOnes(words, run.executor);
  FZ_REQUIRE(n_missing == stage.n_missing_, ErrorCode::kCorrupt,
             "Mask: {} missing values announced, the mask has {}", stage.n_missing_, n_missing);
  const std::uint32_t n_layers = indexLayers(n_patterns);
  const auto index = index_memory.get<std::uint64_t>(run.pool, n_layers * words.size());
  index_words.clear();
  for (std::uint32_t layer = 0; layer < n_layers; ++layer) {
    index_words.push_back(index.subspan(layer * words.size(), words.size()));
    readLayer(grid, in, run.executor, index_words.back());
  }
  raw_values = nullptr;
  if (n_patterns == 0) {
    raw_values = need(static_cast<std::size_t>(n_missing) * sizeof(T)).data();
    ranks = ranks_memory.get<std::uint64_t>(run.pool, n_values / kTileValues + 1);
    std::uint64_t rank = 0;
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (w % (kTileValues / kWordValues) == 0 && w * kWordValues < n_values) {
        ranks[w * kWordValues / kTileValues] = rank;
      }
      rank += static_cast<std::uint64_t>(__builtin_popcountll(words[w]));
    }
  }
  FZ_REQUIRE(in.empty(), ErrorCode::kCorrupt, "Mask: {} bytes behind the mask", in.size());
  checkPatterns<T>(run);
}

void MaskBase::State::beginDecode(const CpuRun& run) {
  const std::size_t sizes[] = {run.inputs[0].size(), run.inputs[1].size()};
  const std::size_t n_bytes = stage.decodedBytes(sizes);
  FZ_REQUIRE(run.outputs[0].size() >= n_bytes, ErrorCode::kBufferTooSmall,
             "Mask: {} bytes needed for the values, {} came", n_bytes, run.outputs[0].size());
  n_values = n_bytes / stage.valueBytes();
  words = {};
  if (stage.n_missing_ == 0) {
    return;
  }
  grid = makeGrid(stage.shape_[0], stage.shape_[1], stage.shape_[2]);
  words = words_memory.get<std::uint64_t>(run.pool, n_values / kWordValues + 2);
  withType(stage.type_, [&]<class T>(T /*type*/) { readStream<T>(run); });
}

template <class T>
void MaskBase::State::checkPatterns(const CpuRun& run) const {
  const auto is_declared = [&](T value) {
    return std::any_of(stage.fill_.begin(), stage.fill_.end(),
                       [&](double fill) { return static_cast<T>(fill) == value; });
  };
  const auto require_missing = [&](T value) {
    FZ_REQUIRE(!fp::isFinite(value) || is_declared(value), ErrorCode::kCorrupt,
               "Mask: {} stands for missing values, but was not declared", value);
  };
  std::uint64_t n_filled = 0;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    require_missing(patternValue<T>(i));
  }
  if (raw_values != nullptr) {
    for (std::uint64_t i = 0; i < stage.n_missing_; ++i) {
      const T value = __builtin_bit_cast(T, loadLe<BitsOf<T>>(raw_values + i * sizeof(T)));
      require_missing(value);
      n_filled += fp::isFinite(value) ? 1u : 0u;
    }
  } else if (patterns.size() == 1) {
    n_filled = fp::isFinite(patternValue<T>(0)) ? stage.n_missing_ : 0;
  } else {
    std::atomic<std::uint64_t> n_found = 0;
    FirstIndex wrong;
    parallelRanges(run.executor, words.size(), [&](std::size_t begin, std::size_t end) {
      std::uint64_t n = 0;
      for (std::size_t w = begin; w < end; ++w) {
        for (const auto& layer : index_words) {
          if ((layer[w] & ~words[w]) != 0) {
            wrong.record(w * kWordValues);
          }
        }
        for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
          const std::size_t index = patternIndex(w, bits::firstSet(left));
          if (index >= patterns.size()) {
            wrong.record(w * kWordValues);
          } else {
            n += fp::isFinite(patternValue<T>(index)) ? 1u : 0u;
          }
        }
      }
      n_found.fetch_add(n, std::memory_order_relaxed);
    });
    FZ_REQUIRE(!wrong.found(), ErrorCode::kCorrupt,
               "Mask: a missing value near {} has a pattern that does not exist", wrong.value());
    n_filled = n_found;
  }
  FZ_REQUIRE(n_filled == stage.n_filled_, ErrorCode::kCorrupt,
             "Mask: {} fill values announced, the mask has {}", stage.n_filled_, n_filled);
}

template <class T>
void MaskBase::State::decodeValues(const TileRange& range, const T* in, T* out) const {
  if (in != out) {
    std::memcpy(out, in, range.n_values * sizeof(T));
  }
  if (words.empty()) {
    return;
  }
  if (patterns.size() == 1) {
    putWhere({reinterpret_cast<BitsOf<T>*>(out), range.n_values},
             words.data() + range.first / kWordValues, static_cast<BitsOf<T>>(patterns.front()));
    return;
  }
  const std::uint8_t* raw = nullptr;
  if (raw_values != nullptr) {
    const std::size_t block = range.first / kTileValues;
    std::uint64_t rank = ranks[block];
    for (std::size_t w = block * (kTileValues / kWordValues); w < range.first / kWordValues; ++w) {
      rank += static_cast<std::uint64_t>(__builtin_popcountll(words[w]));
    }
    raw = raw_values + rank * sizeof(T);
  }
  for (std::size_t at = 0; at < range.n_values; at += kWordValues) {
    const std::size_t w = (range.first + at) / kWordValues;
    for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
      const std::uint32_t k = bits::firstSet(left);
      if (raw != nullptr) {
        std::memcpy(out + at + k, raw, sizeof(T));
        raw += sizeof(T);
      } else {
        const auto pattern = static_cast<BitsOf<T>>(patterns[patternIndex(w, k)]);
        std::memcpy(out + at + k, &pattern, sizeof(T));
      }
    }
  }
}

template void MaskBase::State::decodeValues(const TileRange&, const float*, float*) const;
template void MaskBase::State::decodeValues(const TileRange&, const double*, double*) const;

}  // namespace fz::mask
