// fz_corpus FOLDER: writes the inputs from which the fuzz targets start, one sub-folder each. They
// are made from the stages' own test cases, so a new stage is in the corpus as soon as it has one.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "fz/presets.h"
#include "fz/stage_descriptor.h"
#include "support/fusion_chains.h"
#include "support/stage_case.h"
#include "trust/corpus.h"

namespace {

using fz::trust::Bytes;

std::filesystem::path folder;

void put(const std::string& target, std::size_t number, const Bytes& bytes) {
  char name[32];
  std::snprintf(name, sizeof(name), "%04zu", number);
  std::filesystem::create_directories(folder / target);
  std::ofstream out(folder / target / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

Bytes textBytes(const std::string& text) {
  return {text.begin(), text.end()};
}

void putFrames() {
  std::size_t n = 0;
  for (const fz::trust::Seed& seed : fz::trust::mutationSeeds()) {
    put("decode", n++, seed.frame);
  }
}

void appendWithLength(Bytes& bytes, const Bytes& part) {
  bytes.push_back(static_cast<std::uint8_t>(part.size()));
  bytes.push_back(static_cast<std::uint8_t>(part.size() >> 8));
  bytes.insert(bytes.end(), part.begin(), part.end());
}

/// In the form that fuzz_stage reads: number of the stage, config, streams.
void putStreams() {
  std::size_t n = 0;
  const auto stages = fz::allStages();
  for (const fz::test::StageSetup& s : fz::test::allSetups()) {
    for (const fz::test::InputCase& input : s.stage_case->inputs) {
      if (input.applies && !input.applies(*s.config, s.types)) {
        continue;
      }
      std::mt19937_64 rng(1);
      constexpr std::size_t kValues = 70;
      const auto stage = s.makeStage(kValues);
      const fz::test::Encoded encoded =
          fz::test::encode(*stage, input.make(s.inputType(), kValues, rng));
      std::size_t which = 0;
      while (stages[which]->id != stage->getStageTypeId()) {
        ++which;
      }
      Bytes bytes = {static_cast<std::uint8_t>(which)};
      appendWithLength(bytes, encoded.config);
      for (const Bytes& stream : encoded.streams) {
        appendWithLength(bytes, stream);
      }
      put("stage", n++, bytes);
      break;
    }
  }
}

void putConfigs() {
  std::size_t n = 0;
  for (const fz::test::FusionChain& chain : fz::test::fusionChains()) {
    put("toml", n++, textBytes(chain.toml));
  }
  // Letters where a number or a space may stand.
  put("toml", n++, textBytes("[[stage]]\nerror_bound = \xCF\x98-3\n\xC3\xA9 = \xE2\x80\x8A 1\n"));
}

void putCommands() {
  const char* const commands[] = {
      "compress\n-q\n-f\na.f32",
      "compress\n-f\n-b\nabs:1e-3\n-d\n30x10\n-p\ncuszp\n-o\na.fzm\na.f32",
      "compress\n-f\n--verify\n-b\nrel:1e-2\n-T\n2\na.f32",
      "compress\n-f\n--set\nerror_bound=0.5\n-t\nf32\n--backend\ncpu\na.f32",
      "decompress\n-f\n-o\nb.npy\n--max-output\n4G\n--max-memory\n500M\na.f32.fzm",
      "decompress\n-q\n-f\na.f32.fzm",
      "test\na.f32.fzm",
      "info\n--json\na.f32.fzm",
      "verify\na.f32.fzm\na.f32",
      "stages\nQuantizer",
      "stages",
      "presets\npfpl",
      "presets",
      "--version",
      "help\ncompress",
      "compress\n-c\nc.toml\n-\n",
  };
  std::size_t n = 0;
  for (const char* command : commands) {
    put("cli", n++, textBytes(command));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fz_corpus FOLDER\n");
    return 1;
  }
  folder = argv[1];
  putFrames();
  putStreams();
  putConfigs();
  putCommands();
  return 0;
}
