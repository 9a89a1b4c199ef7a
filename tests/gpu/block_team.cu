#include <cuda_runtime_api.h>

#include "cuda_check.h"
#include "gpu/block_team.h"
#include "shared/team.h"

namespace fz::test {

namespace {

/// `a` holds the values and, after an even number of rounds, the result.
template <class Team>
FZ_HD void mirror(
    Team team, std::uint32_t* a, std::uint32_t* b, std::uint32_t n, unsigned n_rounds) {
  for (unsigned round = 0; round < n_rounds; ++round) {
    const std::uint32_t* from = round % 2 == 0 ? a : b;
    std::uint32_t* to = round % 2 == 0 ? b : a;
    const std::uint32_t largest = team.max(n, [=](std::uint32_t i) { return from[i]; });
    team.each(n, [=](std::uint32_t i) { to[i] = largest - from[n - 1 - i] + round; });
    team.sync();
  }
}

__global__ void mirrorKernel(std::uint32_t* a,
                             std::uint32_t* b,
                             std::uint32_t n,
                             unsigned n_rounds) {
  mirror(BlockTeam{}, a, b, n, n_rounds);
}

}  // namespace

std::vector<std::uint32_t> mirrorByBlock(const std::vector<std::uint32_t>& values,
                                         unsigned n_rounds,
                                         unsigned n_threads) {
  const std::size_t n_bytes = values.size() * sizeof(std::uint32_t);
  std::uint32_t* memory = nullptr;
  FZ_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory), 2 * n_bytes + 1));
  FZ_CUDA_CHECK(cudaMemcpy(memory, values.data(), n_bytes, cudaMemcpyHostToDevice));
  const auto n = static_cast<std::uint32_t>(values.size());
  mirrorKernel<<<1, n_threads>>>(memory, memory + n, n, n_rounds);
  FZ_CUDA_CHECK(cudaGetLastError());
  std::vector<std::uint32_t> result(values.size());
  FZ_CUDA_CHECK(cudaMemcpy(result.data(), memory + (n_rounds % 2 == 0 ? 0 : n), n_bytes,
                           cudaMemcpyDeviceToHost));
  FZ_CUDA_CHECK(cudaFree(memory));
  return result;
}

std::vector<std::uint32_t> mirrorSerially(const std::vector<std::uint32_t>& values,
                                          unsigned n_rounds) {
  std::vector<std::uint32_t> a = values;
  std::vector<std::uint32_t> b(values.size());
  mirror(SerialTeam{}, a.data(), b.data(), static_cast<std::uint32_t>(values.size()), n_rounds);
  return n_rounds % 2 == 0 ? a : b;
}

}  // namespace fz::test
