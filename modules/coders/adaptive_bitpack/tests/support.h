#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <string>
#include <utility>
#include <vector>

#include "coders/adaptive_bitpack/adaptive_bitpack_stage.h"
#include "coders/adaptive_bitpack/codec.h"
#include "fz/byte_io.h"
#include "fz/error.h"
#include "support/stage_case.h"

/// What the test files of this stage share.
namespace fz::test::adaptive_bitpack_test {

using adaptive_bitpack::BlockForm;
using adaptive_bitpack::BlockLayout;
using Int32s = std::vector<std::int32_t>;
using Int16s = std::vector<std::int16_t>;

inline constexpr std::uint16_t kId = 24;
inline constexpr std::size_t kConfigBytes = 16;

template <class T>
Encoded encodeValues(const std::vector<T>& values, BlockLayout layout) {
  AdaptiveBitpackStage<T> stage;
  stage.setBlockSize(layout.block_values);
  stage.setOutlierSelection(layout.outlier_selection);
  return encode(stage, toBytes(values));
}

template <class T>
Bytes streamOf(const std::vector<T>& values, BlockLayout layout) {
  return encodeValues(values, layout).streams[0];
}

/// A stream as its config and bytes say, made by no encoder.
template <class T>
Encoded forged(BlockLayout layout, std::uint64_t n, Bytes stream) {
  Encoded encoded;
  encoded.config.resize(kConfigBytes);
  ByteWriter out(encoded.config);
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>)).u8(layout.outlier_selection ? 1 : 0).u16(0);
  out.u32(layout.block_values).u64(n);
  encoded.streams.push_back(std::move(stream));
  return encoded;
}

/// Runs f once per vector target of this machine, with the stage's kernels bound to that target.
template <class F>
void forEveryTarget(F f) {
  const auto all = static_cast<std::uint64_t>(hwy::SupportedTargets());
  for (int bit = 0; bit < 63; ++bit) {
    if ((all >> bit & 1u) != 0) {
      SCOPED_TRACE(hwy::TargetName(std::int64_t{1} << bit));
      hwy::SetSupportedTargetsForTest(std::int64_t{1} << bit);
      hwy::GetChosenTarget().DeInit();
      f();
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

template <class F>
std::string messageOf(ErrorCode code, F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expectCorrupt(const Encoded& encoded, const std::string& part_of_message) {
  const std::string message = messageOf(ErrorCode::kCorrupt, [&] { decode(kId, encoded); });
  EXPECT_NE(message.find("AdaptiveBitpack"), std::string::npos) << message;
  EXPECT_NE(message.find(part_of_message), std::string::npos) << message;
}

}  // namespace fz::test::adaptive_bitpack_test
