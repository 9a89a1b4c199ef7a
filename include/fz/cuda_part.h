#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "fz/device_types.h"
#include "fz/stream.h"
#include "fz/tile_op.h"

namespace fz {

class MemoryPool;
class ZeroedScratch;

namespace cuda {

class RunContext;
struct HostReadback;

/// A kernel as cudaLaunchKernel takes it.
struct KernelLaunch {
  struct Parameter {
    const void* data;
    std::size_t n_bytes;
  };

  const void* function;
  const char* name;  ///< for errors
  unsigned n_blocks;
  unsigned n_threads;
  std::size_t shared_bytes;
  std::span<const Parameter> parameters;
  /// The same kernel for many fields, see KernelOf; null: there is none.
  const void* each_field = nullptr;
  /// It does the same with any number of thread blocks from this one on; 0: with n_blocks alone.
  unsigned least_blocks = 0;
};

/// A kernel, and where there is one the same for many fields at once: it takes an EachField, and
/// blockIdx.y is the field (backends/cuda/each_field.cuh).
template <class... Params>
struct KernelOf {
  void (*one)(Params...);
  void (*each)(EachField) = nullptr;
  unsigned least_blocks = 0;  ///< as KernelLaunch has it
};
template <class... Params>
KernelOf<Params...> withEach(void (*one)(Params...),
                             void (*each)(EachField),
                             unsigned least_blocks = 0) {
  return {one, each, least_blocks};
}

/// Calls launch(KernelLaunch) with the arguments converted to what the kernel takes.
template <class Launch, class... Params, class... Args>
void packLaunch(const Launch& launch,
                const char* name,
                const KernelOf<Params...>& kernel,
                unsigned n_blocks,
                unsigned n_threads,
                std::size_t shared_bytes,
                const Args&... args) {
  const std::tuple<Params...> values(args...);
  std::apply(
      [&](const Params&... value) {
        const KernelLaunch::Parameter parameters[] = {{&value, sizeof(value)}...};
        launch(KernelLaunch{reinterpret_cast<const void*>(kernel.one), name, n_blocks, n_threads,
                            shared_bytes, parameters, reinterpret_cast<const void*>(kernel.each),
                            kernel.least_blocks});
      },
      values);
}

/// One run of a stage on a device. The stage only enqueues work on `stream`: it does not wait, does
/// not read anything back and allocates nothing but Scratch, which is in place from the second call
/// of a size on, with PREALLOCATE from the first (and during graph capture).
struct Call {
  std::span<const CudaInput> inputs;
  std::span<const CudaOutput> outputs;
  StageRecord* record;  ///< on the device
  cudaStream_t stream;
  MemoryPool* pool;
  RunContext* run = nullptr;  ///< what all calls of the run share; null: a stage that runs alone

  /// In place of kernel<<<n_blocks, n_threads, shared_bytes, stream>>>(args...). Throws
  /// Error(kCuda) when it is refused.
  template <class... Params, class... Args>
  void launch(const char* name,
              void (*kernel)(Params...),
              unsigned n_blocks,
              unsigned n_threads,
              std::size_t shared_bytes,
              const Args&... args) const {
    launch(name, KernelOf<Params...>{kernel}, n_blocks, n_threads, shared_bytes, args...);
  }
  template <class... Params, class... Args>
  void launch(const char* name,
              const KernelOf<Params...>& kernel,
              unsigned n_blocks,
              unsigned n_threads,
              std::size_t shared_bytes,
              const Args&... args) const {
    packLaunch([this](const KernelLaunch& packed) { launch(packed); }, name, kernel, n_blocks,
               n_threads, shared_bytes, args...);
  }
  void launch(const KernelLaunch& kernel) const;

  /// A word on the device that earlier work on the stream sets, to 0 where this call must not write
  /// to its outputs since the frame turned out damaged; null: it may.
  const std::uint64_t* mayWrite() const;
  /// Behind kernels that leave the scratch's memory at something else than zero: it is cleared
  /// before the run ends, by the kernel that ends it where there is one.
  void clearAtEnd(ZeroedScratch& scratch) const;
  /// For the kernel that comes last in a run, in a part whose endsRuns() is true: what it has to
  /// bring to the host. Its `host` is null when this call does not end the run.
  HostReadback takeReadback() const;
};

}  // namespace cuda

/// The parameter of a group's kernel: the arguments of the field and of every op, in this order,
/// each at a multiple of 16 bytes.
class GroupArgs {
 public:
  static constexpr std::size_t kAlignment = 16;
  static constexpr std::size_t kMaxBytes = 3072;

  template <class Args>
  void add(const Args& args) {
    static_assert(alignof(Args) <= kAlignment);
    const std::size_t size = (sizeof(Args) + kAlignment - 1) / kAlignment * kAlignment;
    fits_ = fits_ && n_bytes_ + size <= kMaxBytes;
    if (fits_) {
      std::memcpy(bytes_.data() + n_bytes_, &args, sizeof(Args));
      n_bytes_ += size;
    }
  }
  bool fits() const { return fits_; }
  std::size_t size() const { return n_bytes_; }
  std::byte* data() { return bytes_.data(); }

 private:
  alignas(kAlignment) std::array<std::byte, kMaxBytes> bytes_ = {};
  std::size_t n_bytes_ = 0;
  bool fits_ = true;
};

/// One launch of a group's kernel, as its stages see it.
struct GroupRun {
  GroupShape shape;
  std::uint64_t n_values = 0;  ///< of the coder's input, or the most there can be
  std::uint64_t n_tiles = 0;   ///< of shape.tile_values, at least 1
  unsigned n_blocks = 1;       ///< thread blocks of the launch
  /// A stage may need the group to run again with other settings (a smaller step). Waiting calls
  /// run pass after pass until one is good; others enqueue all passes, and a kernel of a pass that
  /// is not needed must do nothing.
  unsigned pass = 0;
  bool all_passes = false;
};

/// What a stage does on a device. Made by StageDescriptor::make_cuda, once per stage, and owned by
/// it. Every function follows the stage's settings and direction of the moment.
class CudaPart {
 public:
  CudaPart() = default;
  CudaPart(const CudaPart&) = delete;
  CudaPart& operator=(const CudaPart&) = delete;
  virtual ~CudaPart() = default;

  /// Whether there are kernels for the current direction; if not the stage runs on the host, with
  /// copies and waits, and cannot be part of a graph.
  virtual bool hasKernels() const { return true; }
  /// Enqueues the encoding of inputs[0].
  virtual void encode(const cuda::Call& call) = 0;
  /// Enqueues the decoding into outputs[0]. Config fields that fields() names stand in
  /// record->value. Inputs are untrusted: damage is recorded, never acted on.
  virtual void decode(const cuda::Call& call) = 0;
  /// Host side of a finished run: takes over what the config, checkResult and the getters need.
  /// Called before record.error is looked at.
  virtual void finishEncode(const StageRecord& /*record*/) {}
  virtual void finishDecode(const StageRecord& /*record*/) {}
  /// Bits for entries of record.value that are zero after a run that asks nothing of the host:
  /// where all stages have them, a device looks over the runs of a batch by itself. Nothing: the
  /// host must look at every run.
  virtual std::optional<std::uint32_t> quietValues() const { return std::nullopt; }
  /// Called when record.error is set; throws, saying what was wrong. A stage that leaves it out
  /// gets a general message.
  virtual void throwError(const StageRecord& /*record*/) const {}
  /// The parts of the config that encoding finds out on the device.
  virtual std::vector<DeviceField> fields() const { return {}; }
  /// Whether kernels read this input from any address. A frame's segments stand back to back;
  /// others are copied to aligned memory first, by a launch each.
  virtual bool readsUnaligned(std::size_t /*input*/) const { return false; }

  // In fused groups; see docs/fusion.md.

  virtual TileOp tileOp() const { return NoOp{}; }
  /// Full name of the device type of the op, and the header that defines it, as device code spells
  /// them. Asked for when tileOp() is not a NoOp.
  virtual std::string tileOpType() const { return {}; }
  virtual std::string tileOpHeader() const { return {}; }
  /// Device code that comes behind the header, for a stage outside the library: the header is then
  /// one of the library's, such as backends/cuda/group/value_map.cuh.
  virtual std::string tileOpSource() const { return {}; }
  /// How often the group's kernel may have to run.
  virtual unsigned groupPasses() const { return 1; }
  /// Adds the op's arguments; enqueues what must be done before the group's kernel. Inputs and
  /// outputs between two stages of the group have sizes but no memory.
  virtual void beginGroup(const cuda::Call& /*call*/,
                          const GroupRun& /*group*/,
                          GroupArgs& /*args*/) {}
  /// Called for all parts when all have begun, right before the group's kernel. What a part has
  /// begun beside the stream of its calls, for the kernel to find, must be waited for here.
  virtual void readyGroup(const cuda::Call& /*call*/, const GroupRun& /*group*/) {}
  /// Enqueues what must be done after it.
  virtual void endGroup(const cuda::Call& /*call*/, const GroupRun& /*group*/) {}
  /// Whether the last kernel of endGroup() can take Call::takeReadback(), which saves a small call
  /// a launch. Such a part is called behind all others.
  virtual bool endsRuns() const { return false; }
};

}  // namespace fz
