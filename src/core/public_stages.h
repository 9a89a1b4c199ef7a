#pragma once

/// Every instantiation of every stage, for an X macro: a program makes them, the library works on
/// them, so both must see the same layout. Class_layout_test notices one that is missing.
// clang-format off
#define FZ_PUBLIC_STAGES(X)                                       \
  X(fz::AdaptiveBitpackStage<std::int16_t>)                       \
  X(fz::AdaptiveBitpackStage<std::int32_t>)                       \
  X(fz::BitpackStage<std::uint8_t>)                               \
  X(fz::BitpackStage<std::uint16_t>)                              \
  X(fz::BitpackStage<std::uint32_t>)                              \
  X(fz::HuffmanStage<std::uint8_t>)                               \
  X(fz::HuffmanStage<std::uint16_t>)                              \
  X(fz::HuffmanStage<std::uint32_t>)                              \
  X(fz::RLEStage<std::uint8_t>)                                   \
  X(fz::RLEStage<std::uint16_t>)                                  \
  X(fz::RLEStage<std::uint32_t>)                                  \
  X(fz::RLEStage<std::int32_t>)                                   \
  X(fz::RZEStage)                                                 \
  X(fz::BitplaneRZEStage)                                         \
  X(fz::LorenzoQuantStage<float, std::uint16_t>)                  \
  X(fz::LorenzoQuantStage<float, std::uint8_t>)                   \
  X(fz::LorenzoQuantStage<double, std::uint16_t>)                 \
  X(fz::LorenzoQuantStage<double, std::uint32_t>)                 \
  X(fz::DifferenceStage<float>)                                   \
  X(fz::DifferenceStage<double>)                                  \
  X(fz::DifferenceStage<std::uint8_t>)                            \
  X(fz::DifferenceStage<std::uint16_t>)                           \
  X(fz::DifferenceStage<std::uint32_t>)                           \
  X(fz::DifferenceStage<std::uint64_t>)                           \
  X(fz::DifferenceStage<std::int8_t>)                             \
  X(fz::DifferenceStage<std::int16_t>)                            \
  X(fz::DifferenceStage<std::int32_t>)                            \
  X(fz::DifferenceStage<std::int64_t>)                            \
  X(fz::DifferenceStage<std::int8_t, std::uint8_t>)               \
  X(fz::DifferenceStage<std::int16_t, std::uint16_t>)             \
  X(fz::DifferenceStage<std::int32_t, std::uint32_t>)             \
  X(fz::DifferenceStage<std::int64_t, std::uint64_t>)             \
  X(fz::LorenzoStage<std::int8_t>)                                \
  X(fz::LorenzoStage<std::int16_t>)                               \
  X(fz::LorenzoStage<std::int32_t>)                               \
  X(fz::LorenzoStage<std::int64_t>)                               \
  X(fz::TiledLorenzoStage<std::int16_t>)                          \
  X(fz::TiledLorenzoStage<std::int32_t>)                          \
  X(fz::QuantizerStage<float, std::uint16_t>)                     \
  X(fz::QuantizerStage<float, std::uint32_t>)                     \
  X(fz::QuantizerStage<float, std::int16_t>)                      \
  X(fz::QuantizerStage<float, std::int32_t>)                      \
  X(fz::QuantizerStage<double, std::uint16_t>)                    \
  X(fz::QuantizerStage<double, std::uint32_t>)                    \
  X(fz::QuantizerStage<double, std::int16_t>)                     \
  X(fz::QuantizerStage<double, std::int32_t>)                     \
  X(fz::BitshuffleStage)                                          \
  X(fz::NegabinaryStage<std::int8_t>)                             \
  X(fz::NegabinaryStage<std::int16_t>)                            \
  X(fz::NegabinaryStage<std::int32_t>)                            \
  X(fz::NegabinaryStage<std::int64_t>)                            \
  X(fz::ZigzagStage<std::int8_t>)                                 \
  X(fz::ZigzagStage<std::int16_t>)                                \
  X(fz::ZigzagStage<std::int32_t>)                                \
  X(fz::ZigzagStage<std::int64_t>)
// clang-format on
