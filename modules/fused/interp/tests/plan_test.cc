#include "fused/interp/plan.h"

#include <gtest/gtest.h>
#include <random>

#include "fused/interp/config.h"
#include "fused/interp/stream.h"
#include "fz/byte_io.h"
#include "fz/error.h"

namespace fz::test {
namespace {

using interp::Extents;
using interp::Plan;
using Bytes = std::vector<std::uint8_t>;

Bytes bytesOf(const Plan& plan) {
  Bytes bytes(interp::planBytes(plan));
  ByteWriter out(bytes);
  writePlan(plan, out);
  EXPECT_FALSE(out.overflowed());
  EXPECT_EQ(out.position(), bytes.size());
  return bytes;
}
Plan planOf(const Bytes& bytes, const Extents& n) {
  ByteReader in(bytes);
  return interp::readPlan(in, n);
}

TEST(InterpPlan, TextSaysAllOfIt) {
  for (const char* text :
       {"lorenzo:none", "lorenzo:xyz", "lorenzo:x xyz:ccc:0000", "alpha lorenzo:yz xz:ln:6 y:c",
        "lorenzo:xyz Nz:c(lorenzo:xy xy:cc:0 xy:nl:5) xyz:lcn:123c", "lorenzo:z Nx:l(lorenzo:none)",
        "lorenzo:xy Ny:n(lorenzo:x x:c x:c) Ny:c(lorenzo:y) x:l"}) {
    EXPECT_EQ(planText(interp::parsePlan(text)), text);
  }
}

TEST(InterpPlan, TextMayLeaveOutWhatIsUsual) {
  EXPECT_EQ(planText(interp::parsePlan("")), "lorenzo:xyz");
  EXPECT_EQ(planText(interp::parsePlan("lorenzo")), "lorenzo:xyz");
  EXPECT_EQ(planText(interp::parsePlan("  xyz  Ny(x) ")),
            "lorenzo:xyz xyz:ccc:0000 Ny:c(lorenzo:xyz x:c)");
  EXPECT_EQ(planText(interp::parsePlan("xz:nl")), "lorenzo:xyz xz:nl:0");
}

TEST(InterpPlan, TextThatMeansNothingIsRefused) {
  for (const char* text :
       {"auto",        "lorenzo:",    "lorenzo:w",    "zx",   "xyz:cc", "xyz:cccc",
        "xy:cc:7",     "xyz:ccc:000", "xyz:ccc:000d", "xyzx", "N(x)",   "Nxy(z)",
        "Nz",          "Nz(xyz)",     "Nz(Nx(y))",    "Nz(x", "x)",     "lorenzo:xy,x",
        "alpha alpha", "x lorenzo",   "Nz:c:0(x)"}) {
    EXPECT_THROW(interp::parsePlan(text), InvalidArgument) << text;
  }
  std::string many;
  for (std::size_t i = 0; i <= Plan::kMaxLevels; ++i) {
    many += " x";
  }
  EXPECT_THROW(interp::parsePlan(many), InvalidArgument);
}

TEST(InterpPlan, ExtentsDecideWhatIsLeft) {
  const Plan plan = interp::parsePlan("lorenzo:xyz Nz(xy xy) xyz:lnc:123a xy:nl:6");
  EXPECT_EQ(planText(fittedPlan(plan, {100, 100, 100})),
            "lorenzo:xyz Nz:c(lorenzo:xyz xy:cc:0 xy:cc:0) xyz:lnc:123a xy:nl:6");
  EXPECT_EQ(planText(fittedPlan(plan, {100, 100, 1})), "lorenzo:xy xy:ln:1 xy:nl:6");
  EXPECT_EQ(planText(fittedPlan(plan, {7, 3, 3})),
            "lorenzo:x Nz:c(lorenzo:none x:c) xyz:lnc:123a xy:nl:6");
  EXPECT_EQ(planText(fittedPlan(plan, {1, 1, 1})), "lorenzo:none");
  EXPECT_EQ(planText(fittedPlan(plan, {0, 1, 1})), "lorenzo:none");
}

TEST(InterpPlan, BytesOfTheDocumentsExample) {
  const Plan plan = interp::parsePlan("alpha lorenzo:xy Nz:l(lorenzo:x xy:cn:3) xyz:ccc:012c x:n");
  EXPECT_EQ(bytesOf(plan), (Bytes{0x0b, 3, 0x0c, 0x09, 0x93, 0x03, 0x57, 0x21, 0x62, 0x21}));
}

TEST(InterpPlan, BytesComeBackForFieldsThatAllowThem) {
  const Extents n = {300, 200, 100};
  for (const char* text : {"lorenzo:none", "alpha lorenzo:xyz xyz:ncl:6543 x:l y:c z:n",
                           "lorenzo:xy Ny:n(lorenzo:x x:c xz:lc:5) Nx:c(lorenzo:y) yz:ln:4"}) {
    const Plan plan = interp::parsePlan(text);
    EXPECT_TRUE(planOf(bytesOf(plan), n) == plan) << text;
  }
}

/// Random bytes, and good ones that are damaged: an error, or a plan that is consistent.
TEST(InterpPlan, UntrustedBytesGiveAConsistentPlanOrAnError) {
  std::mt19937_64 rng(7);
  const Bytes good =
      bytesOf(interp::parsePlan("lorenzo:xyz Nz:c(lorenzo:xy xy xy) Ny(xz) xyz xyz x"));
  std::size_t n_accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    Bytes bytes = good;
    if (i % 2 == 0) {
      for (std::size_t k = 0; k <= rng() % 3; ++k) {
        bytes[rng() % bytes.size()] = static_cast<std::uint8_t>(rng());
      }
    } else {
      bytes.resize(rng() % 80);
      for (auto& b : bytes) {
        b = static_cast<std::uint8_t>(rng() % (i % 4 == 1 ? 256 : 16));
      }
    }
    const Extents n = {static_cast<std::uint32_t>(rng() % 200),
                       static_cast<std::uint32_t>(rng() % 200),
                       static_cast<std::uint32_t>(rng() % 200)};
    try {
      const Plan plan = planOf(bytes, n);
      ++n_accepted;
      ASSERT_EQ(bytesOf(plan), bytes);
      ASSERT_TRUE(fittedPlan(plan, n) == plan);
      ASSERT_GE(stepsCodes(plan.steps(), n), std::uint64_t{n[0]} * n[1] * n[2]);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kCorrupt);
    }
  }
  EXPECT_GT(n_accepted, 1000u);
}

TEST(InterpPlan, EveryTruncationIsRefused) {
  const Bytes good = bytesOf(interp::parsePlan("lorenzo:xyz Nz:c(lorenzo:xy xy xy) Ny(xz) xyz"));
  for (std::size_t n_bytes = 0; n_bytes < good.size(); ++n_bytes) {
    EXPECT_THROW(
        planOf({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n_bytes)}, {99, 99, 99}),
        Error);
  }
}

TEST(InterpStream, BlocksHoldTheirPointsOnceAndWasteLittle) {
  for (const Extents& n : {Extents{1, 1, 1}, Extents{64, 1, 1}, Extents{65, 1, 1}, Extents{9, 9, 1},
                           Extents{3, 2, 1}, Extents{5, 5, 5}, Extents{1, 500, 500},
                           Extents{2, 300, 1}, Extents{1, 1, 777}, Extents{17, 1, 31}}) {
    const interp::CodeArray array = interp::makeCodeArray(n);
    std::vector<bool> is_taken(array.codes());
    for (std::uint32_t z = 0; z < n[2]; ++z) {
      for (std::uint32_t y = 0; y < n[1]; ++y) {
        const std::uint64_t row = array.rowStart(y, z);
        for (std::uint32_t x = 0; x < n[0]; ++x) {
          const std::uint64_t place = row + (x >> array.log2[0]) * 64 + x % (1u << array.log2[0]);
          ASSERT_LT(place, is_taken.size());
          ASSERT_FALSE(is_taken[place]);
          is_taken[place] = true;
        }
      }
    }
  }
  EXPECT_EQ(interp::makeCodeArray({1, 500, 500}).codes(), 512u * 500);
  EXPECT_EQ(interp::makeCodeArray({1, 1, 777}).codes(), 832u);
}

}  // namespace
}  // namespace fz::test
