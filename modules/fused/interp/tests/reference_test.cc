#include "fused/interp/tests/reference.h"

#include <gtest/gtest.h>
#include <random>

#include "backends/cpu/parallel_for.h"
#include "fused/interp/config.h"
#include "fused/interp/cpu/grid.h"
#include "fused/interp/stream.h"
#include "fused/interp/tests/support.h"
#include "fz/byte_io.h"

namespace fz::test {
namespace {

using interp::Extents;
using interp::Level;
using interp::Plan;
using interp_reference::Array;
using interp_reference::Walk;
using Rng = std::mt19937_64;

Level randomLevel(Rng& rng, interp::Axes axes) {
  Level level;
  level.axes = axes;
  for (auto& kernel : level.kernels) {
    kernel = static_cast<interp::Kernel>(rng() % interp::kKernels);
  }
  for (auto& set : level.pair_sets) {
    set = static_cast<std::uint8_t>(rng() % interp::kPairSets.size());
  }
  level.cube_set = static_cast<std::uint8_t>(rng() % interp::kCubeSets.size());
  return level;
}

/// Any levels; those that the extents do not allow are left out.
Plan randomPlan(Rng& rng, const Extents& n) {
  Plan plan;
  plan.has_alpha = rng() % 2 == 0;
  plan.lorenzo = static_cast<interp::Axes>(rng() % 8);
  const std::size_t n_levels = rng() % 5;
  for (std::size_t i = 0; i < n_levels; ++i) {
    Level level = randomLevel(rng, static_cast<interp::Axes>(rng() % 7 + 1));
    if (rng() % 3 == 0) {
      level.axes = static_cast<interp::Axes>(1u << rng() % 3);
      level.is_nested = true;
      level.n_inner = static_cast<std::uint8_t>(rng() % 4);
      level.inner_lorenzo = static_cast<interp::Axes>(rng() % 8);
    }
    plan.add(level);
    for (std::size_t j = 0; j < level.n_inner; ++j) {
      const auto others = static_cast<interp::Axes>(interp::kXyz & ~level.axes);
      auto axes = static_cast<interp::Axes>(rng() % 8 & others);
      plan.add(randomLevel(rng, axes == 0 ? others : axes));
    }
  }
  return fittedPlan(plan, n);
}

Array randomLattice(Rng& rng, const Extents& n, int kind) {
  Array x(n);
  std::int32_t walk = static_cast<std::int32_t>(rng() % 100'000);
  for (std::int32_t& v : x.values) {
    walk += static_cast<std::int32_t>(rng() % 2001) - 1000;
    switch (kind) {
      case 0:
        v = walk;
        break;
      case 1:  // far apart: nothing fits 16 bits
        v = static_cast<std::int32_t>(rng() % (1u << 30)) - (1 << 29);
        break;
      case 2:  // with gaps
        v = rng() % 5 == 0 ? interp::kNoValue : walk;
        break;
      default:  // steps, from a long way off
        v = (rng() % 40 == 0 ? 1 << 28 : 1 << 20) + walk;
        break;
    }
  }
  return x;
}

struct Core {
  interp::ScratchStack stack;
  Scratch worker_memory;
  std::unique_ptr<CpuExecutor> executor;
  std::vector<std::uint64_t> words;

  explicit Core(std::size_t n_threads, std::size_t n_values)
      : executor(makeCpuExecutor(n_threads, ThreadBackend::kStd)), words(n_values / 64 + 1) {}
  interp::Core get(DataType code_type) {
    return {*executor, nullptr, stack, worker_memory, code_type, {words.data()}, nullptr};
  }
};

template <class TCode>
void expectSame(const Plan& plan, const Array& x, std::uint32_t sub_bits, std::size_t n_threads) {
  Walk reference(plan, x.n, sub_bits, std::numeric_limits<TCode>::max());
  const Array expected = reference.encode(x);
  const interp::PlanStep whole = interp::wholePlan(plan, x.n, sub_bits);
  ASSERT_EQ(interp::stepsCodes(plan.steps(), x.n), reference.codes.size());

  Core core(n_threads, x.values.size());
  std::vector<std::int32_t> copy = x.values;
  const interp::Lattice lattice = {copy.data(), x.n, x.n[0], std::size_t{x.n[0]} * x.n[1]};
  const bool has_gaps = std::count(copy.begin(), copy.end(), interp::kNoValue) > 0;
  std::vector<TCode> codes(reference.codes.size(), TCode{0x5a});
  std::vector<std::int32_t> found(x.values.size());
  const interp::Lattice out = {found.data(), x.n, lattice.row, lattice.plane};
  const DataType code_type = kDataTypeOf<TCode>;
  interp::encodePlan(core.get(code_type), whole, interp::sourceOf(lattice, has_gaps), codes.data(),
                     out);
  ASSERT_TRUE(std::equal(codes.begin(), codes.end(), reference.codes.begin()));
  ASSERT_EQ(found, expected.values);
  std::sort(reference.clamped.begin(), reference.clamped.end());
  std::vector<std::uint32_t> marked;
  for (std::uint32_t i = 0; i < x.values.size(); ++i) {
    if ((core.words[i / 64] >> (i % 64) & 1) != 0) {
      marked.push_back(i);
    }
  }
  ASSERT_EQ(marked, reference.clamped);
  for (std::uint32_t i = 0; i < x.values.size(); ++i) {
    const bool is_coded =
        x.values[i] != interp::kNoValue && !std::binary_search(marked.begin(), marked.end(), i);
    const std::int32_t distance = bits::wrapSub(x.values[i], found[i]);
    ASSERT_TRUE(!is_coded || std::abs(distance) <= (1 << sub_bits) / 2) << i << ": " << distance;
  }

  // Without a result the codes are the same.
  std::vector<TCode> again(codes.size(), TCode{0x11});
  interp::encodePlan(core.get(code_type), whole, interp::sourceOf(lattice, has_gaps), again.data(),
                     {});
  ASSERT_EQ(again, codes);

  std::fill(found.begin(), found.end(), -1);
  interp::decodePlan(core.get(code_type), whole, codes.data(), interp::resultOf(out));
  ASSERT_EQ(found, expected.values);
  Walk back(plan, x.n, sub_bits, std::numeric_limits<TCode>::max());
  ASSERT_EQ(back.decode(x.n, reference.codes).values, expected.values);
}

TEST(InterpCore, EqualsTheReferenceForAnyPlanAndExtents) {
  Rng rng(11);
  const std::uint32_t extents[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 40, 65};
  for (int i = 0; i < 300; ++i) {
    Extents n = {};
    for (std::uint32_t& extent : n) {
      extent = extents[rng() % std::size(extents)];
    }
    while (std::size_t{n[0]} * n[1] * n[2] > 40'000) {
      n[rng() % 3] = 2;
    }
    const Plan plan = i % 9 == 0 ? interp::isoPlan(n) : randomPlan(rng, n);
    const Array x = randomLattice(rng, n, i % 4);
    const std::uint32_t sub_bits = i % 3 == 0 ? static_cast<std::uint32_t>(rng() % 9) : 8;
    const std::size_t n_threads = 1 + rng() % 3;
    SCOPED_TRACE(testing::Message() << i << ": " << n[0] << " x " << n[1] << " x " << n[2] << ", "
                                    << planText(plan) << ", " << sub_bits);
    expectSame<std::int32_t>(plan, x, sub_bits, n_threads);
    expectSame<std::int16_t>(plan, x, sub_bits, n_threads);
    if (HasFatalFailure()) {
      return;
    }
  }
}

/// More cells than a tile has, along each axis.
TEST(InterpCore, EqualsTheReferenceWhereALevelHasManyTiles) {
  Rng rng(12);
  for (const Extents& n : {Extents{1100, 20, 5}, Extents{9, 300, 17}, Extents{37, 11, 150},
                           Extents{10'007, 1, 1}, Extents{5003, 9, 1}, Extents{31, 2000, 1}}) {
    for (const Plan& plan : {interp::isoPlan(n), interp::lorenzoPlan(n), randomPlan(rng, n),
                             randomPlan(rng, n), randomPlan(rng, n)}) {
      SCOPED_TRACE(testing::Message()
                   << n[0] << " x " << n[1] << " x " << n[2] << ", " << planText(plan));
      const Array x = randomLattice(rng, n, static_cast<int>(rng() % 4));
      for (const std::size_t n_threads : {1, 3}) {
        expectSame<std::int16_t>(plan, x, 8, n_threads);
      }
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

/// Streams of the stage: fixed point as its config says, codes of the reference, and as outliers
/// what has no fixed point, what was clamped, and what misses the bound.
template <class T, class TCode>
void expectReferenceStreams(const std::vector<T>& values, InterpStage<T, TCode>& stage) {
  const Encoded e = encodeValues(stage, values);
  ByteReader in(e.config);
  const interp::RunConfig config = interp::readConfig(in);
  Array x(interp::squeezed(config.dims));
  ASSERT_EQ(x.values.size(), values.size());
  std::vector<bool> is_outlier(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double s = interp::scaled(values[i], config.scale);
    x.values[i] = interp::isCodable(s) ? interp::toFixed(s) : interp::kNoValue;
    is_outlier[i] = !interp::isCodable(s) && !(config.skips_missing && std::isnan(values[i]));
  }
  Walk reference(config.plan, x.n, config.scale.sub_bits, std::numeric_limits<TCode>::max());
  const Array found = reference.encode(x);
  for (const std::uint32_t i : reference.clamped) {
    is_outlier[i] = true;
  }
  std::vector<std::uint32_t> indices;
  std::vector<T> kept;
  std::vector<T> decoded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T back = interp::fromFixed<T>(found.values[i], config.scale);
    if (is_outlier[i] || (x.values[i] != interp::kNoValue &&
                          !fp::withinBound(static_cast<double>(values[i]),
                                           static_cast<double>(back), config.absolute_bound))) {
      indices.push_back(static_cast<std::uint32_t>(i));
      kept.push_back(values[i]);
    }
    decoded[i] = back;
  }
  ASSERT_EQ(e.streams[0],
            toBytes(std::vector<TCode>(reference.codes.begin(), reference.codes.end())));
  Bytes outliers = toBytes(indices);
  const Bytes kept_bytes = toBytes(kept);
  outliers.insert(outliers.end(), kept_bytes.begin(), kept_bytes.end());
  ASSERT_EQ(e.streams[1], outliers);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    decoded[indices[i]] = kept[i];
  }
  ASSERT_EQ(decode(kInterpId, e), toBytes(decoded));
}

template <class T, class TCode>
void tryFields(std::uint64_t seed) {
  Rng rng(seed);
  const std::size_t extents[] = {1, 2, 3, 5, 8, 17, 31, 37};
  for (int i = 0; i < 120; ++i) {
    const Dims dims = {extents[rng() % 8], extents[rng() % 8], extents[rng() % 8]};
    std::vector<T> values(dims[0] * dims[1] * dims[2]);
    const double offset = i % 3 == 0 ? 1e6 : 0.0;
    const double size = i % 5 == 0 ? 1e5 : 1.0;
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<T>(offset + size * std::sin(0.1 * static_cast<double>(k)) +
                                 1e-3 * static_cast<double>(rng() % 7));
      if (i % 4 == 0 && rng() % 20 == 0) {
        values[k] = rng() % 2 == 0 ? std::numeric_limits<T>::quiet_NaN()
                                   : std::numeric_limits<T>::infinity();
      }
    }
    InterpStage<T, TCode> stage;
    stage.setDims(dims);
    stage.setErrorBound(std::pow(10.0, -static_cast<double>(rng() % 7)));
    stage.setSkipsMissing(i % 8 == 0);
    const Extents n =
        interp::squeezed({static_cast<std::uint32_t>(dims[0]), static_cast<std::uint32_t>(dims[1]),
                          static_cast<std::uint32_t>(dims[2])});
    stage.setPlan(planText(randomPlan(rng, n)));
    SCOPED_TRACE(testing::Message() << i << ": " << dims[0] << " x " << dims[1] << " x " << dims[2]
                                    << ", " << stage.getPlan() << ", " << stage.getErrorBound());
    expectReferenceStreams(values, stage);
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

TEST(InterpStreams, AreThoseOfTheReference) {
  tryFields<float, std::int16_t>(1);
  tryFields<float, std::int32_t>(2);
  tryFields<double, std::int16_t>(3);
  tryFields<double, std::int32_t>(4);
}

}  // namespace
}  // namespace fz::test
