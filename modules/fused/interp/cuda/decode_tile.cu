// A level along all axes, from codes, where those stand in blocks of 4 x 4 x 4: blocks and planes
// of the base for four cells along z come by asynchronous copies while those before are worked on.
// A level is a stencil of the base and of codes, so no thread waits for what another one finds.
#include "fused/interp/cuda/tile.cuh"

namespace fz::interp::device {

namespace {

/// What lies in shared memory, in words. With codes of four bytes a block of threads is twice as
/// large, so that half of the memory of a multiprocessor is enough for each half of its threads.
template <class TCode>
struct Shape {
  static constexpr std::uint32_t kTileY = 4 * sizeof(TCode);
  static constexpr unsigned kThreads = kTileX * kTileY;
  static constexpr std::uint32_t kBaseRows = kTileY + 3;
  static constexpr std::uint32_t kBaseWords = kBaseRows * kPitch;
  // A block of codes on the high sides is there too: in parts, those that are needed.
  static constexpr std::uint32_t kAcross = kBlocksAcross + 1;
  static constexpr std::uint32_t kOwnDown = kTileY / 4;
  static constexpr std::uint32_t kBlockStride = kBlockCodes + 16 / sizeof(TCode);  // codes
  static constexpr std::uint32_t kClassCodes = kAcross * (kOwnDown + 1) * kBlockStride;
  static constexpr std::uint32_t kGroupCodes = 7 * kClassCodes;
  static constexpr unsigned kPieces = kBlockCodes * sizeof(TCode) / 16;
  static constexpr unsigned kRowThreads = kBlocksAcross * kPieces;
  static constexpr unsigned kRowsAtOnce = kThreads / kRowThreads;
  static constexpr std::size_t kBytes = 2 * (kGroupCodes * sizeof(TCode) + 16 * kBaseWords);
};

/// Copies of codes: the tile's own blocks by rows of them, and a piece of a neighbour's.
template <class TCode>
struct CodeCopies {
  using S = Shape<TCode>;

  const LevelJob& job;
  std::uint32_t block_x, block_y;  ///< of the tile
  // Of the neighbours: the row below (x, z, xz), the column on the right (y, z, yz), the corner
  // (z).
  std::uint32_t odd = 0;
  std::uint32_t across = 0;
  std::uint32_t down = 0;
  std::uint32_t piece = 0;

  __device__ __forceinline__ CodeCopies(const LevelJob& level, std::uint32_t x, std::uint32_t y)
      : job(level), block_x(x / 4), block_y(y / 4) {
    constexpr unsigned kPerPlane = S::kPieces / 4;  // pieces of a plane of a block
    constexpr unsigned kRow = 3 * kBlocksAcross * 4;
    constexpr unsigned kColumn = 3 * S::kOwnDown * S::kPieces;
    static_assert(kRow + kColumn + 4 <= S::kThreads);
    unsigned t = threadIdx.x;
    if (t < kRow) {
      const unsigned c = t / (4 * kBlocksAcross);
      odd = c == 0 ? kX : c == 1 ? kZ : kX | kZ;
      across = t / 4 % kBlocksAcross;
      down = S::kOwnDown;
      piece = t % 4 * kPerPlane;
    } else if ((t -= kRow) < kColumn) {
      const unsigned c = t / (S::kOwnDown * S::kPieces);
      odd = c == 0 ? kY : c == 1 ? kZ : kY | kZ;
      across = kBlocksAcross;
      down = t / S::kPieces % S::kOwnDown;
      piece = t % S::kPieces;
    } else if ((t -= kColumn) < 4) {
      odd = kZ;
      across = kBlocksAcross;
      down = S::kOwnDown;
      piece = t * kPerPlane;
    }
  }
  __device__ __forceinline__ void copy(std::uint32_t of,
                                       std::uint32_t bx,
                                       std::uint32_t by,
                                       std::uint32_t k,
                                       std::uint32_t p,
                                       TCode* group) const {
    const CodePlaces& array = job.classes[of];
    const std::uint32_t x = block_x + bx;
    const std::uint32_t y = block_y + by;
    const bool is_there =
        4 * x < array.n_padded[0] && 4 * y < array.n_padded[1] && k < array.n_padded[2];
    const auto* from = static_cast<const std::uint8_t*>(job.codes) + job.start_bytes[of];
    if (is_there) {
      from += std::uint64_t{k / 4} * job.plane_bytes[of] + std::uint64_t{y} * job.row_bytes[of] +
              (x * S::kPieces + p) * 16;
    }
    TCode* const to = group + (of - 1) * S::kClassCodes + (by * S::kAcross + bx) * S::kBlockStride +
                      p * (16 / sizeof(TCode));
    cuda::copyAsync<16>(to, from, is_there);
  }
  /// Those of cells k to k + 3.
  __device__ __forceinline__ void operator()(std::uint32_t k, TCode* group) const {
    const unsigned row = threadIdx.x / S::kRowThreads;
    const unsigned in_row = threadIdx.x % S::kRowThreads;
#pragma unroll
    for (unsigned first = 0; first < 7 * S::kOwnDown; first += S::kRowsAtOnce) {
      const unsigned r = first + row;
      if (r < 7 * S::kOwnDown) {
        copy(r / S::kOwnDown + 1, in_row / S::kPieces, r % S::kOwnDown, k, in_row % S::kPieces,
             group);
      }
    }
    if (odd != 0) {
      copy(odd, across, down, k, piece, group);
    }
  }
};

/// Codes of an even plane at a cell, and sums with those of neighbours.
struct EvenCodes {
  std::int32_t x, y, xy, sx, sy;
};

/// A thread's column of cells.
template <class T, class TCode>
class TileColumn {
 public:
  using S = Shape<TCode>;

  __device__ __forceinline__
  TileColumn(const LevelJob& level, std::uint32_t x, std::uint32_t y, const TCode* codes)
      : job_(level),
        scale_(level.setup->scale),
        units_(binOf(*level.setup, level.halvings).units),
        codes_(codes),
        i(threadIdx.x % kTileX),
        j(threadIdx.x / kTileX) {
#pragma unroll
    for (unsigned axis = 0; axis < 3; ++axis) {
      bends[axis] = bendOf(job_.kernels[axis]);
    }
    const std::uint32_t fine_x = 2 * (x + i);
    const std::uint32_t fine_y = 2 * (y + j);
    has_even_ = fine_x < job_.n[0] && fine_y < job_.n[1];
    has_x_ = fine_x + 1 < job_.n[0];
    has_y_ = fine_x < job_.n[0] && fine_y + 1 < job_.n[1];
    right_ = fine_x + 2 < job_.n[0] ? ~0u : 0u;
    below_ = fine_y + 2 < job_.n[1] ? ~0u : 0u;
    out_ = static_cast<T*>(job_.result.data) + placeIn(job_.result, fine_x, fine_y, 0);
    here_ = place(i, j);
    place_right_ = place(i + 1, j);
    place_below_ = place(i, j + 1);
    place_corner_ = place(i + 1, j + 1);
  }

  /// Codes and sums of the even plane of cell k, in a group at kStep; 0 behind the field.
  template <unsigned kStep>
  __device__ __forceinline__ EvenCodes evenCodes(unsigned group, std::uint32_t k) const {
    EvenCodes c = {};
    if (2 * k < job_.n[2]) {
      c.x = code<kStep>(group, kX, here_);
      c.y = code<kStep>(group, kY, here_);
      c.xy = code<kStep>(group, kX | kY, here_);
      c.sx = bits::wrapAdd(c.x, masked(code<kStep>(group, kX, place_below_), below_));
      c.sy = bits::wrapAdd(c.y, masked(code<kStep>(group, kY, place_right_), right_));
    }
    return c;
  }
  __device__ __forceinline__ void decodeEven(std::uint32_t k,
                                             const PlanePart& t,
                                             const EvenCodes& c) const {
    storeRow(2 * k, false, {t.b, found(t.x, c.x)});
    const std::int32_t xy = pairCorrected(job_, kX | kY, t.xy, c.sy, c.sx, units_);
    storeRow(2 * k, true, {found(t.y, c.y), found(xy, c.xy)});
  }
  /// The odd plane of cell k, at kStep, between predictions p and even planes.
  template <unsigned kStep>
  __device__ __forceinline__ void decodeOdd(unsigned group,
                                            std::uint32_t k,
                                            const PlanePart& p,
                                            const EvenCodes& here,
                                            const EvenCodes& next) const {
    using bits::wrapAdd;
    const std::int32_t z = code<kStep>(group, kZ, here_);
    const std::int32_t xz = code<kStep>(group, kX | kZ, here_);
    const std::int32_t yz = code<kStep>(group, kY | kZ, here_);
    const std::int32_t z_right = wrapAdd(z, masked(code<kStep>(group, kZ, place_right_), right_));
    const std::int32_t z_below = masked(code<kStep>(group, kZ, place_below_), below_);
    const std::int32_t z_corner = masked(code<kStep>(group, kZ, place_corner_), right_ & below_);
    const std::int32_t sums[6] = {
        wrapAdd(yz, masked(code<kStep>(group, kY | kZ, place_right_), right_)),
        wrapAdd(xz, masked(code<kStep>(group, kX | kZ, place_below_), below_)),
        wrapAdd(here.xy, next.xy),
        wrapAdd(here.sx, next.sx),
        wrapAdd(here.sy, next.sy),
        wrapAdd(z_right, wrapAdd(z_below, z_corner))};
    const std::int32_t px =
        pairCorrected(job_, kX | kZ, p.x, z_right, wrapAdd(here.x, next.x), units_);
    const std::int32_t py =
        pairCorrected(job_, kY | kZ, p.y, wrapAdd(z, z_below), wrapAdd(here.y, next.y), units_);
    const std::int32_t pxy = cubeCorrected(job_, p.xy, sums, units_);
    storeRow(2 * k + 1, false, {found(p.b, z), found(px, xz)});
    storeRow(2 * k + 1, true, {found(py, yz), found(pxy, code<kStep>(group, kXyz, here_))});
  }

  Bend bends[3];

 private:
  static __device__ __forceinline__ std::uint32_t place(std::uint32_t x, std::uint32_t y) {
    return (y / 4 * S::kAcross + x / 4) * S::kBlockStride + y % 4 * 4 + x % 4;
  }
  static __device__ __forceinline__ std::int32_t masked(std::int32_t c, std::uint32_t mask) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(c) & mask);
  }
  template <unsigned kStep>
  __device__ __forceinline__ std::int32_t code(unsigned group,
                                               std::uint32_t odd,
                                               std::uint32_t at) const {
    return codes_[group * S::kGroupCodes + (odd - 1) * S::kClassCodes + kStep * 16 + at];
  }
  __device__ __forceinline__ std::int32_t found(std::int32_t p, std::int32_t code) const {
    return bits::wrapAdd(p, wrapMul(code, units_));
  }
  __device__ __forceinline__ void storeRow(std::uint32_t z,
                                           bool is_odd_y,
                                           const Pair<std::int32_t>& r) const {
    if (z >= job_.n[2] || !(is_odd_y ? has_y_ : has_even_)) {
      return;
    }
    T* const to = out_ + z * job_.result.step[2] + (is_odd_y ? job_.result.step[1] : 0);
    if (has_x_) {
      *reinterpret_cast<WidePair<T>*>(to) = {resultOf<T>(r.even, scale_),
                                             resultOf<T>(r.odd, scale_)};
    } else {
      *to = resultOf<T>(r.even, scale_);
    }
  }

  const LevelJob& job_;
  const Scale scale_;
  const std::int32_t units_;
  const TCode* codes_;
  T* out_;
  // Points of the column; neighbours' codes outside their arrays count as 0.
  bool has_even_, has_x_, has_y_;
  std::uint32_t right_, below_;
  std::uint32_t here_, place_right_, place_below_, place_corner_;

 public:
  const std::uint32_t i, j;  ///< of the cell, in the tile
};

/// Goes through cells along z, in groups of four.
template <class T, class TCode>
class TileWalk {
 public:
  using S = Shape<TCode>;

  __device__ __forceinline__
  TileWalk(const LevelJob& job, std::uint32_t x, std::uint32_t y, std::int32_t* shared)
      : column_(job, x, y, reinterpret_cast<const TCode*>(shared + 8 * S::kBaseWords)),
        copyCodes_(job, x, y),
        copyBase_(job, x, y, S::kBaseRows),
        planes_(shared),
        codes_(reinterpret_cast<TCode*>(shared + 8 * S::kBaseWords)) {}

  __device__ __forceinline__ void run(std::uint32_t k_begin, std::uint32_t k_end) {
    begin(k_begin);
    unsigned group = 0;
    for (std::uint32_t k = k_begin; k < k_end; k += 4, group ^= 1) {
      __syncthreads();  // nobody needs the other group any more
      copyCodes_(k + 4, codes_ + (group ^ 1) * S::kGroupCodes);
      for (unsigned p = 0; p < 4 && k + 4 < k_end; ++p) {
        copyBase_(std::int64_t{k} + 6 + p, plane(group ^ 1, p));
      }
      commitCopies();
      step<0>(k, k_end, group);
      step<1>(k + 1, k_end, group);
      step<2>(k + 2, k_end, group);
      waitForAllBut<0>();
      __syncthreads();  // the last step needs the next group's first plane of codes
      step<3>(k + 3, k_end, group);
    }
  }

 private:
  __device__ __forceinline__ std::int32_t* plane(unsigned group, unsigned p) const {
    return planes_ + (4 * group + p) * S::kBaseWords;
  }
  __device__ __forceinline__ void begin(std::uint32_t k) {
    copyCodes_(k, codes_);
#pragma unroll
    for (unsigned p = 0; p < 4; ++p) {
      copyBase_(std::int64_t{k} + 2 + p, plane(0, p));
      if (p < 3) {
        copyBase_(std::int64_t{k} - 1 + p, plane(1, p));
      }
    }
    commitCopies();
    waitForAllBut<0>();
    __syncthreads();
#pragma unroll
    for (unsigned p = 0; p < 3; ++p) {
      parts_[(p + 3) % 4] = partOf(plane(1, p), column_.bends, column_.i, column_.j);
    }
    here_ = column_.template evenCodes<0>(0, k);
    column_.decodeEven(k, parts_[0], here_);
  }
  /// The odd plane of cell k, and the even one of the next. kStep: k modulo 4.
  template <unsigned kStep>
  __device__ __forceinline__ void step(std::uint32_t k, std::uint32_t k_end, unsigned group) {
    const PlanePart& t0 = parts_[(kStep + 3) % 4];
    const PlanePart& t1 = parts_[kStep];
    const PlanePart& t2 = parts_[(kStep + 1) % 4];
    PlanePart& t3 = parts_[(kStep + 2) % 4];
    t3 = partOf(plane(group, kStep), column_.bends, column_.i, column_.j);
    const Bend& bend = column_.bends[2];
    const EvenCodes next =
        column_.template evenCodes<(kStep + 1) % 4>(kStep == 3 ? group ^ 1 : group, k + 1);
    if (k + 1 < k_end) {
      column_.decodeEven(k + 1, t2, next);
    }
    const PlanePart p = {
        between(bend, t0.b, t1.b, t2.b, t3.b), between(bend, t0.x, t1.x, t2.x, t3.x),
        between(bend, t0.y, t1.y, t2.y, t3.y), between(bend, t0.xy, t1.xy, t2.xy, t3.xy)};
    column_.template decodeOdd<kStep>(group, k, p, here_, next);
    here_ = next;
  }

  const TileColumn<T, TCode> column_;
  const CodeCopies<TCode> copyCodes_;
  const BaseCopy copyBase_;
  std::int32_t* const planes_;
  TCode* const codes_;
  PlanePart parts_[4];  ///< of the base, at cells k - 1 to k + 2: a ring
  EvenCodes here_;
};

template <class T, class TCode>
__global__ void __launch_bounds__(Shape<TCode>::kThreads, 1024 / Shape<TCode>::kThreads / 2)
    decodeTileKernel(const __grid_constant__ LevelJob job) {
  extern __shared__ int4 tile_memory[];
  if (job.setup->is_ok == 0) {
    return;
  }
  const Points tile = pointOf(blockIdx.x, job.n_tiles);
  const std::uint32_t k_begin = tile[2] * job.chunk;
  const std::uint32_t k_end = min(k_begin + job.chunk, bits::roundUp(job.cells[2], 4u));
  TileWalk<T, TCode>(job, tile[0] * kTileX, tile[1] * Shape<TCode>::kTileY,
                     reinterpret_cast<std::int32_t*>(tile_memory))
      .run(k_begin, k_end);
}

template <class TCode>
void launchFor(const LevelJob& level, const cuda::Call& call) {
  using S = Shape<TCode>;
  LevelJob job = level;
  const unsigned n_blocks = cutIntoTiles(job, S::kTileY);
  const auto launch = [&](auto* kernel) {
    cuda::allowSharedBytes(reinterpret_cast<const void*>(kernel), S::kBytes);
    call.launch("interp decode tiles", kernel, n_blocks, S::kThreads, S::kBytes, job);
  };
  launch(job.result.type == DataType::FLOAT32   ? decodeTileKernel<float, TCode>
         : job.result.type == DataType::FLOAT64 ? decodeTileKernel<double, TCode>
                                                : decodeTileKernel<std::int32_t, TCode>);
}

}  // namespace

bool launchDecodeTiles(const LevelJob& job, const cuda::Call& call) {
  const bool is_fit = isForTiles(job) && hasAlignedRows(job.result);
  if (is_fit) {
    job.code_bytes == 2 ? launchFor<std::int16_t>(job, call) : launchFor<std::int32_t>(job, call);
  }
  return is_fit;
}

}  // namespace fz::interp::device
