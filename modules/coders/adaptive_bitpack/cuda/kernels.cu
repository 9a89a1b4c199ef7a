// The stage alone: a group of the field and the coder.
#include <algorithm>

#include "backends/cuda/group/kernel.cuh"
#include "backends/cuda/launch.h"
#include "backends/cuda/shared_memory.h"
#include "coders/adaptive_bitpack/cuda/op/op.cuh"
#include "fz/cuda_part.h"

namespace fz::adaptive_bitpack {

namespace {

/// Calls f.operator()<C>() with the chain.
template <class T, bool kOutlier, class F>
auto withChain(std::uint32_t n_groups, F f) {
  using group::Chain;
  using group::Field;
  switch (n_groups) {
    case 1:
      return f.template operator()<Chain<Field<T>, GroupsOp<T, kOutlier, 1>>>();
    case 2:
      return f.template operator()<Chain<Field<T>, GroupsOp<T, kOutlier, 2>>>();
    default:
      return f.template operator()<Chain<Field<T>, GroupsOp<T, kOutlier, 0>>>();
  }
}
template <class T, class F>
auto withChain(bool outlier_selection, std::uint32_t n_groups, F f) {
  return outlier_selection ? withChain<T, true>(n_groups, f) : withChain<T, false>(n_groups, f);
}

template <class C>
typename C::Args argsOf(const group::FieldArgs& field, const GroupsArgs& own) {
  typename C::Args args = {};
  args.own = field;
  args.rest.own = own;
  return args;
}

}  // namespace

template <class T>
GroupShape groupsEncoderShape(bool outlier_selection) {
  return withChain<T>(outlier_selection, 1,
                      [&]<class C>() { return group::shapeOf<C, typename C::Encoding>(); });
}

template <class T>
void launchEncodeGroups(const GroupsArgs& args,
                        bool outlier_selection,
                        std::size_t n_values,
                        const cuda::Call& call) {
  withChain<T>(outlier_selection, groupsOf(args.block_values), [&]<class C>() {
    constexpr GroupShape kShape = group::shapeOf<C, typename C::Encoding>();
    const unsigned n_blocks = std::min(cuda::gridFor(n_values, kShape.tile_values),
                                       cuda::multiprocessorCount() * kShape.blocks_per_processor);
    const group::FieldArgs field{args.in, nullptr, args.in_size};
    cuda::allowSharedBytes(reinterpret_cast<const void*>(&group::encodeGroup<C>),
                           kShape.shared_bytes);
    group::encodeGroup<C>
        <<<n_blocks, kShape.n_threads, kShape.shared_bytes, call.stream>>>(argsOf<C>(field, args));
    cuda::checkLaunch("AdaptiveBitpack encodeGroup");
  });
}

template <class T>
void launchDecodeGroups(const GroupsArgs& args,
                        bool outlier_selection,
                        std::size_t n_values,
                        const cuda::Call& call) {
  withChain<T>(outlier_selection, groupsOf(args.block_values), [&]<class C>() {
    constexpr GroupShape kShape = group::shapeOf<C, typename C::Decoding>();
    const group::FieldArgs field{nullptr, args.out, {args.capacity_bytes, nullptr}};
    cuda::allowSharedBytes(reinterpret_cast<const void*>(&group::decodeGroup<C>),
                           kShape.shared_bytes);
    group::decodeGroup<C><<<cuda::gridFor(n_values, kShape.tile_values), kShape.n_threads,
                            kShape.shared_bytes, call.stream>>>(argsOf<C>(field, args));
    cuda::checkLaunch("AdaptiveBitpack decodeGroup");
  });
}

#define FZ_INSTANTIATE(T)                                                                       \
  template GroupShape groupsEncoderShape<T>(bool);                                              \
  template void launchEncodeGroups<T>(const GroupsArgs&, bool, std::size_t, const cuda::Call&); \
  template void launchDecodeGroups<T>(const GroupsArgs&, bool, std::size_t, const cuda::Call&)
FZ_INSTANTIATE(std::int16_t);
FZ_INSTANTIATE(std::int32_t);
#undef FZ_INSTANTIATE

}  // namespace fz::adaptive_bitpack
