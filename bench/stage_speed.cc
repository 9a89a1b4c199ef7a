// Speed of one stage on this machine: fz_stage_speed Name[:type,type] [key=value ...]
// [dims=XxYxZ]. Dims set the number of values; without them it is 64 MiB.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fz/stage_descriptor.h"
#include "mem/mempool.h"
#include "stage/stage.h"

namespace {

constexpr std::size_t kDefaultBytes = 64u << 20;

template <class F>
double bestSeconds(F f) {
  double best = 1e30;
  for (int i = 0; i < 7; ++i) {
    const auto t0 = std::chrono::steady_clock::now();
    f();
    best = std::min(best,
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count());
  }
  return best;
}

template <class T>
void fill(std::vector<std::uint8_t>& bytes) {
  std::mt19937_64 rng(1);
  auto* values = reinterpret_cast<T*>(bytes.data());
  double walk = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    walk = 0.98 * walk + (static_cast<double>(rng() % 2001) - 1000) * 0.005;
    if constexpr (std::is_floating_point_v<T>) {
      values[i] = static_cast<T>(walk);
    } else {
      values[i] = static_cast<T>(std::lround(walk));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "Zigzag";
  std::vector<fz::DataType> types;
  if (const auto colon = name.find(':'); colon != std::string::npos) {
    std::string rest = name.substr(colon + 1) + ",";
    name.resize(colon);
    for (std::size_t at = 0; at < rest.size();) {
      const auto comma = rest.find(',', at);
      types.push_back(fz::dataTypeFromString(rest.substr(at, comma - at)).value());
      at = comma + 1;
    }
  }
  const fz::StageDescriptor* d = fz::findStage(std::string_view(name));
  if (d == nullptr) {
    return 1;
  }
  if (types.empty() && !d->type_combinations.empty()) {
    types = d->type_combinations.back();
  }
  const auto stage = d->make(types);
  std::size_t n_bytes = kDefaultBytes;
  for (int i = 2; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto eq = arg.find('=');
    if (arg.substr(0, eq) == "dims") {
      std::array<std::size_t, 3> dims = {1, 1, 1};
      std::sscanf(arg.c_str() + eq + 1, "%zux%zux%zu", &dims[0], &dims[1], &dims[2]);
      stage->setDims(dims);
      n_bytes = dims[0] * dims[1] * dims[2] * (types.empty() ? 1 : fz::getDataTypeSize(types[0]));
      continue;
    }
    fz::setParamFromText(*stage, arg.substr(0, eq), arg.substr(eq + 1));
  }
  std::vector<std::uint8_t> in(n_bytes);
  switch (types.empty() ? fz::DataType::UINT16 : types[0]) {
    case fz::DataType::FLOAT32:
      fill<float>(in);
      break;
    case fz::DataType::FLOAT64:
      fill<double>(in);
      break;
    case fz::DataType::UINT8:
    case fz::DataType::INT8:
      fill<std::int8_t>(in);
      break;
    case fz::DataType::UINT16:
    case fz::DataType::INT16:
      fill<std::int16_t>(in);
      break;
    case fz::DataType::UINT32:
    case fz::DataType::INT32:
      fill<std::int32_t>(in);
      break;
    default:
      fill<std::int64_t>(in);
      break;
  }
  std::vector<std::uint8_t> copy(n_bytes, 1);
  const double memcpy_s = bestSeconds([&] { std::memcpy(copy.data(), in.data(), n_bytes); });
  fz::MemoryPool pool;
  const auto run = [&](const std::vector<void*>& inputs, const std::vector<std::size_t>& sizes,
                       std::vector<std::vector<std::uint8_t>>& outs) {
    std::vector<std::size_t> want = stage->estimateOutputSizes(sizes);
    for (;;) {
      outs.resize(want.size());
      std::vector<void*> p;
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (outs[i].size() < want[i])
          outs[i].assign(want[i], 0);
        p.push_back(outs[i].data());
        want[i] = outs[i].size();
      }
      stage->setOutputCapacities(want);
      stage->execute(nullptr, &pool, inputs, p, sizes);
      const auto needed = stage->neededOutputSizes();
      if (needed.empty() && !stage->wantsRerun())
        return;
      for (std::size_t i = 0; i < needed.size(); ++i)
        want[i] = std::max(want[i], needed[i]);
    }
  };
  std::vector<std::vector<std::uint8_t>> enc, dec;
  stage->beginRun();
  const double enc_s = bestSeconds([&] { run({in.data()}, {n_bytes}, enc); });
  std::vector<void*> p;
  std::vector<std::size_t> sizes;
  std::size_t total = 0;
  for (std::size_t i = 0; i < enc.size(); ++i) {
    p.push_back(enc[i].data());
    sizes.push_back(stage->getActualOutputSize(static_cast<int>(i)));
    total += sizes.back();
  }
  stage->setInverse(true);
  const double dec_s = bestSeconds([&] { run(p, sizes, dec); });
  std::printf(
      "%-20s ratio %6.2f  memcpy %5.2f GB/s  encode %5.2f GB/s = %5.1f %%  decode %5.2f GB/s = %5.1f %%\n",
      name.c_str(), double(n_bytes) / double(total), double(n_bytes) / memcpy_s / 1e9,
      double(n_bytes) / enc_s / 1e9, 100 * memcpy_s / enc_s, double(n_bytes) / dec_s / 1e9,
      100 * memcpy_s / dec_s);
}
