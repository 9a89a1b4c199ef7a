// A main for the fuzz targets where there is no libFuzzer: runs every file of the given folders,
// and with --mutations N also N changed forms of each, the same in every run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes readAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A few bytes changed, put in, taken out or moved.
void mutate(Bytes& bytes, std::mt19937_64& rng) {
  for (std::uint64_t n = 1 + rng() % 4; n > 0; --n) {
    const std::size_t at = bytes.empty() ? 0 : rng() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (bytes.empty() ? 1 : rng() % 4) {
      case 0:
        *place = static_cast<std::uint8_t>(rng());
        break;
      case 1:
        bytes.insert(place, static_cast<std::uint8_t>(rng()));
        break;
      case 2:
        bytes.erase(place);
        break;
      default: {
        const std::size_t n_block = 1 + rng() % (bytes.size() - at);
        const Bytes block(place, place + static_cast<std::ptrdiff_t>(n_block % 32));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(rng() % bytes.size()),
                     block.begin(), block.end());
        break;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t n_mutations = 0;
  std::uint64_t n_inputs = 0;
  std::mt19937_64 rng(1);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--mutations" && i + 1 < argc) {
      n_mutations = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      const Bytes bytes = readAll(file);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      for (std::uint64_t k = 0; k < n_mutations; ++k) {
        Bytes changed = bytes;
        mutate(changed, rng);
        LLVMFuzzerTestOneInput(changed.data(), changed.size());
      }
      n_inputs += 1 + n_mutations;
    }
  }
  std::fprintf(stderr, "%llu inputs\n", static_cast<unsigned long long>(n_inputs));
  return n_inputs > 0 ? 0 : 1;
}
