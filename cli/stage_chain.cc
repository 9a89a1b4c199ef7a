// Choosing the element types of a chain and what follows from them.
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "failure.h"
#include "fz/error.h"
#include "fz/stage_descriptor.h"
#include "stage/stage.h"
#include "stage_spec.h"
#include "suggest.h"

namespace fz::cli {

namespace {

using Types = std::vector<DataType>;

/// A stage whose words have become keys.
struct Wanted {
  const StageSpec* spec = nullptr;
  std::vector<std::optional<DataType>> types;  // by type key; what was given
  std::vector<StageArgument> settings;

  const StageDescriptor& stage() const { return *spec->stage; }
  bool has(std::string_view key) const {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const StageArgument& a) { return a.key == key; });
  }
};

/// A stage with types that fit, and what it passes on.
struct Placed {
  Types types;
  std::unique_ptr<Stage> made;
  std::vector<std::pair<std::string, std::string>> added;  // keys that were chosen here
};

class Chain {
 public:
  Chain(std::string_view text, DataType input_type) : text_(text), input_type_(input_type) {}

  std::vector<BuiltStage> build() {
    specs_ = parseStages(text_);
    for (const StageSpec& spec : specs_) {
      wanted_.push_back(resolve(spec));
    }
    placed_.resize(wanted_.size());
    if (!place(0, input_type_)) {
      failTypes();
    }
    return finished();
  }

 private:
  [[noreturn]] void fail(std::size_t place, const std::string& what) const {
    throw Failure(ExitCode::kUsage,
                  fmt::format("--stages '{}': character {}: {}", text_, place, what));
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

  Wanted resolve(const StageSpec& spec) const {
    const StageDescriptor& stage = *spec.stage;
    Wanted wanted{&spec, std::vector<std::optional<DataType>>(stage.type_keys.size()), {}};
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
          fail(argument.place, fmt::format("'{}' is no element type", argument.value));
        }
        wanted.types[static_cast<std::size_t>(key - stage.type_keys.begin())] = type;
        continue;
      }
      if (stage.params().find(argument.key) == nullptr) {
        fail(argument.place,
             fmt::format("{} has no setting '{}'{}; its settings: {}", stage.name, argument.key,
                         hintFor(stage, argument.key), keysOf(stage)));
      }
      wanted.settings.push_back(argument);
    }
    return wanted;
  }

  void resolveWord(const StageDescriptor& stage,
                   const StageArgument& argument,
                   Wanted& wanted) const {
    if (const std::optional<DataType> type = dataTypeFromString(argument.value);
        type && stage.type_keys.size() == 1) {
      wanted.types.front() = type;
      return;
    }
    const std::optional<StageArgument> meaning = meaningOf(stage, argument);
    if (!meaning) {
      fail(argument.place,
           fmt::format("'{}' is no switch and no choice of {}{}; its settings: {}", argument.value,
                       stage.name, hintFor(stage, argument.value), keysOf(stage)));
    }
    wanted.settings.push_back(*meaning);
  }

  /// Combinations that were not ruled out, the ones nearest to the defaults first.
  std::vector<Types> candidates(const Wanted& wanted, DataType incoming) const {
    const StageDescriptor& stage = wanted.stage();
    std::vector<Types> found;
    for (const std::vector<DataType>& types : stage.type_combinations) {
      bool fits = true;
      for (std::size_t i = 0; i < types.size(); ++i) {
        fits = fits && (!wanted.types[i] || *wanted.types[i] == types[i]);
      }
      if (fits) {
        found.push_back(types);
      }
    }
    if (stage.type_combinations.empty()) {
      found.emplace_back();
    }
    const Types usual = defaultTypes(stage);
    const auto distance = [&](const Types& types) {
      std::size_t n = !types.empty() && types.front() != incoming ? types.size() : 0;
      for (std::size_t i = 1; i < types.size(); ++i) {
        const bool follows = stage.type_keys[i].default_type == DataType::UNKNOWN;
        n += types[i] != (follows ? types.front() : usual[i]) ? 1 : 0;
      }
      return n;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const Types& a, const Types& b) { return distance(a) < distance(b); });
    return found;
  }

  /// Places stage i and all that follow; false when no types fit.
  bool place(std::size_t i, DataType incoming) {
    if (i == wanted_.size()) {
      return true;
    }
    for (Types& types : candidates(wanted_[i], incoming)) {
      Placed placed = make(i, types, incoming);
      const auto takes = static_cast<DataType>(placed.made->getInputDataType(0));
      if (!areConnectable(incoming, takes)) {
        continue;
      }
      const auto gives = static_cast<DataType>(placed.made->getOutputDataType(0));
      placed_[i] = std::move(placed);
      if (place(i + 1, gives)) {
        return true;
      }
    }
    stuck_ = std::max(stuck_, i);
    return false;
  }

  Placed make(std::size_t i, const Types& types, DataType incoming) {
    const Wanted& wanted = wanted_[i];
    Placed placed{types, wanted.stage().make(types), {}};
    for (const StageArgument& setting : wanted.settings) {
      try {
        setParamFromText(*placed.made, setting.key, setting.value);
      } catch (const InvalidArgument& e) {
        fail(setting.place, e.what());
      }
    }
    const auto choose = [&](std::string_view key, const std::string& value) {
      if (wanted.stage().params().find(key) != nullptr && !wanted.has(key)) {
        setParamFromText(*placed.made, key, value);
        placed.added.emplace_back(key, value);
      }
    };
    if (const Param* linear = wanted.stage().params().find("linear_mode");
        linear != nullptr && std::get<bool>(linear->get(*placed.made))) {
      choose("linear_policy", "Guarantee");  // as in the presets: a finer step rather than an error
    }
    choose("error_bound_mode", "NOA");
    choose("error_bound", "0.001");
    if (isKnown(incoming)) {
      choose("element_width", fmt::format("{}", getDataTypeSize(incoming)));
    }
    if (const std::optional<std::int64_t> radius = radiusBefore(i)) {
      constexpr std::int64_t kMostSymbols = 65536;
      choose("bklen", fmt::format("{}", std::min(kMostSymbols, 2 * *radius)));
    }
    return placed;
  }

  /// Codes of a quantiser lie below twice its radius.
  std::optional<std::int64_t> radiusBefore(std::size_t i) const {
    if (i == 0 || wanted_[i - 1].stage().params().find("quant_radius") == nullptr) {
      return std::nullopt;
    }
    return std::get<std::int64_t>(getParam(*placed_[i - 1].made, "quant_radius"));
  }

  [[noreturn]] void failTypes() const {
    const StageSpec& spec = specs_[stuck_];
    std::string takes;
    for (const std::vector<DataType>& types : spec.stage->type_combinations) {
      const std::string name(dataTypeToString(types.front()));
      if (takes.find(name) == std::string::npos) {
        takes += (takes.empty() ? "" : ", ") + name;
      }
    }
    if (stuck_ == 0) {
      fail(spec.place, fmt::format("{} takes {}, the data are {}; put a quantizer or lorenzo_quant "
                                   "first",
                                   spec.stage->name, takes, dataTypeToString(input_type_)));
    }
    const StageSpec& before = specs_[stuck_ - 1];
    fail(spec.place,
         fmt::format("{} takes {}, and {} before it gives none of them; 'fz stages {}' lists its "
                     "types",
                     spec.stage->name, takes, before.stage->name, before.stage->name));
  }

  std::vector<BuiltStage> finished() {
    std::vector<BuiltStage> built;
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      BuiltStage row;
      row.name = nameFor(built, wanted_[i].spec->word);
      row.stage = &wanted_[i].stage();
      row.types = placed_[i].types;
      row.port = i == 0 ? "" : placed_[i - 1].made->getOutputNames().front();
      for (const StageArgument& setting : wanted_[i].settings) {
        row.settings.emplace_back(setting.key, valueText(i, setting.key));
      }
      for (const auto& [key, value] : placed_[i].added) {
        row.settings.emplace_back(key, valueText(i, key));
        row.chosen.push_back(key);
      }
      built.push_back(std::move(row));
    }
    return built;
  }

  std::string valueText(std::size_t i, std::string_view key) const {
    return toTomlText(getParam(*placed_[i].made, key));
  }

  static std::string nameFor(const std::vector<BuiltStage>& built, const std::string& word) {
    std::size_t n_same = 1;
    for (const BuiltStage& row : built) {
      n_same += row.name == word || row.name.starts_with(word + "_") ? 1 : 0;
    }
    return n_same == 1 ? word : fmt::format("{}_{}", word, n_same);
  }

  std::string_view text_;
  DataType input_type_;
  std::vector<StageSpec> specs_;
  std::vector<Wanted> wanted_;
  std::vector<Placed> placed_;
  std::size_t stuck_ = 0;
};

}  // namespace

std::vector<BuiltStage> buildStages(std::string_view text, DataType input_type) {
  return Chain(text, input_type).build();
}

}  // namespace fz::cli
