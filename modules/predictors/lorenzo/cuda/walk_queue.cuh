#pragma once

// What the tiles of walk.cuh tell each other. Sums of columns go down to the next band;
// they are many, and one flag says that they are there. The values at the right edge go to the next
// strip; they are few, and each says itself whether it is there (sum_chain.cuh).

#include "backends/cuda/sum_chain.cuh"
#include "predictors/lorenzo/cuda/tile.cuh"

namespace fz::lorenzo {

/// A tile of the walk: kRows rows per warp, and kLayers layers at a time. kRowsAligned: every row
/// begins at a multiple of 16 bytes.
template <class U, bool kRowsAligned>
struct WalkTile : Tile<U, true> {
  using typename Tile<U, true>::P;
  using typename Tile<U, true>::Word;
  using Tile<U, true>::kColumns;
  static constexpr bool kIsAligned = kRowsAligned;
  static constexpr unsigned kRows = 2;
  static constexpr unsigned kLayers = 8;
  static constexpr unsigned kBandRows = kWarps * kRows;
  using Words = Word[kLayers][kRows][P::kWords];
  /// In words per step: what goes down, and what goes right.
  static constexpr unsigned kDown = kLayers * kColumns;
  static constexpr unsigned kRight = kLayers * kBandRows;
  static constexpr unsigned kWarpRight = kLayers * kRows;
  static_assert(kDown % kThreads == 0 && kThreads % kColumns == 0);
  static_assert(cuda::kWarp % kWarpRight == 0 && kRows * cuda::kWarp <= kColumns);
  static_assert(kRowsAligned || sizeof(U) == sizeof(Word));
};

/// Flags and states are 0 before the kernel starts.
template <class Word>
struct WalkMail {
  std::uint64_t n_strips;
  std::uint64_t n_bands;
  std::uint64_t n_steps;
  Word* down;                     ///< [band][strip][step][layer][column]
  unsigned* down_flag;            ///< [band][strip][step]
  cuda::ChainState<Word>* right;  ///< [band][strip][step][warp][layer][row]

  __device__ __forceinline__ std::uint64_t letter(std::uint64_t strip,
                                                  std::uint64_t band,
                                                  std::uint64_t step) const {
    return (band * n_strips + strip) * n_steps + step;
  }
};

/// Where a warp is: its tile, its rows.
struct WalkPlace {
  std::uint64_t strip;
  std::uint64_t band;
  std::uint64_t row0;
};

/// Column sums of one step, all rows of the tile together.
template <class T>
union WalkLetter {
  static constexpr unsigned kPieces = T::kDown * sizeof(typename T::Word) / sizeof(uint4);
  static constexpr unsigned kLanePieces = kPieces / cuda::kWarp;
  typename T::Word words[T::kDown];
  uint4 pieces[kPieces];
};

/// One warp: brings what the band above has sent.
template <class T>
__device__ __forceinline__ void receive(const WalkMail<typename T::Word>& mail,
                                        const WalkPlace& at,
                                        std::uint64_t step,
                                        WalkLetter<T>& to) {
  const std::uint64_t letter = mail.letter(at.strip, at.band - 1, step);
  const auto* from = reinterpret_cast<const uint4*>(mail.down + letter * T::kDown);
  unsigned is_there;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(is_there)
                 : "l"(mail.down_flag + letter)
                 : "memory");
  } while (is_there == 0);
  uint4 pieces[WalkLetter<T>::kLanePieces];
#pragma unroll
  for (unsigned i = 0; i < WalkLetter<T>::kLanePieces; ++i) {
    pieces[i] = __ldcg(from + i * cuda::kWarp + cuda::laneId());
  }
#pragma unroll
  for (unsigned i = 0; i < WalkLetter<T>::kLanePieces; ++i) {
    to.pieces[i * cuda::kWarp + cuda::laneId()] = pieces[i];
  }
}

/// One warp: sends to the band below.
template <class T>
__device__ __forceinline__ void send(const WalkMail<typename T::Word>& mail,
                                     const WalkPlace& at,
                                     std::uint64_t step,
                                     const WalkLetter<T>& from) {
  const std::uint64_t letter = mail.letter(at.strip, at.band, step);
  auto* to = reinterpret_cast<uint4*>(mail.down + letter * T::kDown);
#pragma unroll
  for (unsigned i = 0; i < WalkLetter<T>::kLanePieces; ++i) {
    __stcg(to + i * cuda::kWarp + cuda::laneId(), from.pieces[i * cuda::kWarp + cuda::laneId()]);
  }
  __syncwarp();  // the flag says that all lanes have written
  if (cuda::laneId() == 0) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(mail.down_flag + letter), "r"(1u)
                 : "memory");
  }
}

/// The values at the edges of a warp's rows.
template <class T>
struct WalkEdge {
  using Word = typename T::Word;
  using State = cuda::ChainState<Word>;
  State* own;           ///< null when there is no strip behind
  const State* beside;  ///< of the strip before; null when there is none
  cuda::ChainSeen<Word> seen;

  /// Looks early; what has not come by then is waited for when it is needed. `row` counts the rows
  /// of all layers of the step.
  __device__ __forceinline__
  WalkEdge(const WalkMail<Word>& mail, const WalkPlace& at, std::uint64_t step, unsigned row)
      : own(nullptr), beside(nullptr), seen{} {
    const unsigned in_tile = cuda::warpId() * T::kWarpRight + row;
    if (at.strip + 1 < mail.n_strips) {
      own = mail.right + mail.letter(at.strip, at.band, step) * T::kRight + in_tile;
    }
    if (at.strip > 0) {
      beside = mail.right + mail.letter(at.strip - 1, at.band, step) * T::kRight + in_tile;
      seen = cuda::seeChain(beside);
    }
  }
  __device__ __forceinline__ Word left() {
    if (beside == nullptr) {
      return 0;
    }
    while (seen.flag == cuda::ChainFlag::kNothing) {
      seen = cuda::seeChain(beside);
    }
    return seen.value;
  }
  __device__ __forceinline__ void publish(Word edge) const {
    if (own != nullptr) {
      cuda::publishChain(own, cuda::ChainFlag::kPrefix, edge);
    }
  }
};

/// The working memory, laid out for a grid; the first n_clear_bytes of it must be 0.
template <class T>
WalkMail<typename T::Word> planMail(const GridArgs& args,
                                    void* scratch,
                                    std::size_t& n_clear_bytes,
                                    std::size_t& n_bytes) {
  using Word = typename T::Word;
  using State = cuda::ChainState<Word>;
  WalkMail<Word> mail = {};
  mail.n_strips = bits::ceilDiv<std::uint64_t>(args.nx, T::P::kRowValues);
  mail.n_bands = bits::ceilDiv<std::uint64_t>(args.n_rows, T::kBandRows);
  mail.n_steps = bits::ceilDiv<std::uint64_t>(args.n_layers, T::kLayers);
  const std::uint64_t n_letters = mail.n_strips * mail.n_bands * mail.n_steps;
  n_bytes = 0;
  const auto take = [&](std::uint64_t bytes) {
    void* at = static_cast<std::uint8_t*>(scratch) + n_bytes;
    n_bytes += bits::roundUp<std::uint64_t>(bytes, 16);
    return at;
  };
  if (mail.n_strips > 1) {
    mail.right = static_cast<State*>(take(n_letters * T::kRight * sizeof(State)));
  }
  if (mail.n_bands > 1) {
    mail.down_flag = static_cast<unsigned*>(take(n_letters * sizeof(unsigned)));
  }
  n_clear_bytes = n_bytes;
  if (mail.n_bands > 1) {
    mail.down = static_cast<Word*>(take(n_letters * T::kDown * sizeof(Word)));
  }
  return mail;
}

}  // namespace fz::lorenzo
