// What the words in the brackets of --stages stand for.
#include "stage_words.h"

#include <cctype>
#include <fmt/format.h>

#include "failure.h"
#include "fz/stage_descriptor.h"
#include "suggest.h"

namespace fz::cli {

namespace {

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  WantedStage resolve(const StageSpec& spec) const {
    const StageDescriptor& stage = *spec.stage;
    WantedStage wanted{&spec, std::vector<std::optional<DataType>>(stage.type_keys.size()), {}};
    for (const StageArgument& argument : spec.arguments) {
      if (argument.key.empty()) {
        resolveWord(stage, argument, wanted);
        continue;
      }
      const auto key = std::find_if(stage.type_keys.begin(), stage.type_keys.end(),
                                    [&](const TypeKey& k) { return k.key == argument.key; });
      if (key != stage.type_keys.end()) {
        const std::optional<DataType> type = dataTypeFromString(argument.value);
        if (!type) {
          fail(argument.place, fmt::format("'{}' is not an element type", argument.value));
        }
        wanted.types[static_cast<std::size_t>(key - stage.type_keys.begin())] = type;
        continue;
      }
      if (stage.params().find(argument.key) == nullptr) {
        failUnknown(stage, argument,
                    fmt::format("{} has no setting '{}'", stage.name, argument.key), argument.key);
      }
      wanted.settings.push_back(argument);
    }
    return wanted;
  }

 private:
  [[noreturn]] void fail(std::size_t place, const std::string& what) const {
    failStages(text_, place, what);
  }

  [[noreturn]] void failUnknown(const StageDescriptor& stage,
                                const StageArgument& argument,
                                const std::string& what,
                                const std::string& word) const {
    const std::string hint = hintFor(stage, word);
    fail(argument.place,
         fmt::format("{}{}{} its settings: {}", what, hint, afterHint(hint), keysOf(stage)));
  }

  static std::string keysOf(const StageDescriptor& stage) {
    std::string text;
    for (const Param& param : stage.params().rows()) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", param.key);
    }
    for (const TypeKey& key : stage.type_keys) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", key.key);
    }
    return text.empty() ? "none" : text;
  }

  static std::vector<std::string> wordsOf(const StageDescriptor& stage) {
    std::vector<std::string> words;
    for (const Param& param : stage.params().rows()) {
      words.emplace_back(param.key);
      words.insert(words.end(), param.choices.begin(), param.choices.end());
    }
    for (const TypeKey& key : stage.type_keys) {
      words.emplace_back(key.key);
    }
    return words;
  }

  /// A part of a key is as good a guess as a misspelt one: radius for quant_radius.
  static std::string hintFor(const StageDescriptor& stage, const std::string& word) {
    const std::vector<std::string> words = wordsOf(stage);
    const auto whole = std::find_if(words.begin(), words.end(), [&](const std::string& key) {
      return word.size() > 2 && key.find(word) != std::string::npos;
    });
    return whole != words.end() ? fmt::format("; did you mean '{}'?", *whole)
                                : didYouMean(word, words);
  }

  /// The setting that a bare word stands for.
  std::optional<StageArgument> meaningOf(const StageDescriptor& stage,
                                         const StageArgument& word) const {
    std::vector<StageArgument> found;
    for (const Param& param : stage.params().rows()) {
      const bool is_switch = param.kind == ParamKind::kBool &&
                             (param.key == word.value || param.key.starts_with(word.value + "_"));
      if (is_switch) {
        found.push_back({std::string(param.key), "true", word.place});
      }
      for (const std::string_view choice : param.choices) {
        if (param.kind == ParamKind::kChoice && closestIs(choice, word.value)) {
          found.push_back({std::string(param.key), std::string(choice), word.place});
        }
      }
    }
    if (found.size() > 1) {
      fail(word.place, fmt::format("'{}' may mean {} or {}; write KEY=VALUE", word.value,
                                   found[0].key, found[1].key));
    }
    return found.empty() ? std::nullopt : std::optional(found.front());
  }

  static bool closestIs(std::string_view choice, std::string_view word) {
    return std::equal(choice.begin(), choice.end(), word.begin(), word.end(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) ==
             std::tolower(static_cast<unsigned char>(b));
    });
  }

  void resolveWord(const StageDescriptor& stage,
                   const StageArgument& argument,
                   WantedStage& wanted) const {
    if (const std::optional<DataType> type = dataTypeFromString(argument.value);
        type && stage.type_keys.size() == 1) {
      wanted.types.front() = type;
      return;
    }
    const std::optional<StageArgument> meaning = meaningOf(stage, argument);
    if (!meaning) {
      failUnknown(
          stage, argument,
          fmt::format("'{}' is neither a switch nor a choice of {}", argument.value, stage.name),
          argument.value);
    }
    wanted.settings.push_back(*meaning);
  }

  std::string_view text_;
};

}  // namespace

WantedStage resolveWords(std::string_view text, const StageSpec& spec) {
  return Words(text).resolve(spec);
}

void failStages(std::string_view text, std::size_t place, const std::string& what) {
  throw Failure(ExitCode::kUsage,
                fmt::format("--stages '{}': character {}: {}", text, place, what));
}

}  // namespace fz::cli
