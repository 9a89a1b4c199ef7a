#include "chunk_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "archive/chunk_grid.h"
#include "failure.h"
#include "options.h"

namespace fz::cli {

namespace {

template <class T>
std::optional<T> numberOf(std::string_view text) {
  T value = {};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && stop == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

ValueRange parseRange(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto low = numberOf<double>(text.substr(0, colon));
  const auto high =
      colon == std::string_view::npos ? std::nullopt : numberOf<double>(text.substr(colon + 1));
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || *low > *high) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("--range '{}': write the smallest and the largest value, as in "
                              "--range 250:310",
                              text));
  }
  return {*low, *high};
}

std::vector<std::string_view> splitAt(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (bool more = true; more;) {
    const std::size_t cut = text.find(mark);
    parts.push_back(text.substr(0, cut));
    more = cut != std::string_view::npos;
    text = more ? text.substr(cut + 1) : std::string_view();
  }
  return parts;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  while (text.ends_with(' ')) {
    text.remove_suffix(1);
  }
  return text;
}

[[noreturn]] void failBox(std::string_view text, const std::string& why) {
  throw Failure(ExitCode::kUsage,
                fmt::format("--box '{}': {}; write FIRST:END for each axis, the slowest first, as "
                            "in 0:100,:,20:30",
                            text, why));
}

/// An end of a slice: from behind where negative, and never outside.
std::uint64_t clipped(std::string_view text,
                      std::string_view word,
                      std::uint64_t extent,
                      std::uint64_t otherwise) {
  if (word.empty()) {
    return otherwise;
  }
  const std::optional<std::int64_t> value = numberOf<std::int64_t>(word);
  if (!value) {
    failBox(text, fmt::format("'{}' is no index", word));
  }
  const auto size = static_cast<std::int64_t>(extent);
  const std::int64_t index = *value < 0 ? *value + size : *value;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(index, 0, size));
}

}  // namespace

void addChunk(CLI::App& app, ChunkArguments& arguments) {
  app.add_option("--chunk", arguments.chunk,
                 "chunks of this size (64M) or these extents (512x512x64); none: one frame, in "
                 "memory; else above 256M")
      ->type_name("SIZE");
  app.add_option("--range", arguments.range,
                 "smallest and largest value, for range:E where chunks come from a pipe")
      ->type_name("LO:HI");
}

ChunkChoice parseChunk(const ChunkArguments& arguments) {
  ChunkChoice choice;
  if (!arguments.range.empty()) {
    choice.range = parseRange(arguments.range);
  }
  if (arguments.chunk.empty()) {
    return choice;
  }
  choice.is_given = true;
  if (arguments.chunk == "none") {
    choice.is_none = true;
    return choice;
  }
  if (arguments.chunk.find_first_of("xX") != std::string::npos) {
    choice.extents = parseExtents(arguments.chunk, "--chunk");
    return choice;
  }
  std::string text = arguments.chunk;
  const std::string wrong = toBytes(text);
  choice.n_bytes = wrong.empty() ? *numberOf<std::uint64_t>(text) : 0;
  if (choice.n_bytes == 0) {
    throw Failure(ExitCode::kUsage,
                  fmt::format("--chunk '{}': write a size (64M), extents, x first (512x512x64), or "
                              "none",
                              arguments.chunk));
  }
  return choice;
}

BoxChoice parseBox(std::string_view text, const AxisValues& extents) {
  const std::vector<std::string_view> words = splitAt(text, ',');
  if (words.size() > extents.size()) {
    failBox(text, fmt::format("{} axes, the array has {}", words.size(), extents.size()));
  }
  BoxChoice choice;
  choice.box = {AxisValues(extents.size(), 0), extents};
  std::vector<bool> is_kept(extents.size(), true);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t axis = extents.size() - 1 - i;
    const std::uint64_t extent = extents[axis];
    const std::string_view word = trimmed(words[i]);
    const std::vector<std::string_view> ends = splitAt(word, ':');
    if (ends.size() > 3 || word.empty()) {
      failBox(text, fmt::format("'{}' is no slice", word));
    }
    if (ends.size() == 3 && !trimmed(ends[2]).empty() && trimmed(ends[2]) != "1") {
      failBox(text, "steps other than 1 are not possible");
    }
    if (ends.size() == 1) {
      const std::optional<std::int64_t> value = numberOf<std::int64_t>(word);
      const auto size = static_cast<std::int64_t>(extent);
      const std::int64_t index = !value ? size : *value < 0 ? *value + size : *value;
      if (index < 0 || index >= size) {
        failBox(text, fmt::format("index '{}' of an axis of {}", word, extent));
      }
      choice.box.origin[axis] = static_cast<std::uint64_t>(index);
      choice.box.extents[axis] = 1;
      is_kept[axis] = false;
      continue;
    }
    const std::uint64_t first = clipped(text, trimmed(ends[0]), extent, 0);
    const std::uint64_t end = clipped(text, trimmed(ends[1]), extent, extent);
    choice.box.origin[axis] = first;
    choice.box.extents[axis] = end > first ? end - first : 0;
  }
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (is_kept[axis]) {
      choice.kept_extents.push_back(choice.box.extents[axis]);
    }
  }
  return choice;
}

}  // namespace fz::cli
