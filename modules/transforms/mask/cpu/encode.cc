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
  const std::size_t n_searched = stage.hold_[0] == 0 && !stage.keeps_nan_ ? n_values : 0;
  withType(stage.type_, [&]<class T>(T /*type*/) {
    const T* const values = reinterpret_cast<const T*>(field);
    for (std::size_t at = 0; at < n_searched && first_valid == kNoneYet; at += kWordValues) {
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
  const T filler = stage.keeps_nan_ ? std::numeric_limits<T>::quiet_NaN() : T{0};
  const MissingBits found =
      takeOutMissing(std::span<const T>(in, range.n_values), fillOf<T>(), filler, tile_words, out);
  if (!found.any) {
    finding.last_valid.store(range.first + range.n_values - 1 + kIndexBase,
                             std::memory_order_release);
    return;
  }
  // Nearly all tiles have one pattern, which is all that has to be known of them.
  finding.has_missing = true;
  finding.pattern = found.first;
  finding.has_patterns = !found.are_alike;
  if (!fillsTiles() && !stage.keeps_nan_) {
    holdIn(range, out);
  }
}

/// The value before, in the whole field or inside of units, for the missing values of a tile, which
/// are fillers.
template <class T>
void MaskBase::State::holdIn(const TileRange& range, T* out) {
  const std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  const std::span<T> values(out, range.n_values);
  const std::size_t hold_values = stage.hold_[0];
  if (hold_values == 0) {
    holdInField(range, values);
  } else if (hold_values % kWordValues == 0) {
    holdInWords(values, tile_words);
  } else if (kWordValues % hold_values == 0) {
    if (hold_values > 1) {
      fz::holdInUnits(values, tile_words, static_cast<std::uint32_t>(hold_values));
    }
  } else {
    holdInUnits(range, out);
  }
}

/// The last valid value of a tile, as findings have it; kUnknown: there is none.
std::uint64_t MaskBase::State::lastValidIn(const TileRange& range) const {
  const std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  for (std::size_t end = range.n_values; end > 0;) {
    const std::size_t begin = (end - 1) / kWordValues * kWordValues;
    const std::uint64_t valid =
        ~tile_words[begin / kWordValues] & lowBits(static_cast<std::uint32_t>(end - begin));
    if (valid != 0) {
      return range.first + begin + bits::bitWidth(valid) - 1 + kIndexBase;
    }
    end = begin;
  }
  return kUnknown;
}

template <class T>
void MaskBase::State::holdInField(const TileRange& range, std::span<T> values) {
  const std::size_t tile = range.first / tile_values;
  const std::uint64_t* const tile_words = words.data() + range.first / kWordValues;
  std::uint64_t last = lastValidIn(range);
  T held{};
  if ((tile_words[0] & 1) != 0) {
    const std::uint64_t before = lastValidBefore<T>(tile);
    const std::uint64_t held_at = before == kNoneYet ? first_valid : before;
    held = held_at == kNoneYet ? T{} : reinterpret_cast<const T*>(field)[held_at - kIndexBase];
    last = last == kUnknown ? before : last;
  }
  holdBefore(values, tile_words, held);
  findings[tile].last_valid.store(last, std::memory_order_release);
}

/// Units of several words; at the front they take their first valid value.
template <class T>
void MaskBase::State::holdInWords(std::span<T> values, const std::uint64_t* tile_words) const {
  for (std::size_t begin = 0; begin < values.size(); begin += stage.hold_[0]) {
    const std::span<T> unit =
        values.subspan(begin, std::min(stage.hold_[0], values.size() - begin));
    const std::uint64_t* const unit_words = tile_words + begin / kWordValues;
    for (std::size_t at = 0; at < unit.size(); at += kWordValues) {
      const auto n = static_cast<std::uint32_t>(std::min(kWordValues, unit.size() - at));
      const std::uint64_t valid = ~unit_words[at / kWordValues] & lowBits(n);
      if (valid != 0) {
        holdBefore(unit, unit_words, unit[at + bits::firstSet(valid)]);
        break;
      }
    }
  }
}

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

/// The tiles beside each other from `origin` on that have a row in one word. Most have no missing
/// value or nothing else, and stay as they are.
template <class T>
void MaskBase::State::fillBeside(const std::array<std::uint64_t, 3>& origin, T* values) const {
  const std::uint64_t nx = stage.shape_[0];
  const std::uint64_t width =
      std::min<std::uint64_t>(tilesBeside() * stage.hold_[0], nx - origin[0]);
  const auto n_bits = static_cast<std::uint32_t>(width);
  const std::uint64_t end_y = std::min(origin[1] + stage.hold_[1], stage.shape_[1]);
  const std::uint64_t end_z = std::min(origin[2] + stage.hold_[2], stage.shape_[2]);
  std::uint64_t any = 0;
  std::uint64_t all = lowBits(n_bits);
  for (std::uint64_t z = origin[2]; z < end_z; ++z) {
    for (std::uint64_t y = origin[1]; y < end_y; ++y) {
      const std::uint64_t missing =
          loadBits(words.data(), (z * stage.shape_[1] + y) * nx + origin[0], n_bits);
      any |= missing;
      all &= missing;
    }
  }
  for (std::uint64_t x = 0; x < width; x += stage.hold_[0]) {
    const std::uint64_t ones =
        lowBits(static_cast<std::uint32_t>(std::min<std::uint64_t>(stage.hold_[0], width - x)));
    if ((any >> x & ones) != 0 && (all >> x & ones) != ones) {
      fillTile<T>({origin[0] + x, origin[1], origin[2]}, values);
    }
  }
}

/// Of which the rows have 64 values at most.
std::size_t MaskBase::State::tilesBeside() const {
  return std::max<std::size_t>(1, kWordValues / stage.hold_[0]);
}

void MaskBase::State::fillTiles(const CpuRun& run) const {
  std::array<std::size_t, 3> n_parts = {};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    n_parts[axis] = bits::ceilDiv<std::size_t>(stage.shape_[axis],
                                               stage.hold_[axis] * (axis == 0 ? tilesBeside() : 1));
  }
  withType(stage.type_, [&]<class T>(T /*type*/) {
    T* const values = reinterpret_cast<T*>(run.outputs[0].data());
    parallelFor(run.executor, n_parts[0] * n_parts[1] * n_parts[2], [&](std::size_t part) {
      fillBeside<T>({part % n_parts[0] * stage.hold_[0] * tilesBeside(),
                     part / n_parts[0] % n_parts[1] * stage.hold_[1],
                     part / n_parts[0] / n_parts[1] * stage.hold_[2]},
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
