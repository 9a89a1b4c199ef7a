// Makes and uses every stage class of the installed library, as programs do: the program allocates,
// the library constructs and runs. Built with the address sanitizer; since the library is not, the
// bytes behind each object are watched here too. Succeeds when every stage round-trips and nothing
// was written outside an object.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "fzgpumodules.h"
#include "public_stages.h"

namespace {

constexpr std::size_t kValues = 1024;
constexpr std::size_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

using Bytes = std::vector<std::uint8_t>;

/// Small integers, which every stage can keep exactly whatever type it takes them for.
Bytes inputFor(fz::DataType type) {
  Bytes bytes;
  const auto add = [&](auto value) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), at, at + sizeof(value));
  };
  for (std::size_t i = 0; i < kValues; ++i) {
    const auto v = static_cast<std::int64_t>(i / 16 % 16);
    switch (fz::getDataTypeSize(type)) {
      case 8:
        type == fz::DataType::FLOAT64 ? add(static_cast<double>(v)) : add(v);
        break;
      case 4:
        type == fz::DataType::FLOAT32 ? add(static_cast<float>(v))
                                      : add(static_cast<std::int32_t>(v));
        break;
      case 2:
        add(static_cast<std::int16_t>(v));
        break;
      default:
        add(static_cast<std::int8_t>(v));
    }
  }
  return bytes;
}

std::vector<void*> pointersTo(std::vector<Bytes>& buffers) {
  std::vector<void*> pointers;
  for (Bytes& buffer : buffers) {
    pointers.push_back(buffer.data());
  }
  return pointers;
}

/// Runs the stage in its direction; its outputs, cut to their sizes.
std::vector<Bytes> run(fz::Stage& stage, std::vector<Bytes>& inputs) {
  std::vector<std::size_t> sizes;
  for (const Bytes& input : inputs) {
    sizes.push_back(input.size());
  }
  std::vector<std::size_t> capacities = stage.estimateOutputSizes(sizes);
  std::vector<Bytes> outputs;
  for (;;) {
    outputs.clear();
    for (const std::size_t n_bytes : capacities) {
      outputs.emplace_back(n_bytes + 8);
    }
    stage.setOutputCapacities(capacities);
    stage.execute(nullptr, nullptr, pointersTo(inputs), pointersTo(outputs), sizes);
    if (stage.neededOutputSizes().empty()) {
      break;
    }
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      capacities[i] = std::max(capacities[i], stage.neededOutputSizes()[i]);
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].resize(stage.getActualOutputSize(static_cast<int>(i)));
  }
  return outputs;
}

bool roundTrips(fz::Stage& stage) {
  const std::vector<fz::DataType> types = stage.elementTypes();
  const Bytes field = inputFor(types.empty() ? fz::DataType::UINT8 : types[0]);
  std::vector<Bytes> inputs = {field};
  std::vector<Bytes> streams = run(stage, inputs);
  stage.setInverse(true);
  const std::vector<Bytes> decoded = run(stage, streams);
  return decoded.size() == 1 && decoded[0].size() == field.size();
}

template <class StageT>
bool useStage(const char* name) {
  const auto owned = std::make_unique<StageT>();  // watched by the sanitizer
  bool good = roundTrips(*owned);

  struct Place {
    alignas(StageT) unsigned char object[sizeof(StageT)];
    unsigned char behind[kGuardBytes];
  };
  const auto place = std::make_unique<Place>();
  std::memset(place->behind, kGuard, kGuardBytes);
  auto* stage = new (place->object) StageT;
  good = roundTrips(*stage) && good;
  stage->~StageT();
  for (const unsigned char byte : place->behind) {
    good = good && byte == kGuard;
  }

  fz::Pipeline pipeline;  // allocates in this program as well
  pipeline.addStage<StageT>();
  if (!good) {
    std::fprintf(stderr, "%s: wrong result, or bytes outside the object changed\n", name);
  }
  return good;
}

}  // namespace

int main() {
  bool good = true;
#define FZ_USE(...) good = useStage<__VA_ARGS__>(#__VA_ARGS__) && good;
  FZ_PUBLIC_STAGES(FZ_USE)
#undef FZ_USE
  return good ? 0 : 1;
}
