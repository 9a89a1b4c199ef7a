#include "compat/compat_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "failure.h"
#include "options.h"
#include "suggest.h"

namespace fz::cli::compat {

namespace {

constexpr OptionRow kRows[] = {
    {"compress", "-z --compress", "", "", "mode: compress the input"},
    {"decompress", "-x --decompress", "", "", "mode: decompress the input"},
    {"benchmark", "-b --benchmark", "", "", "mode: time both (goes before the other two)"},
    {"help", "-h --help", "", "", "this text"},
    {"input", "-i --input", "PATH", "", "input, needed in every mode"},
    {"output", "-o --output", "PATH", "input + .fzm",
     "result; decompression needs it unless --report or --compare is given"},
    {"config", "-c --config", "TOML", "", "a pipeline from a file, instead of -m -e -r --stages"},
    {"stages", "--stages", "A->B->C", "lorenzo->bitshuffle->rze",
     "lorenzo, quantizer, bitshuffle, rze, diff, rle, huffman, none"},
    {"type", "-t --type --dtype", "TYPE", "f32", "f32 or f64; i32 and i64 with -c"},
    {"mode", "-m --mode", "MODE", "rel", "kind of bound: rel, abs or noa"},
    {"error-bound", "-e --error-bound --eb", "E", "1e-3", "the bound"},
    {"radius", "-r --radius", "N", "32768", "quantisation radius"},
    {"dims", "-l --len --dims --xyz", "XxYxZ", "one axis",
     "extents, fastest first, up to three, separated by x X - or *"},
    {"chunk-size", "--chunk-size", "BYTES", "16384",
     "chunks of diff and rze, blocks of bitshuffle"},
    {"rze-levels", "--rze-levels", "N", "4", "levels of rze"},
    {"report", "-R --report", "", "", "print figures"},
    {"compare", "--compare --origin", "PATH", "", "the original, to compare the result with"},
    {"runs", "--runs", "N", "10", "runs of the benchmark"},
    {"strategy", "--strategy", "NAME", "preallocate", "memory: minimal or preallocate"},
    {"pool-mult", "--pool-mult", "X", "3.0", "size of the memory pool, times the input"},
    {"warmup", "--warmup", "", "", "run once before timing"},
    {"profile", "--profile", "", "", "print the time of each stage"},
};

[[noreturn]] void fail(const std::string& message) {
  throw Failure(ExitCode::kUsage, message);
}

/// Long names: underscores are dashes, and case does not count. Short ones stay as they are.
std::string normal(std::string_view name) {
  std::string out(name);
  if (!name.starts_with("--")) {
    return out;
  }
  for (char& c : out) {
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::vector<std::string> spellingsOf(const OptionRow& row) {
  std::vector<std::string> words;
  std::string_view rest = row.spellings;
  while (!rest.empty()) {
    const std::size_t cut = std::min(rest.find(' '), rest.size());
    words.emplace_back(rest.substr(0, cut));
    rest.remove_prefix(std::min(cut + 1, rest.size()));
  }
  return words;
}

const OptionRow& rowOf(const std::string& word) {
  std::vector<std::string> all;
  for (const OptionRow& row : kRows) {
    for (const std::string& spelling : spellingsOf(row)) {
      if (spelling == normal(word)) {
        return row;
      }
      all.push_back(spelling);
    }
  }
  const std::string hint = didYouMean(word, all);
  fail(fmt::format("unknown option '{}'{}", word, hint));
}

/// Values by key, the last one counts; switches have "true".
using Given = std::map<std::string_view, std::string>;

Given readWords(const std::vector<std::string>& words) {
  Given given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-') || word == "-") {
      fail(fmt::format("unexpected argument '{}'; inputs are named with -i", word));
    }
    const std::size_t equals = word.find('=');
    const OptionRow& row = rowOf(word.substr(0, equals));
    std::optional<std::string> value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    }
    if (row.value.empty()) {
      if (value && *value != "true" && *value != "1") {
        fail(fmt::format("option '{}' is a switch; its value '{}' is neither true nor 1", word,
                         *value));
      }
      given[row.key] = "true";
      continue;
    }
    if (!value) {
      if (i + 1 == words.size()) {
        fail(fmt::format("option '{}' needs a value: {}", word, row.value));
      }
      value = words[++i];
    }
    if (value->empty()) {
      fail(fmt::format("option '{}' needs a value: {}", word, row.value));
    }
    given[row.key] = *value;
  }
  return given;
}

template <class T>
T number(const Given& given, std::string_view key, T usual) {
  const auto found = given.find(key);
  if (found == given.end()) {
    return usual;
  }
  const std::string& text = found->second;
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value > T{0}) ||
      !std::isfinite(static_cast<double>(value))) {
    fail(fmt::format("invalid number '{}' for --{}: it must be above 0", text, key));
  }
  return value;
}

std::string text(const Given& given, std::string_view key, const std::string& usual = "") {
  const auto found = given.find(key);
  return found == given.end() ? usual : found->second;
}

template <class T>
T choice(const Given& given,
         std::string_view key,
         T usual,
         const std::vector<std::pair<std::string, T>>& choices) {
  const auto found = given.find(key);
  if (found == given.end()) {
    return usual;
  }
  std::vector<std::string> names;
  std::string listed;
  for (const auto& [name, value] : choices) {
    if (normal("--" + found->second) == "--" + name) {
      return value;
    }
    names.push_back(name);
    listed += (listed.empty() ? "" : ", ") + name;
  }
  fail(fmt::format("invalid value '{}' for --{}: choose from {}{}", found->second, key, listed,
                   didYouMean(found->second, names)));
}

/// Any of the separators, fastest first.
std::array<std::size_t, 3> parseExtents(std::string text) {
  for (char& c : text) {
    c = c == 'X' || c == '-' || c == '*' ? 'x' : c;
  }
  return parseDims(text);
}

void checkMode(const Options& options) {
  if (options.mode == Mode::kNone) {
    fail("no mode; use -z to compress, -x to decompress or -b to benchmark");
  }
  if (options.input.empty()) {
    fail("no input; name it with -i");
  }
  if (options.mode == Mode::kDecompress && options.output.empty() && !options.report &&
      options.compare.empty()) {
    fail("decompression needs an output; name it with -o, or use --report or --compare");
  }
}

}  // namespace

std::span<const OptionRow> optionRows() {
  return kRows;
}

Options parseOptions(const std::vector<std::string>& words) {
  const Given given = readWords(words);
  Options options;
  const auto has = [&](std::string_view key) { return given.count(key) != 0; };
  options.help = has("help");
  if (options.help) {
    return options;
  }
  options.mode = has("benchmark")    ? Mode::kBenchmark
                 : has("decompress") ? Mode::kDecompress
                 : has("compress")   ? Mode::kCompress
                                     : Mode::kNone;
  options.input = text(given, "input");
  options.output = text(given, "output");
  options.config = text(given, "config");
  options.stages = text(given, "stages", options.stages);
  options.type = choice<DataType>(given, "type", options.type,
                                  {{"f32", DataType::FLOAT32},
                                   {"f64", DataType::FLOAT64},
                                   {"i32", DataType::INT32},
                                   {"i64", DataType::INT64}});
  options.bound_mode = choice<ErrorBoundMode>(
      given, "mode", options.bound_mode,
      {{"rel", ErrorBoundMode::REL}, {"abs", ErrorBoundMode::ABS}, {"noa", ErrorBoundMode::NOA}});
  options.error_bound = number(given, "error-bound", options.error_bound);
  options.radius = number(given, "radius", options.radius);
  if (has("dims")) {
    options.dims = parseExtents(given.at("dims"));
  }
  options.chunk_bytes = number(given, "chunk-size", options.chunk_bytes);
  options.rze_levels = number(given, "rze-levels", options.rze_levels);
  options.report = has("report");
  options.compare = text(given, "compare");
  options.runs = number(given, "runs", options.runs);
  options.strategy = choice<MemoryStrategy>(
      given, "strategy", options.strategy,
      {{"minimal", MemoryStrategy::MINIMAL}, {"preallocate", MemoryStrategy::PREALLOCATE}});
  options.pool_multiplier = number(given, "pool-mult", options.pool_multiplier);
  options.warmup = has("warmup");
  options.profile = has("profile");
  for (const std::string_view key :
       {"mode", "error-bound", "radius", "stages", "chunk-size", "rze-levels"}) {
    if (has("config") && has(key)) {
      options.unused_with_config.push_back(fmt::format("--{}", key));
    }
  }
  checkMode(options);
  return options;
}

std::string usageText() {
  std::string text =
      "Usage: fzgmod-cli (-z | -x | -b) -i INPUT [-o OUTPUT] [options]\n"
      "\n"
      "The command line of FZGPUModules, run by fz; 'fz --help' has the other one.\n"
      "Long names may have underscores for dashes and any case; --key=value works too.\n"
      "\n"
      "Options:\n";
  for (const OptionRow& row : kRows) {
    std::string head;
    for (const std::string& spelling : spellingsOf(row)) {
      head += (head.empty() ? "" : ", ") + spelling;
    }
    head += row.value.empty() ? "" : fmt::format(" {}", row.value);
    text += fmt::format("  {:<34}{}{}\n", head, row.help,
                        row.usual.empty() ? "" : fmt::format(" [{}]", row.usual));
  }
  return text +
         "\nExamples:\n"
         "  fzgmod-cli -z -i field.f32 -l 3600x1800 -m noa -e 1e-3 -R\n"
         "  fzgmod-cli -x -i field.f32.fzm -o back.f32 --compare field.f32 -R\n"
         "  fzgmod-cli -b -i field.f32 --stages 'lorenzo->huffman' -r 512 --runs 5\n"
         "\nExit codes: 0 done, 1 any error.\n";
}

}  // namespace fz::cli::compat
