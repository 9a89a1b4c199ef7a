#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "bench_common.h"
#include "bench_stage_runs.h"
#include "fz/stage_descriptor.h"
#include "mem/mempool.h"
#include "stage/stage.h"

namespace fz::bench {

namespace {

using Buffers = std::vector<Bytes>;

/// Runs the stage once; grows the outputs when it asks for more.
void runOnce(Stage& stage,
             MemoryPool& pool,
             Buffers& in,
             const std::vector<std::size_t>& sizes,
             Buffers& out) {
  std::vector<void*> inputs;
  for (auto& buffer : in) {
    inputs.push_back(buffer.data());
  }
  stage.beginRun();
  std::vector<std::size_t> capacities = stage.estimateOutputSizes(sizes);
  for (;;) {
    out.resize(capacities.size());
    std::vector<void*> outputs;
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      if (out[i].size() < capacities[i]) {
        out[i].resize(capacities[i]);
      }
      capacities[i] = out[i].size();
      outputs.push_back(out[i].data());
    }
    stage.setOutputCapacities(capacities);
    stage.execute(nullptr, &pool, inputs, outputs, sizes);
    const std::vector<std::size_t> needed = stage.neededOutputSizes();
    if (needed.empty() && !stage.wantsRerun()) {
      stage.checkResult();
      return;
    }
    for (std::size_t i = 0; i < needed.size(); ++i) {
      capacities[i] = std::max(capacities[i], needed[i]);
    }
  }
}

std::vector<std::size_t> actualSizes(const Stage& stage, std::size_t n_outputs) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < n_outputs; ++i) {
    sizes.push_back(stage.getActualOutputSize(static_cast<int>(i)));
  }
  return sizes;
}

/// The input of a run: generated values, sent through the stages before it.
Bytes inputOf(const StageRun& run, std::size_t n_bytes) {
  const DataType first = run.before.empty() ? (run.types.empty() ? DataType::UINT16 : run.types[0])
                                            : parseTypes(run.before[0]).at(0);
  Buffers data = {makeValues(first, n_bytes)};
  MemoryPool pool;
  for (const std::string& name : run.before) {
    const auto stage = makeStage(name.substr(0, name.find(':')), parseTypes(name));
    Buffers out;
    runOnce(*stage, pool, data, {data[0].size()}, out);
    out[0].resize(stage->getActualOutputSize(0));
    data = {std::move(out[0])};
  }
  return data[0];
}

Row measure(const StageRun& run, const Options& options) {
  const auto stage = makeStage(run.stage, run.types);
  for (const auto& [key, text] : run.params) {
    setParamFromText(*stage, key, text);
  }
  std::size_t n_bytes = options.n_bytes;
  if (run.dims[0] > 0) {
    stage->setDims(run.dims);
    n_bytes = run.dims[0] * run.dims[1] * run.dims[2] * getDataTypeSize(run.types[0]);
  }
  Buffers in = {inputOf(run, n_bytes)};
  n_bytes = in[0].size();
  MemoryPool pool;
  Buffers encoded;
  Buffers decoded;
  Row row{.name = labelOf(run)};
  row.memcpy_gbs = memcpyRate(n_bytes, options.runs);
  const double encode_s =
      medianSeconds(options.runs, [&] { runOnce(*stage, pool, in, {n_bytes}, encoded); });
  const std::vector<std::size_t> sizes = actualSizes(*stage, encoded.size());
  stage->setInverse(true);
  const double decode_s =
      medianSeconds(options.runs, [&] { runOnce(*stage, pool, encoded, sizes, decoded); });
  std::size_t total = 0;
  for (const std::size_t n : sizes) {
    total += n;
  }
  row.ratio = static_cast<double>(n_bytes) / static_cast<double>(total);
  row.encode_gbs = static_cast<double>(n_bytes) / encode_s * 1e-9;
  row.decode_gbs = static_cast<double>(n_bytes) / decode_s * 1e-9;
  return row;
}

}  // namespace

std::vector<Row> benchStages(const Options& options) {
  std::vector<Row> rows;
  for (const StageRun& run : stageRuns()) {
    if (labelOf(run).find(options.only) != std::string::npos &&
        findStage(std::string_view(run.stage)) != nullptr) {
      rows.push_back(measure(run, options));
    }
  }
  return rows;
}

}  // namespace fz::bench
