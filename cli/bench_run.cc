#include "bench_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "api/host_run.h"
#include "api/missing_values.h"
#include "fz/backend_memory.h"
#include "pipeline/compressor.h"
#include "progress.h"

namespace fz::cli {

namespace {

constexpr std::size_t kProfiledRuns = 5;

template <class F>
double secondsOf(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// As many threads as the pipeline has, each its own part: what memory allows at best.
void copyOnHost(BackendMemory& to, const BackendMemory& from, std::size_t n_threads) {
  constexpr std::size_t kLeastPart = std::size_t{4} << 20;  // less is done before a thread starts
  n_threads = std::clamp<std::size_t>(from.size() / kLeastPart, 1, n_threads);
  if (n_threads == 1) {
    to.copyFrom(from);
    return;
  }
  const std::size_t part = (from.size() + n_threads - 1) / n_threads;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < n_threads; ++i) {
    const std::size_t begin = std::min(i * part, from.size());
    const std::size_t n_bytes = std::min(part, from.size() - begin);
    threads.emplace_back([&, begin, n_bytes] {
      std::memcpy(static_cast<char*>(to.data()) + begin,
                  static_cast<const char*>(from.data()) + begin, n_bytes);
    });
  }
}

/// Median time of each stage over the profiled runs.
class StageRows {
 public:
  void record(const PipelinePerfResult& perf) {
    rows_.resize(perf.stages.size());
    times_.resize(perf.stages.size());
    for (std::size_t i = 0; i < perf.stages.size(); ++i) {
      rows_[i] = {perf.stages[i].name, 0.0, perf.stages[i].input_bytes,
                  perf.stages[i].output_bytes};
      times_[i].push_back(static_cast<double>(perf.stages[i].elapsed_ms) * 1e-3);
    }
    all_.push_back(static_cast<double>(perf.dag_elapsed_ms) * 1e-3);
  }
  double mean() const { return spreadOf(all_).mean; }
  std::vector<BenchStage> rows() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].seconds = spreadOf(times_[i]).median;
    }
    return rows_;
  }

 private:
  std::vector<BenchStage> rows_;
  std::vector<std::vector<double>> times_;
  std::vector<double> all_;
};

class Bench {
 public:
  Bench(DataType type, ByteView field, const CompressOptions& options, const BenchPlan& plan)
      : type_(type),
        field_(field),
        options_(options),
        pipeline_(field.size(), plan.strategy, plan.pool_multiplier) {
    options_.progress = nullptr;
    build(plan.minds_missing);
    const Backend backend = pipeline_.getBackend();
    input_ = std::make_unique<BackendMemory>(backend, field.size());
    output_ = std::make_unique<BackendMemory>(backend, field.size());
    decoded_.resize(field.size());
    input_->upload(field);
  }

  BenchResult run(const BenchPlan& plan, Progress& progress) {
    BenchResult result;
    result.backend = pipeline_.getBackend();
    result.n_threads = pipeline_.getThreads();
    result.field_bytes = field_.size();
    result.n_runs = plan.n_runs;
    progress.beginBytes("measuring", (plan.n_warmups + plan.n_runs) * field_.size());
    for (std::size_t i = 0; i < plan.n_warmups + plan.n_runs; ++i) {
      if (i == plan.n_warmups) {
        forget();
      }
      once();
      if (i == 0 && plan.minds_missing) {
        requireSoundRange(pipeline_, field_, options_);
      }
      progress.add(field_.size());
    }
    result.compress.call = spreadOf(compress_);
    result.decompress.call = spreadOf(decompress_);
    result.compress.with_transfers = spreadOf(compress_and_moves_);
    result.decompress.with_transfers = spreadOf(decompress_and_moves_);
    result.copy = spreadOf(copy_);
    profile(plan, result);
    result.frame = inspect(frame_);
    check(result);
    return result;
  }

 private:
  void build(bool minds_missing) {
    loadUnfinalized(pipeline_, type_, options_);
    if (minds_missing && canBeMasked(pipeline_, type_) &&
        hasAnyMissing(type_, field_, options_.fill)) {
      addMask(pipeline_, type_, options_.fill,
              maskSettingsFor(pipeline_, type_, field_, options_.fill));
    }
    pipeline_.finalize();
  }

  bool onDevice() const { return pipeline_.getBackend() == Backend::CUDA; }

  void forget() {
    for (std::vector<double>* times :
         {&compress_, &decompress_, &compress_and_moves_, &decompress_and_moves_, &copy_}) {
      times->clear();
    }
  }

  void once() {
    const double up = secondsOf([&] {
      if (onDevice()) {
        input_->upload(field_);
      }
    });
    CompressedView view;
    const double packed =
        secondsOf([&] { view = pipeline_.compress(input_->data(), field_.size()); });
    const double down = secondsOf([&] { fetch(view); });
    compress_.push_back(packed);
    compress_and_moves_.push_back(onDevice() ? up + packed + down : packed);
    std::size_t n_decoded = 0;
    const double unpacked = secondsOf([&] {
      pipeline_.decompress(view.data, view.n_bytes, output_->data(), output_->size(), &n_decoded);
    });
    const double frame_up = onDevice() ? secondsOf([&] { device_frame_->upload(frame_); }) : 0.0;
    const double values_down = secondsOf([&] {
      if (onDevice()) {
        output_->download(decoded_);
      }
    });
    decompress_.push_back(unpacked);
    decompress_and_moves_.push_back(frame_up + unpacked + (onDevice() ? values_down : 0.0));
    copy_.push_back(secondsOf([&] {
      if (onDevice()) {
        output_->copyFrom(*input_);
      } else {
        copyOnHost(*output_, *input_, pipeline_.getThreads());
      }
    }));
  }

  /// The frame in host memory.
  void fetch(const CompressedView& view) {
    frame_.resize(view.n_bytes);
    BackendMemory::fetch(pipeline_.getBackend(), view.data, frame_);
    if (onDevice() && (device_frame_ == nullptr || device_frame_->size() < view.n_bytes)) {
      device_frame_ = std::make_unique<BackendMemory>(Backend::CUDA, view.n_bytes);
    }
  }

  void profile(const BenchPlan& plan, BenchResult& result) {
    pipeline_.enableProfiling(true);
    StageRows forward;
    StageRows back;
    for (std::size_t i = 0; i < std::min(plan.n_runs, kProfiledRuns); ++i) {
      const CompressedView view = pipeline_.compress(input_->data(), field_.size());
      forward.record(pipeline_.getLastPerfResult());
      std::size_t n_decoded = 0;
      pipeline_.decompress(view.data, view.n_bytes, output_->data(), output_->size(), &n_decoded);
      back.record(pipeline_.getLastPerfResult());
    }
    result.compress.stages = forward.rows();
    result.compress.stages_mean = forward.mean();
    result.decompress.stages_mean = back.mean();
    result.decompress.stages = back.rows();
  }

  void check(BenchResult& result) {
    output_->download(decoded_);
    const std::optional<BoundRule> rule = ruleOfFrame(result.frame);
    if (rule) {
      result.check = checkValues(type_, field_, decoded_, *rule);
    }
    result.decoded = std::move(decoded_);
  }

  DataType type_;
  ByteView field_;
  CompressOptions options_;
  Pipeline pipeline_;
  std::unique_ptr<BackendMemory> input_;
  std::unique_ptr<BackendMemory> output_;
  std::unique_ptr<BackendMemory> device_frame_;
  std::vector<std::uint8_t> frame_;
  std::vector<std::uint8_t> decoded_;
  std::vector<double> compress_;
  std::vector<double> decompress_;
  std::vector<double> compress_and_moves_;
  std::vector<double> decompress_and_moves_;
  std::vector<double> copy_;
};

}  // namespace

Spread spreadOf(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    const double rank = std::ceil(part * static_cast<double>(seconds.size()));
    return seconds[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
  };
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  // Of an even count the middle lies between two.
  const std::size_t half = seconds.size() / 2;
  const double median =
      seconds.size() % 2 == 1 ? seconds[half] : seconds[half - 1] / 2 + seconds[half] / 2;
  return {median, at(0.05), at(0.95), sum / static_cast<double>(seconds.size())};
}

BenchResult runBench(DataType type,
                     ByteView field,
                     const CompressOptions& options,
                     const BenchPlan& plan,
                     Progress& progress) {
  return Bench(type, field, options, plan).run(plan, progress);
}

}  // namespace fz::cli
