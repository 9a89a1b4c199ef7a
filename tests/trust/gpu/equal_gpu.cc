// R6 on a device: GPU and CPU give the same frames, values and refusals.
#include <cuda_runtime_api.h>

#include "fz/error.h"
#include "fz/host_api.h"
#include "gpu/device_pipeline.h"
#include "trust/combinations.h"
#include "trust/trust.h"

namespace fz::trust {
namespace {

/// A frame and what it decodes to, or the kind of refusal.
struct Outcome {
  Bytes frame;
  Bytes decoded;
  std::string error;
};

Bytes hostCopy(const void* data, std::size_t n_bytes) {
  return n_bytes == 0 ? Bytes{} : test::fromDevice(data, n_bytes);
}

Outcome outcomeOn(Backend backend,
                  const Combination& c,
                  const test::DeviceBytesBuffer& input,
                  bool with_fallback) {
  Outcome outcome;
  try {
    Pipeline pipeline;
    pipeline.setThreads(1);
    pipeline.setLosslessFallback(with_fallback);
    load(pipeline, c, backend);
    const void* source = backend == Backend::CUDA ? input.data() : c.bytes.data();
    const CompressedView view = pipeline.compress(source, c.bytes.size());
    outcome.frame = hostCopy(view.data, view.n_bytes);
    const std::size_t most = pipeline.getMaxCompressedSize(c.bytes.size());
    outcome.error = view.n_bytes <= most ? "" : "larger than getMaxCompressedSize()";
    void* out = nullptr;
    std::size_t n_bytes = 0;
    pipeline.decompress(nullptr, 0, &out, &n_bytes);
    outcome.decoded = hostCopy(out, n_bytes);
  } catch (const Error& e) {
    outcome.error = errorCodeName(e.code());
  } catch (const InvalidArgument&) {
    outcome.error = errorCodeName(ErrorCode::kInvalidArgument);
  }
  return outcome;
}

/// Decoded by the other side, through the calls for host memory.
Bytes decodedOn(Backend backend, const Bytes& frame) {
  DecompressOptions options;
  options.backend = backend;
  options.threads = 1;
  const Array array = decompress(frame, options);
  return {array.bytes().begin(), array.bytes().end()};
}

const RegisterGoal kSameOnDevice(
    "R6-gpu",
    "GPU and CPU give the same frames, values and refusals, and decode each other's frames",
    [](const Settings& settings, Report& report) {
      const std::uint64_t n = settings.trials(2000, 2000);
      for (std::uint64_t trial = 0; trial < n; ++trial) {
        const Combination c = combination(settings.seed + 400, trial);
        const test::DeviceBytesBuffer input(c.bytes);
        const bool with_fallback = trial % 3 == 0;
        const Outcome cpu = outcomeOn(Backend::CPU, c, input, with_fallback);
        const Outcome gpu = outcomeOn(Backend::CUDA, c, input, with_fallback);
        if (with_fallback && cpu.error.empty() && inspect(cpu.frame).isFallback()) {
          report.add("lossless instead of larger");
        }
        report.add("combinations");
        report.add(cpu.error.empty() ? "compressed" : "refused alike");
        report.check(cpu.error == gpu.error,
                     c.name + ": CPU '" + cpu.error + "', GPU '" + gpu.error + "'");
        report.check(cpu.frame == gpu.frame, c.name + ": frames differ");
        report.check(cpu.decoded == gpu.decoded, c.name + ": values differ");
        if (cpu.error.empty() && gpu.error.empty() && trial % 4 == 0) {
          report.check(decodedOn(Backend::CUDA, cpu.frame) == cpu.decoded,
                       c.name + ": the GPU decodes the CPU's frame otherwise");
          report.check(decodedOn(Backend::CPU, gpu.frame) == gpu.decoded,
                       c.name + ": the CPU decodes the GPU's frame otherwise");
          report.add("decoded by the other side", 2);
        }
        if (report.failures().size() > 20) {
          return;
        }
      }
    });

}  // namespace
}  // namespace fz::trust
