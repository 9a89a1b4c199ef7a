#include "coders/block_ans/cpu/chunks.h"

#include <algorithm>
#include <cstring>

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

/// Encodes all groups of a chunk, unless it is clear that its values are to be stored.
template <class T>
void encodeGroups(LaneEncoder& lanes,
                  const ValueView& in,
                  const Chunk& chunk,
                  const std::uint8_t* classes,
                  const Coding& coding) {
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
      return;
    }
  }
}

}  // namespace

void measureGroups(const ValueView& in,
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
  std::uint32_t weight = 0;
  for (std::uint32_t b = 0; b < kGroupBlocks; ++b) {
    weight += blockWeight(classes[b]);
  }
  return weight;
}

std::uint32_t encodeChunk(const ValueView& in,
                          const Chunk& chunk,
                          const std::uint8_t* classes,
                          const Coding& coding,
                          std::uint16_t* stack,
                          std::uint8_t* out) {
  const auto n_raw = static_cast<std::uint32_t>(rawWords(chunk.n_values, in.value_bytes));
  LaneEncoder lanes(stack);
  withType(in, [&]<class T>(T /*type*/) { encodeGroups<T>(lanes, in, chunk, classes, coding); });
  std::uint32_t states[kLanes];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    states[lane] = lanes.state(lane);
  }
  std::uint8_t front[kMaxStateBytes];
  const auto n_front = static_cast<std::uint32_t>(writeStates(states, front));
  const std::uint32_t n_words = n_front / 2 + lanes.words();
  if (n_words < n_raw) {
    std::memcpy(out, front, n_front);
    for (std::uint32_t i = 0; i < lanes.words(); ++i) {
      storeLe(out + n_front + 2 * std::size_t{i}, stack[lanes.words() - 1 - i]);
    }
    return n_words;
  }
  std::memcpy(out, static_cast<const std::uint8_t*>(in.values) + chunk.first_value * in.value_bytes,
              2 * std::size_t{n_raw});
  return n_raw;
}

bool decodeChunk(ByteView stream,
                 const Chunk& chunk,
                 const Coding& coding,
                 const SlotSymbols& slots,
                 const ValueView& shape,
                 void* out) {
  const ByteView bytes =
      stream.subspan(static_cast<std::size_t>(chunk.byte_offset), 2 * std::size_t{chunk.n_words});
  if (isStored(chunk, shape.value_bytes)) {
    std::memcpy(static_cast<std::uint8_t*>(out) + chunk.first_value * shape.value_bytes,
                bytes.data(), bytes.size());
    return true;
  }
  std::uint32_t states[kLanes];
  const std::size_t n_front = readStates(bytes, states);
  if (n_front == 0) {
    return false;
  }
  LaneDecoder lanes(states, bytes.data() + n_front,
                    static_cast<std::uint32_t>((bytes.size() - n_front) / 2));
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
