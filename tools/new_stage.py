#!/usr/bin/env python3
"""Writes the folder of a new stage, ready to build, and prints the line that registers it.

Usage: tools/new_stage.py coders/my_coder --id 16384 --types int16,int32

The stage copies its input until you write its codec; it passes the conformance suites from the
start, so every step after that is checked.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CATEGORIES = {
    "coders": "coder",
    "fused": "fused",
    "predictors": "predictor",
    "quantizers": "quantizer",
    "shufflers": "shuffler",
    "transforms": "transform",
}
TYPES = {
    "uint8": "std::uint8_t",
    "uint16": "std::uint16_t",
    "uint32": "std::uint32_t",
    "uint64": "std::uint64_t",
    "int8": "std::int8_t",
    "int16": "std::int16_t",
    "int32": "std::int32_t",
    "int64": "std::int64_t",
    "float32": "float",
    "float64": "double",
}

FIRST_ID = 16384  # those below belong to the file format that this library follows
LAST_ID = 65535

# What cannot be the name of a namespace inside fz: C++ keywords, and names that fz uses already.
RESERVED = set(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl concept const consteval constexpr constinit const_cast continue co_await
    co_return co_yield decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    std fz bits fp detail device test cli
    """.split()
)

STAGE_H = """\
#pragma once

#include <cstdint>
#include <vector>

#include "fz/simple_stage.h"

namespace fz {

namespace @stage@ {
const StageDescriptor& descriptor();
}  // namespace @stage@

using @Name@Types = TypeList<@type_list@>;

/// What the stage does, for a user of it. Lossless. One port, "output".
template <class T>
class @Name@Stage final : public SimpleStage {
 public:
  const StageDescriptor& descriptor() const override { return @stage@::descriptor(); }
  std::vector<DataType> elementTypes() const override { return {kDataTypeOf<T>}; }

 protected:
  DataType inputType() const override { return kDataTypeOf<T>; }
  Ports outputPorts() const override { return {{"output", kDataTypeOf<T>}}; }
  PortBytes encodedBytes(std::size_t input_bytes) const override { return {input_bytes}; }
  std::size_t decodedBytes(std::span<const std::size_t> encoded_bytes) const override;
  void encodeCpu(const CpuRun& run) override;
  void decodeCpu(const CpuRun& run) override;
  void writeConfig(ByteWriter& out) const override;
  void readConfig(ByteReader& in) override;
};

@externs@
}  // namespace fz
"""

CODEC_H = """\
#pragma once

#include <cstdint>

#include "shared/host_device.h"

namespace fz::@stage@ {

/// Values that are encoded together. Part of the format: changing it breaks old files.
inline constexpr std::uint32_t kTileValues = 1024;

/// Encodes the n values of one tile.
template <class T, class Team>
FZ_HD void encodeTile(Team team, const T* in, std::uint32_t n, T* out) {
  team.each(n, [=](std::uint32_t i) { out[i] = in[i]; });
}

/// Restores the n values of one tile.
template <class T, class Team>
FZ_HD void decodeTile(Team team, const T* in, std::uint32_t n, T* out) {
  team.each(n, [=](std::uint32_t i) { out[i] = in[i]; });
}

}  // namespace fz::@stage@
"""

STAGE_CC = """\
#include "@path@/@stage@_stage.h"

#include <algorithm>
#include <array>

#include "backends/cpu/parallel_for.h"
#include "core/require.h"
#include "@path@/@stage@_codec.h"
#include "shared/bits.h"
#include "fz/byte_io.h"
#include "shared/team.h"

namespace fz {

namespace {

/// f(tile, first value, number of values) for every tile, on the run's threads.
template <class F>
void forEachTile(const CpuRun& run, std::size_t n_values, F f) {
  constexpr std::size_t kTile = @stage@::kTileValues;
  parallelFor(run.executor, bits::ceilDiv(n_values, kTile), [&](std::size_t tile) {
    const std::size_t first = tile * kTile;
    f(first, static_cast<std::uint32_t>(std::min(kTile, n_values - first)));
  });
}

}  // namespace

template <class T>
std::size_t @Name@Stage<T>::decodedBytes(std::span<const std::size_t> encoded_bytes) const {
  FZ_REQUIRE(encoded_bytes[0] % sizeof(T) == 0, ErrorCode::kCorrupt,
             "@Name@: stream size {} is not a multiple of {} bytes", encoded_bytes[0],
             sizeof(T));
  return encoded_bytes[0];
}

template <class T>
void @Name@Stage<T>::encodeCpu(const CpuRun& run) {
  FZ_REQUIRE(run.inputs[0].size() % sizeof(T) == 0, ErrorCode::kBadSize,
             "@Name@: input size {} is not a multiple of {} bytes",
             run.inputs[0].size(), sizeof(T));
  const T* in = reinterpret_cast<const T*>(run.inputs[0].data());
  T* out = reinterpret_cast<T*>(run.outputs[0].data());
  forEachTile(run, run.inputs[0].size() / sizeof(T), [&](std::size_t first, std::uint32_t n) {
    @stage@::encodeTile(SerialTeam{}, in + first, n, out + first);
  });
  setActualBytes(0, run.inputs[0].size());
}

template <class T>
void @Name@Stage<T>::decodeCpu(const CpuRun& run) {
  const std::array<std::size_t, 1> encoded_bytes = {run.inputs[0].size()};
  const std::size_t n_bytes = decodedBytes(encoded_bytes);
  const T* in = reinterpret_cast<const T*>(run.inputs[0].data());
  T* out = reinterpret_cast<T*>(run.outputs[0].data());
  forEachTile(run, n_bytes / sizeof(T), [&](std::size_t first, std::uint32_t n) {
    @stage@::decodeTile(SerialTeam{}, in + first, n, out + first);
  });
  setActualBytes(0, n_bytes);
}

template <class T>
void @Name@Stage<T>::writeConfig(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>(kDataTypeOf<T>));
}

template <class T>
void @Name@Stage<T>::readConfig(ByteReader& in) {
  const std::uint8_t type = in.u8();
  FZ_REQUIRE(!in.failed() && type == static_cast<std::uint8_t>(kDataTypeOf<T>),
             ErrorCode::kCorrupt, "@Name@: config with type {}", type);
}

@instantiations@
namespace @stage@ {

namespace {

std::unique_ptr<Stage> make(std::span<const DataType> types) {
  return makeFor<@Name@Stage>(types, @Name@Types{});
}

StageTypes typesFromConfig(ByteView config) {
  return config.empty() ? StageTypes{} : StageTypes{static_cast<DataType>(config[0])};
}

const ParamTable& params() {
  static const ParamTable kNone;
  return kNone;
}

}  // namespace

const StageDescriptor& descriptor() {
  static const StageDescriptor kDescriptor = {
      .id = @id@,
      .name = "@Name@",
      .category = "@category@",
      .summary = "one line for lists",
      .type_keys = {{"data_type", kDataTypeOf<@first_type@>}},
      .type_combinations = combinationsOf(@Name@Types{}),
      .aliases = {},
      .make = &make,
      .types_from_config = &typesFromConfig,
      .params = &params,
      .adjust_config_defaults = nullptr,
  };
  return kDescriptor;
}

}  // namespace @stage@
}  // namespace fz
"""

TEST_CC = """\
#include "@path@/@stage@_stage.h"

#include <gtest/gtest.h>

#include "@path@/@stage@_codec.h"
#include "fz/error.h"
#include "support/stage_case.h"

namespace fz::test {
namespace {

FZ_STAGE_CASE(@Name@,
              {.stage = "@Name@",
               .tile_values = @stage@::kTileValues,
               .inputs = {smallNoise(), fullNoise(), extremes(), zeros(), ramp()}});
@own_tests@
}  // namespace
}  // namespace fz::test
"""

WHOLE_VALUES_TEST = """\

TEST(@Name@, RefusesAnInputThatIsNoWholeNumberOfValues) {
  @Name@Stage<@wide_type@> stage;
  EXPECT_THROW(encode(stage, Bytes(sizeof(@wide_type@) + 1)), Error);
}
"""

SPEC_MD = """\
# @Name@, stage id @id@

What the stream holds, in one sentence.

## Config, 1 byte

| offset | type | field |
|---|---|---|
| 0 | u8 | DataType of the values |

## Stream

| offset | type | field |
|---|---|---|
| 0 | values | the values, unchanged, little-endian |

## Decoding

How to get the values back, written for someone who has only this page.
"""

FILES = {
    "{}_stage.h": STAGE_H,
    "{}_stage.cc": STAGE_CC,
    "{}_codec.h": CODEC_H,
    "{}_test.cc": TEST_CC,
    "SPEC.md": SPEC_MD,
}


def camel(stage: str) -> str:
    return "".join(part.capitalize() for part in stage.split("_"))


def fill(template: str, words: dict[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda match: words[match.group(1)], template)


def width(cpp_type: str) -> int:
    """Bits of a type of TYPES."""
    digits = re.search(r"\d+", cpp_type)
    return int(digits[0]) if digits else {"float": 32, "double": 64}[cpp_type]


def stage_id(text: str) -> int:
    """Decimal or, as in the documents, hexadecimal."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number such as 16384 or 0x4000") from None


def known_stages(root: Path) -> dict[int, str]:
    """Ids and names, from the title lines that every SPEC.md has."""
    known = {}
    for spec in sorted(root.glob("modules/*/*/SPEC.md")):
        title = re.match(r"# (\w+), stage id (\d+)", spec.read_text(encoding="utf-8"))
        if title:
            known[int(title.group(2))] = title.group(1)
    return known


def problem_with(category: str, stage: str, name: str, number: int, types: list[str], root: Path) -> str:
    """Why there can be no such stage; empty when there can."""
    if category not in CATEGORIES or not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", stage):
        return f"path must be <category>/<snake_case>, category one of {', '.join(CATEGORIES)}"
    if stage in RESERVED:
        return f"'{stage}' is a word of C++ or of fz, and the stage needs a namespace of its name"
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        return f"the name must be CamelCase, not '{name}'"
    for text in types:
        if text not in TYPES:
            return f"unknown type {text}; known: {', '.join(TYPES)}"
        if types.count(text) > 1:
            return f"{text} is listed twice in --types"
    if not FIRST_ID <= number <= LAST_ID:
        return f"the id of a new stage is from {FIRST_ID} (0x4000) to {LAST_ID}, not {number}"
    known = known_stages(root)
    if number in known:
        return f"id {number} is that of {known[number]}"
    if name.lower() in {other.lower() for other in known.values()}:
        return f"there is a stage {name} already"
    if list(root.glob(f"modules/*/{stage}")):
        return f"there is a folder {stage} already"
    return ""


def format_sources(folder: Path) -> None:
    """Long names break lines; nothing happens where the tool is missing."""
    tool = shutil.which("clang-format")
    if tool:
        files = sorted(str(file) for file in folder.iterdir() if file.suffix in (".h", ".cc"))
        subprocess.run([tool, f"--style=file:{ROOT}/.clang-format", "-i", *files], check=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("path", help="category/stage, such as coders/my_coder")
    parser.add_argument("--id", type=stage_id, required=True,
                        help=f"stage id in files, {FIRST_ID} (0x4000) or above, used by no other stage")
    parser.add_argument("--types", default="int32", help="element types, comma-separated")
    parser.add_argument("--name", help="name in configuration files (default: from the path)")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)

    category, _, stage = options.path.partition("/")
    types = options.types.split(",")
    name = options.name or camel(stage)
    problem = problem_with(category, stage, name, options.id, types, options.root)
    if problem:
        parser.error(problem)

    folder = options.root / "modules" / category / stage
    cpp_types = [TYPES[t] for t in types]
    words = {
        "path": options.path,
        "stage": stage,
        "Name": name,
        "category": CATEGORIES[category],
        "id": str(options.id),
        "type_list": ", ".join(cpp_types),
        "first_type": cpp_types[0],
        "wide_type": max(cpp_types, key=width),
        "externs": "".join(f"extern template class {name}Stage<{t}>;\n" for t in cpp_types),
        "instantiations": "".join(f"template class {name}Stage<{t}>;\n" for t in cpp_types),
    }
    # Of bytes there is no broken number.
    has_wide_type = width(words["wide_type"]) > 8
    words["own_tests"] = fill(WHOLE_VALUES_TEST, words) if has_wide_type else ""
    folder.mkdir(parents=True)
    for pattern, template in FILES.items():
        (folder / pattern.format(stage)).write_text(fill(template, words), encoding="ascii")
    format_sources(folder)

    print(f"Written: modules/{category}/{stage}/")
    print("Add this line to modules/CMakeLists.txt:")
    print(f"  {category}/{stage}")
    print("Then write the codec and SPEC.md, run make format, and make the golden files and the page:")
    print("  make build")
    print("  FZ_UPDATE_GOLDEN=1 FZ_UPDATE_DOCS=1 build/cpu/bin/fz_stage_tests --gtest_filter='Golden.*:Docs.*'")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
