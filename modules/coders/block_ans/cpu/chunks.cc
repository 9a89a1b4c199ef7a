#include "coders/block_ans/cpu/chunks.h"

#include <array>

#include "coders/block_ans/book_codec.h"
#include "fz/byte_io.h"

namespace fz::block_ans {

namespace {

template <class F>
auto withType(const ValueView& view, F f) {
  return view.value_bytes == 2 ? f(std::uint16_t{}) : f(std::uint32_t{});
}

/// Numbers of a block; those past the end are 0.
template <class T>
void loadBlock(const ValueView& in, std::uint64_t block, std::uint32_t* u) {
  const T* values = static_cast<const T*>(in.values);
  const std::uint64_t first = block * kBlockValues;
  for (std::uint32_t i = 0; i < kBlockValues; ++i) {
    u[i] = first + i < in.n_values ? mapped(values[first + i], in.map) : 0;
  }
}

template <class T>
std::uint32_t encodeAs(const ValueView& in,
                       const Chunk& chunk,
                       const std::uint8_t* classes,
                       const Coding& coding,
                       std::uint16_t* stack,
                       std::uint32_t* states) {
  LaneEncoder lanes(stack);
  const std::uint64_t first_group = chunk.first_value / kGroupValues;
  for (std::uint64_t g = first_group + chunk.n_groups; g-- > first_group;) {
    const std::uint8_t* of_group = classes + g * kGroupBlocks;
    for (std::uint32_t b = kGroupBlocks; b-- > 0;) {
      if (of_group[b] != 0) {
        std::uint32_t u[kBlockValues];
        loadBlock<T>(in, g * kGroupBlocks + b, u);
        encodeBlock(lanes, coding, of_group[b], [&](std::uint32_t i) { return u[i]; });
      }
    }
    encodeClasses(lanes, coding, of_group);
    if (lanes.words() >= rawWords(chunk.n_values, in.value_bytes)) {
      break;
    }
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    states[lane] = lanes.state(lane);
  }
  return lanes.words();
}

}  // namespace

void measurePlain(const ValueView& in,
                  GroupRange groups,
                  std::uint8_t* classes,
                  SubCounts* counts) {
  withType(in, [&]<class T>(T /*type*/) {
    for (std::uint64_t b = groups.begin * kGroupBlocks; b < groups.end * kGroupBlocks; ++b) {
      std::uint32_t u[kBlockValues];
      loadBlock<T>(in, b, u);
      std::uint64_t sum = 0;
      for (const std::uint32_t value : u) {
        sum += value;
      }
      const std::uint32_t block_class = classOf(sum);
      classes[b] = static_cast<std::uint8_t>(block_class);
      if (counts != nullptr) {
        const std::uint32_t context = b % 2 == 0 ? kFirstContext : classes[b - 1];
        ++counts->of[0][classTable(context)][block_class];
        for (std::uint32_t i = 0; block_class != 0 && i < kBlockValues; ++i) {
          ++counts->of[i % kCountCopies][symbolTable(block_class)][symbolOf(u[i])];
        }
      }
    }
  });
}

std::uint32_t groupWeight(const std::uint8_t* classes) {
  static constexpr auto kWeights = [] {
    std::array<std::uint32_t, kClasses> weights{};
    for (std::uint32_t c = 0; c < kClasses; ++c) {
      weights[c] = blockWeight(c);
    }
    return weights;
  }();
  std::uint32_t weight = 0;
  for (std::uint32_t b = 0; b < kGroupBlocks; ++b) {
    weight += kWeights[classes[b]];
  }
  return weight;
}

void fillStep(std::uint32_t freq,
              std::uint32_t start,
              std::uint32_t n_raw,
              std::uint32_t symbol,
              StepTable& table) {
  const EncodeStep step = encodeStep(freq, start, n_raw);
  table.reciprocal[symbol] = step.reciprocal;
  table.threshold[symbol] = step.threshold;
  table.factor[symbol] = step.factor | step.shift << 16;
  table.bias[symbol] = step.bias;
}

std::uint32_t encodePlain(const ValueView& in,
                          const Chunk& chunk,
                          const std::uint8_t* classes,
                          const Coding& coding,
                          std::uint16_t* stack,
                          std::uint32_t* states) {
  return withType(in, [&]<class T>(T /*type*/) {
    return encodeAs<T>(in, chunk, classes, coding, stack, states);
  });
}

void copyReversedPlain(const std::uint16_t* words, std::uint32_t n_words, std::uint8_t* out) {
  for (std::uint32_t i = 0; i < n_words; ++i) {
    storeLe(out + 2 * std::size_t{i}, words[n_words - 1 - i]);
  }
}

bool decodePlain(const ChunkWords& in,
                 const Chunk& chunk,
                 const Coding& coding,
                 const SlotSymbols& slots,
                 const ValueView& shape,
                 void* out) {
  LaneDecoder lanes(in.states, in.words, in.n_words);
  std::uint32_t past_end = 0;
  withType(shape, [&]<class T>(T /*type*/) {
    T* values = static_cast<T*>(out);
    for (std::uint64_t g = 0; g < chunk.n_groups; ++g) {
      std::uint8_t classes[kGroupBlocks];
      decodeClasses(lanes, coding, slots, classes);
      for (std::uint32_t b = 0; b < kGroupBlocks; ++b) {
        std::uint32_t u[kBlockValues] = {};
        if (classes[b] != 0) {
          decodeBlock(lanes, coding, slots, classes[b], u);
        }
        const std::uint64_t first = chunk.first_value + (g * kGroupBlocks + b) * kBlockValues;
        for (std::uint32_t i = 0; i < kBlockValues; ++i) {
          if (first + i < shape.n_values) {
            values[first + i] = unmapped<T>(u[i], shape.map);
          } else {
            past_end |= u[i];
          }
        }
      }
    }
  });
  return lanes.isAtEnd() && past_end == 0;
}

void mapValues(const ValueView& in, std::uint32_t* u) {
  withType(in, [&]<class T>(T /*type*/) {
    for (std::uint64_t i = 0; i < in.n_values; ++i) {
      u[i] = mapped(static_cast<const T*>(in.values)[i], in.map);
    }
  });
}

void unmapValues(const std::uint32_t* u, const ValueView& shape, void* out) {
  withType(shape, [&]<class T>(T /*type*/) {
    for (std::uint64_t i = 0; i < shape.n_values; ++i) {
      static_cast<T*>(out)[i] = unmapped<T>(u[i], shape.map);
    }
  });
}

}  // namespace fz::block_ans
