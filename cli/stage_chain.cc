// Choosing the element types of a chain and what follows from them.
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <optional>

#include "fz/error.h"
#include "fz/stage_descriptor.h"
#include "fz/stage_types.h"
#include "stage/stage.h"
#include "stage_spec.h"
#include "stage_words.h"

namespace fz::cli {

namespace {

using Types = std::vector<DataType>;

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
      wanted_.push_back(resolveWords(text_, spec));
    }
    placed_.resize(wanted_.size());
    if (!place(0, input_type_)) {
      failTypes();
    }
    return finished();
  }

 private:
  /// Places stage i and all that follow; false when no types fit.
  bool place(std::size_t i, DataType incoming) {
    if (i == wanted_.size()) {
      return true;
    }
    for (const Types& types : candidateTypes(wanted_[i].stage(), wanted_[i].types, incoming)) {
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
    const WantedStage& wanted = wanted_[i];
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
      constexpr std::int64_t kMaxSymbols = 65536;
      choose("bklen", fmt::format("{}", std::min(kMaxSymbols, 2 * *radius)));
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

  [[noreturn]] void fail(std::size_t place, const std::string& what) const {
    failStages(text_, place, what);
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
  std::vector<WantedStage> wanted_;
  std::vector<Placed> placed_;
  std::size_t stuck_ = 0;
};

}  // namespace

std::vector<BuiltStage> buildStages(std::string_view text, DataType input_type) {
  return Chain(text, input_type).build();
}

}  // namespace fz::cli
