#pragma once

// FZ_GROUP(types...) names a chain whose kernels are compiled with the library: both directions.
// FZ_BATCH_GROUP(types...) names one that has kernels for many fields as well (fz::DeviceBatch).
// FZ_ENCODING_GROUP(types...) and FZ_DECODING_GROUP(types...) name one for one direction, where ops
// have other types in the other one.

#include "backends/cuda/group/kernel.cuh"
#include "backends/cuda/group_kernels.h"

namespace fz::cuda {

template <class C>
BuiltinGroup encodingGroup(std::string_view types) {
  return {types,
          false,
          {reinterpret_cast<const void*>(&group::encodeGroup<C>),
           group::shapeOf<C, typename C::Encoding>()}};
}
template <class C>
BuiltinGroup decodingGroup(std::string_view types) {
  return {types,
          true,
          {reinterpret_cast<const void*>(&group::decodeGroup<C>),
           group::shapeOf<C, typename C::Decoding>()}};
}

/// The same, for many fields at once too.
template <class C>
BuiltinGroup batchEncodingGroup(std::string_view types) {
  BuiltinGroup group = encodingGroup<C>(types);
  group.kernel.each_field = reinterpret_cast<const void*>(&group::encodeEachGroup<C>);
  return group;
}
template <class C>
BuiltinGroup batchDecodingGroup(std::string_view types) {
  BuiltinGroup group = decodingGroup<C>(types);
  group.kernel.each_field = reinterpret_cast<const void*>(&group::decodeEachGroup<C>);
  return group;
}

}  // namespace fz::cuda

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the types are needed as text
#define FZ_GROUP(...)                                                       \
  ::fz::cuda::encodingGroup<::fz::group::Chain<__VA_ARGS__>>(#__VA_ARGS__), \
      ::fz::cuda::decodingGroup<::fz::group::Chain<__VA_ARGS__>>(#__VA_ARGS__)
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the types are needed as text
#define FZ_ENCODING_GROUP(...) \
  ::fz::cuda::encodingGroup<::fz::group::Chain<__VA_ARGS__>>(#__VA_ARGS__)
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the types are needed as text
#define FZ_DECODING_GROUP(...) \
  ::fz::cuda::decodingGroup<::fz::group::Chain<__VA_ARGS__>>(#__VA_ARGS__)
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the types are needed as text
#define FZ_BATCH_GROUP(...)                                                      \
  ::fz::cuda::batchEncodingGroup<::fz::group::Chain<__VA_ARGS__>>(#__VA_ARGS__), \
      ::fz::cuda::batchDecodingGroup<::fz::group::Chain<__VA_ARGS__>>(#__VA_ARGS__)
