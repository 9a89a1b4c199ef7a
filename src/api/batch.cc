// Batches of arrays in host memory: fields are spread over threads, which keep their pipelines.
#include "fz/batch.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "api/batch_split.h"
#include "api/host_run.h"
#include "backends/cpu/watched_executor.h"
#include "backends/cuda/device_guard.h"
#include "core/require.h"
#include "fz/presets.h"
#include "fz/progress.h"

namespace fz {

namespace {

template <class T>
using Results = std::vector<BatchResult<T>>;

/// Runs each(worker, field), which gives what the field comes to, for all fields. A worker is one
/// thread at a time.
template <class T, class Each>
Results<T> runAll(std::size_t n_fields,
                  const BatchSplit& split,
                  Backend backend,
                  RunProgress* progress,
                  const Each& each) {
  Results<T> results(n_fields);
  // Threads have a device of their own that is current.
  const int device =
      backend == Backend::CPU || cuda::deviceCount() == 0 ? -1 : cuda::currentDevice();
  if (progress != nullptr) {
    progress->beginCall(n_fields);
  }
  forEachField(split, n_fields, [&](std::size_t worker, std::size_t field) {
    if (progress != nullptr && progress->is_cancelled.load(std::memory_order_relaxed)) {
      return;
    }
    try {
      const cuda::DeviceGuard guard(device);
      results[field].value = each(worker, field);
    } catch (...) {
      results[field].error = std::current_exception();
    }
    if (progress != nullptr) {
      progress->endStages(1);
    }
  });
  requireNotCancelled(progress);
  return results;
}

std::size_t totalBytes(std::span<const BatchField> fields) {
  std::size_t n_bytes = 0;
  for (const BatchField& field : fields) {
    n_bytes += field.bytes.size();
  }
  return n_bytes;
}

/// Text that names the stages.
std::string_view textOf(const CompressOptions& options) {
  if (!options.config_toml.empty()) {
    return options.config_toml;
  }
  const Preset* const preset =
      options.preset.empty() ? &defaultPreset(options.mode) : findPreset(options.preset);
  return preset == nullptr ? std::string_view() : preset->toml;
}

/// One thread of a batch that decodes.
class BatchDecoder {
 public:
  template <class Run>
  auto run(ByteView frame, const DecompressOptions& options, const Run& run) {
    HostDecompression decompression(frame);
    if (options.backend != Backend::CPU) {
      return run(decompression, nullptr);
    }
    if (pipeline_ == nullptr) {
      pipeline_ = std::make_unique<Pipeline>();
    }
    try {
      return run(decompression, pipeline_.get());
    } catch (...) {
      pipeline_.reset();  // nothing of a frame that was refused is kept
      throw;
    }
  }

 private:
  std::unique_ptr<Pipeline> pipeline_;
};

/// Where frames are decoded, when nobody says.
Backend decodingBackend(std::span<const ByteView> frames, const DecompressOptions& options) {
  if (options.backend != Backend::Auto) {
    return options.backend;
  }
  for (const ByteView frame : frames) {
    try {
      const HostDecompression one(frame);
      return chooseForBatch({one.info().original_bytes * frames.size(), options.threads,
                             chainCostOf(one.stageNames())},
                            frames.size(), false);
    } catch (const Error&) {  // damaged; another one may say
    }
  }
  return Backend::CPU;
}

template <class T, class Each>
Results<T> decodeAll(std::span<const ByteView> frames,
                     const DecompressOptions& options,
                     const Each& each) try {
  const BatchSplit split = splitBatch(frames.size(), options.threads);
  DecompressOptions how = options;
  how.backend = decodingBackend(frames, options);
  how.threads = split.threads_each;
  how.progress = nullptr;
  std::vector<BatchDecoder> decoders(split.n_workers);
  return runAll<T>(frames.size(), split, how.backend, options.progress,
                   [&](std::size_t worker, std::size_t field) {
                     return decoders[worker].run(frames[field], how,
                                                 [&](HostDecompression& one, Pipeline* pipeline) {
                                                   return each(field, one, pipeline, how);
                                                 });
                   });
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

}  // namespace

BatchSplit splitBatch(std::size_t n_fields, std::size_t n_threads) {
  const std::size_t n_usable = usableThreads(n_threads);
  BatchSplit split;
  split.n_workers = std::max<std::size_t>(1, std::min(n_usable, n_fields));
  split.threads_each = n_usable / split.n_workers;
  return split;
}

void forEachField(const BatchSplit& split,
                  std::size_t n_fields,
                  const std::function<void(std::size_t worker, std::size_t field)>& each) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](std::size_t worker) {
    for (std::size_t field = next.fetch_add(1); field < n_fields; field = next.fetch_add(1)) {
      each(worker, field);
    }
  };
  if (split.n_workers == 1) {
    work(0);
    return;
  }
  const auto executor = makeCpuExecutor(split.n_workers, defaultThreadBackend());
  parallelFor(*executor, split.n_workers, work);
}

ErrorCode errorCodeOf(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.code();
  } catch (const InvalidArgument& known) {
    return known.code();
  } catch (const std::bad_alloc&) {
    return ErrorCode::kOutOfMemory;
  } catch (...) {
    return ErrorCode::kInternal;
  }
}

std::vector<BatchResult<Frame>> compressBatch(std::span<const BatchField> fields,
                                              const CompressOptions& options) try {
  const BatchSplit split = splitBatch(fields.size(), options.threads);
  CompressOptions how = options;
  if (options.backend == Backend::Auto) {
    how.backend = chooseForBatch(
        {totalBytes(fields), options.threads, chainCostOf(textOf(options))}, fields.size(), true);
  }
  how.threads = split.threads_each;
  how.progress = nullptr;
  struct Worker {
    CompressOptions options;
    OwnPipelines pipelines;
  };
  std::vector<Worker> workers(split.n_workers);
  for (Worker& worker : workers) {
    worker.options = how;
  }
  return runAll<Frame>(fields.size(), split, how.backend, options.progress,
                       [&](std::size_t w, std::size_t i) {
                         Worker& worker = workers[w];
                         const BatchField& field = fields[i];
                         worker.options.extents = field.extents ? field.extents : how.extents;
                         return HostCompression(field.type, field.bytes, worker.options,
                                                Fusion::Auto, &worker.pipelines)
                             .run();
                       });
} catch (const std::bad_alloc&) {
  detail::throwOutOfMemory();
}

std::vector<BatchResult<Array>> decompressBatch(std::span<const ByteView> frames,
                                                const DecompressOptions& options) {
  return decodeAll<Array>(frames, options,
                          [](std::size_t /*field*/, HostDecompression& one, Pipeline* pipeline,
                             const DecompressOptions& how) {
                            return pipeline == nullptr ? one.array(how) : one.on(*pipeline, how);
                          });
}

std::vector<BatchResult<std::size_t>> decompressBatchInto(std::span<const ByteView> frames,
                                                          const BatchMemory& memory,
                                                          const DecompressOptions& options) {
  return decodeAll<std::size_t>(
      frames, options,
      [&](std::size_t field, HostDecompression& one, Pipeline* pipeline,
          const DecompressOptions& how) {
        const auto provide = [&](std::size_t n_bytes) { return memory(field, n_bytes); };
        return pipeline == nullptr ? one.into(provide, how) : one.into(*pipeline, provide, how);
      });
}

}  // namespace fz
