#include <algorithm>
#include <limits>

#include "backends/cpu/missing.h"
#include "backends/cpu/parallel_for.h"
#include "shared/fp.h"
#include "transforms/mask/cpu/state.h"

namespace fz::mask {

void MaskBase::State::beginEncode(const CpuRun& run) {
  const auto dims = stage.dimsFor(run.inputs[0].size(), ErrorCode::kBadSize);
  stage.shape_ = {dims[0], dims[1], dims[2]};
  n_values = run.inputs[0].size() / stage.valueBytes();
  field = run.inputs[0].data();
  grid = makeGrid(dims[0], dims[1], dims[2]);
  fill_f32.clear();
  fill_f64.clear();
  for (const double value : stage.fill_) {
    addFill(value, fill_f32);
    addFill(value, fill_f64);
  }
  words = words_memory.get<std::uint64_t>(run.pool, n_values / kWordValues + 2);
  words[n_values / kWordValues] = 0;
  words[n_values / kWordValues + 1] = 0;
  findings = findings_memory.get<TileFinding>(run.pool, bits::ceilDiv(n_values, tile_values));
  parallelFor(run.executor, findings.size(), [&](std::size_t tile) {
    new (&findings[tile]) TileFinding{kUnknown, 0, false, false};
  });
  first_valid = kNoneYet;
  withType(stage.type_, [&]<class T>(T /*type*/) {
    const T* const values = reinterpret_cast<const T*>(field);
    for (std::size_t at = 0; at < n_values && first_valid == kNoneYet; at += kWordValues) {
      const std::size_t n = std::min(kWordValues, n_values - at);
      std::uint64_t word = 0;
      findMissing(values + at, n, fillOf<T>(), &word);
      if (word != lowBits(static_cast<std::uint32_t>(n))) {
        first_valid = at + bits::firstSet(~word) + kIndexBase;
      }
    }
  });
}

/// The last valid value before a tile, as findings have it. Tiles whose own is not known yet are
/// looked at here, so that nobody waits.
template <class T>
std::uint64_t MaskBase::State::lastValidBefore(std::size_t tile) const {
  const T* const values = reinterpret_cast<const T*>(field);
  while (tile-- > 0) {
    const std::uint64_t known = findings[tile].last_valid.load(std::memory_order_acquire);
    if (known != kUnknown) {
      return known;
    }
    const std::size_t begin = tile * tile_values;
    for (std::size_t at = bits::roundUp(std::min(begin + tile_values, n_values), kWordValues);
         at > begin; at -= kWordValues) {
      const std::size_t first = at - kWordValues;
      const std::size_t n = std::min(kWordValues, n_values - first);
      std::uint64_t word = 0;
      findMissing(values + first, n, fillOf<T>(), &word);
      const std::uint64_t valid = ~word & lowBits(static_cast<std::uint32_t>(n));
      if (valid != 0) {
        return first + bits::bitWidth(valid) - 1 + kIndexBase;
      }
    }
  }
  return kNoneYet;
}

template <class T>
void MaskBase::State::encodeValues(const TileRange& range, const T* in, T* out) {
  TileFinding& finding = findings[range.first / tile_values];
  std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  if (!findMissing(in, range.n_values, fillOf<T>(), tile_words)) {
    std::memcpy(out, in, range.n_values * sizeof(T));
    finding.last_valid.store(range.first + range.n_values - 1 + kIndexBase,
                             std::memory_order_release);
    return;
  }
  std::size_t word = 0;
  while (tile_words[word] == 0) {
    ++word;
  }
  // Nearly all tiles have one pattern, which is all that has to be known of them.
  const BitsOf<T> pattern = bitsAt(in, word * kWordValues + bits::firstSet(tile_words[word]));
  const BitsOf<T> filler =
      stage.keeps_nan_ ? fp::bits(std::numeric_limits<T>::quiet_NaN()) : BitsOf<T>{0};
  finding.has_missing = true;
  finding.pattern = pattern;
  finding.has_patterns =
      !copyReplaced({reinterpret_cast<const BitsOf<T>*>(in), range.n_values}, tile_words,
                    {.from = pattern, .to = filler}, reinterpret_cast<BitsOf<T>*>(out));
  if (!fillsTiles() && !stage.keeps_nan_) {
    finding.last_valid.store(holdIn(range, out), std::memory_order_release);
  }
}

/// Values in the places of a word's ones take the one before, the first of all `held`; `values` are
/// those from the word's first on.
template <class T>
void holdRuns(std::uint64_t word, T held, T* values) {
  while (word != 0) {
    const std::uint32_t begin = bits::firstSet(word);
    const std::uint32_t end = begin + bits::firstSet(~(word >> begin));
    const T value = begin == 0 ? held : values[begin - 1];
    for (std::uint32_t i = begin; i < end; ++i) {
      values[i] = value;
    }
    word &= end == kWordValues ? 0 : ~std::uint64_t{0} << end;
  }
}

/// The value before, in the whole field or inside of units, for the missing values of a tile, which
/// are zeros. Returns the last valid one, as findings have it.
template <class T>
std::uint64_t MaskBase::State::holdIn(const TileRange& range, T* out) const {
  const std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  const std::size_t n_words = bits::ceilDiv(range.n_values, kWordValues);
  const auto used = [&](std::size_t word) {
    return lowBits(
        static_cast<std::uint32_t>(std::min(kWordValues, range.n_values - word * kWordValues)));
  };
  std::uint64_t last = kUnknown;
  for (std::size_t word = n_words; word-- > 0 && last == kUnknown;) {
    const std::uint64_t valid = ~tile_words[word] & used(word);
    if (valid != 0) {
      last = range.first + word * kWordValues + bits::bitWidth(valid) - 1 + kIndexBase;
    }
  }
  const std::size_t hold_values = stage.hold_[0];
  if (hold_values != 0 && hold_values % kWordValues == 0) {
    holdInWords(range, out);
    return last;
  }
  if (hold_values != 0 && kWordValues % hold_values != 0) {
    holdInUnits(range, out);
    return last;
  }
  if (hold_values == 0) {
    T held{};
    if ((tile_words[0] & 1) != 0) {
      const std::uint64_t before = lastValidBefore<T>(range.first / tile_values);
      const std::uint64_t held_at = before == kNoneYet ? first_valid : before;
      held = held_at == kNoneYet ? T{} : reinterpret_cast<const T*>(field)[held_at - kIndexBase];
      last = last == kUnknown ? before : last;
    }
    for (std::size_t word = 0; word < n_words; ++word) {
      T* const values = out + word * kWordValues;
      holdRuns(tile_words[word], word == 0 ? held : *(values - 1), values);
    }
    return last;
  }
  // Units of whole words: only those with missing and valid values are not zeros or themselves.
  const std::uint64_t unit = lowBits(static_cast<std::uint32_t>(hold_values));
  for (std::size_t word = 0; word < n_words; ++word) {
    if (tile_words[word] == 0 || tile_words[word] == used(word)) {
      continue;
    }
    for (std::size_t at = 0; at < kWordValues; at += hold_values) {
      const std::uint64_t missing = tile_words[word] >> at & unit;
      const std::uint64_t valid = ~missing & unit & used(word) >> at;
      if (missing != 0 && valid != 0) {
        T* const values = out + word * kWordValues + at;
        holdRuns(missing, values[bits::firstSet(valid)], values);
      }
    }
  }
  return last;
}

/// Units of several words.
template <class T>
void MaskBase::State::holdInWords(const TileRange& range, T* out) const {
  const std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  const std::size_t n_words = bits::ceilDiv(range.n_values, kWordValues);
  const std::size_t unit_words = stage.hold_[0] / kWordValues;
  for (std::size_t begin = 0; begin < n_words; begin += unit_words) {
    const std::size_t end = std::min(begin + unit_words, n_words);
    T held{};
    bool has_held = false;
    for (std::size_t word = begin; word < end; ++word) {
      const std::uint64_t missing = tile_words[word];
      T* const values = out + word * kWordValues;
      const std::size_t n = std::min(kWordValues, range.n_values - word * kWordValues);
      const std::uint64_t valid = ~missing & lowBits(static_cast<std::uint32_t>(n));
      if (!has_held && valid != 0) {
        held = values[bits::firstSet(valid)];
        std::fill(out + begin * kWordValues, values, held);
        has_held = true;
      }
      if (has_held && missing != 0) {
        holdRuns(missing, held, values);
      }
      held = has_held ? values[n - 1] : held;
    }
  }
}

/// Units that are no part of a word: many of them, or some with an odd number of values.
template <class T>
void MaskBase::State::holdInUnits(const TileRange& range, T* out) const {
  const std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  const auto is_missing = [&](std::size_t i) {
    return (tile_words[i / kWordValues] >> (i % kWordValues) & 1) != 0;
  };
  for (std::size_t at = 0; at < range.n_values; at += stage.hold_[0]) {
    const std::size_t end = std::min(at + stage.hold_[0], range.n_values);
    std::size_t first = at;
    while (first < end && is_missing(first)) {
      ++first;
    }
    T held = first < end ? out[first] : T{};
    for (std::size_t i = at; i < end; ++i) {
      held = is_missing(i) ? held : out[i];
      out[i] = held;
    }
  }
}

/// To the left, else the one above, else the one behind, and at the origin the first valid one.
template <class T>
void MaskBase::State::fillTile(const std::array<std::uint64_t, 3>& origin, T* values) const {
  const std::uint64_t nx = stage.shape_[0];
  const std::uint64_t ny = stage.shape_[1];
  const auto extent = [&](std::size_t axis) {
    return std::min<std::uint64_t>(stage.hold_[axis], stage.shape_[axis] - origin[axis]);
  };
  const auto n_x = static_cast<std::uint32_t>(extent(0));
  const std::uint64_t n_rows = extent(1) * extent(2);
  const auto start = [&](std::uint64_t row) {
    return ((origin[2] + row / extent(1)) * ny + origin[1] + row % extent(1)) * nx + origin[0];
  };
  T first{};
  bool has_missing = false;
  bool has_valid = false;
  for (std::uint64_t row = 0; row < n_rows; ++row) {
    const std::uint64_t missing = loadBits(words.data(), start(row), n_x);
    has_missing = has_missing || missing != 0;
    if (!has_valid && missing != lowBits(n_x)) {
      has_valid = true;
      first = values[start(row) + bits::firstSet(~missing)];
    }
  }
  for (std::uint64_t row = 0; has_missing && row < n_rows; ++row) {
    T* const out = values + start(row);
    T held = row == 0               ? first
             : row % extent(1) != 0 ? values[start(row - 1)]
                                    : values[start(row - extent(1))];
    const std::uint64_t missing = loadBits(words.data(), start(row), n_x);
    for (std::uint32_t i = 0; i < n_x; ++i) {
      held = (missing >> i & 1) != 0 ? held : out[i];
      out[i] = held;
    }
  }
}

void MaskBase::State::fillTiles(const CpuRun& run) const {
  std::array<std::size_t, 3> n_tiles = {};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    n_tiles[axis] = bits::ceilDiv<std::size_t>(stage.shape_[axis], stage.hold_[axis]);
  }
  withType(stage.type_, [&]<class T>(T /*type*/) {
    T* const values = reinterpret_cast<T*>(run.outputs[0].data());
    parallelFor(run.executor, n_tiles[0] * n_tiles[1] * n_tiles[2], [&](std::size_t tile) {
      fillTile<T>(
          {tile % n_tiles[0] * stage.hold_[0], tile / n_tiles[0] % n_tiles[1] * stage.hold_[1],
           tile / n_tiles[0] / n_tiles[1] * stage.hold_[2]},
          values);
    });
  });
}

/// All patterns of missing values, or none where they are too many.
template <class T>
void MaskBase::State::findPatterns(const CpuRun& run) {
  patterns.clear();
  bool is_one = true;
  for (const TileFinding& finding : findings) {
    if (finding.has_missing && patterns.empty()) {
      patterns.push_back(finding.pattern);
    }
    is_one = is_one && !finding.has_patterns &&
             (!finding.has_missing || finding.pattern == patterns.front());
  }
  if (is_one) {
    return;
  }
  constexpr std::size_t kParts = 64;
  std::vector<std::vector<std::uint64_t>> found(kParts);
  const T* const values = reinterpret_cast<const T*>(field);
  const std::size_t share =
      bits::roundUp(bits::ceilDiv(std::max<std::size_t>(n_values, 1), kParts), kWordValues);
  parallelFor(run.executor, kParts, [&](std::size_t part) {
    std::vector<std::uint64_t>& mine = found[part];
    const std::size_t end = std::min(n_values, (part + 1) * share);
    forEachMissing(words.data(), std::min(end, part * share), end, [&](std::size_t i) {
      const std::uint64_t pattern = bitsAt(values, i);
      if (mine.size() > kMaxPatterns) {
        return;
      }
      const auto place = std::lower_bound(mine.begin(), mine.end(), pattern);
      if (place == mine.end() || *place != pattern) {
        mine.insert(place, pattern);
      }
    });
  });
  patterns.clear();
  for (const auto& mine : found) {
    patterns.insert(patterns.end(), mine.begin(), mine.end());
  }
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  if (patterns.size() > kMaxPatterns) {
    patterns.clear();
  }
}

template <class T>
void MaskBase::State::writeStream(const CpuRun& run, StreamWriter& out) {
  const T* const values = reinterpret_cast<const T*>(field);
  out.le(patterns.size(), 4);
  for (const std::uint64_t pattern : patterns) {
    out.le(pattern, sizeof(T));
  }
  writeLayer(grid, true, words, run.executor, run.pool, layer_memory, out);
  if (patterns.empty()) {
    forEachMissing(words.data(), 0, n_values,
                   [&](std::size_t i) { out.bytes(values + i, sizeof(T)); });
    return;
  }
  for (std::uint32_t layer = 0; layer < indexLayers(patterns.size()); ++layer) {
    const auto index = index_memory.get<std::uint64_t>(run.pool, words.size());
    parallelFor(run.executor, words.size(), [&](std::size_t w) {
      std::uint64_t word = 0;
      for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
        const std::uint32_t k = bits::firstSet(left);
        const auto place =
            std::lower_bound(patterns.begin(), patterns.end(), bitsAt(values, w * kWordValues + k));
        word |= static_cast<std::uint64_t>((place - patterns.begin()) >> layer & 1) << k;
      }
      index[w] = word;
    });
    writeLayer(grid, false, index, run.executor, run.pool, layer_memory, out);
  }
}

void MaskBase::State::endEncode(const CpuRun& run) {
  stage.n_missing_ = countOnes(words, run.executor);
  stage.n_filled_ = 0;
  if (stage.n_missing_ == 0) {
    stage.setActualBytes(1, 0);
    return;
  }
  StreamWriter out(run.outputs[1]);
  withType(stage.type_, [&]<class T>(T /*type*/) {
    findPatterns<T>(run);
    const T* const values = reinterpret_cast<const T*>(field);
    if (patterns.size() == 1) {
      stage.n_filled_ = fp::isFinite(patternValue<T>(0)) ? stage.n_missing_ : 0;
    } else if (!stage.fill_.empty()) {
      forEachMissing(words.data(), 0, n_values,
                     [&](std::size_t i) { stage.n_filled_ += fp::isFinite(values[i]) ? 1u : 0u; });
    }
    writeStream<T>(run, out);
  });
  if (!out.fits()) {
    stage.requestOutputBytes(0, n_values * stage.valueBytes());
    stage.requestOutputBytes(1, out.size());
    return;
  }
  stage.setActualBytes(1, out.size());
}

template void MaskBase::State::encodeValues(const TileRange&, const float*, float*);
template void MaskBase::State::encodeValues(const TileRange&, const double*, double*);

}  // namespace fz::mask
