#include "stage_spec.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "failure.h"
#include "fz/stage_descriptor.h"
#include "suggest.h"

namespace fz::cli {

namespace {

bool isWordPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '_' && c != '-') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<StageSpec> parse() {
    std::vector<StageSpec> stages;
    do {
      stages.push_back(stage());
    } while (takeArrow());
    if (at_ != text_.size()) {
      fail(fmt::format("'{}' where '->' or the end was expected", rest()));
    }
    return stages;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { failAt(at_ + 1, what); }
  [[noreturn]] void failAt(std::size_t place, const std::string& what) const {
    throw Failure(ExitCode::kUsage,
                  fmt::format("--stages '{}': character {}: {}", text_, place, what));
  }

  std::string rest() const {
    constexpr std::size_t kMax = 12;
    return std::string(text_.substr(at_, kMax)) + (text_.size() - at_ > kMax ? "..." : "");
  }

  void skipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }

  bool take(char c) {
    skipSpace();
    const bool is_there = at_ < text_.size() && text_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }

  bool takeArrow() {
    skipSpace();
    const bool is_there = text_.substr(at_, 2) == "->";
    at_ += is_there ? 2 : 0;
    return is_there;
  }

  std::string word() {
    skipSpace();
    std::string out;
    while (at_ < text_.size() && isWordPart(text_[at_]) && text_.substr(at_, 2) != "->") {
      out += text_[at_++];
    }
    return out;
  }

  StageSpec stage() {
    StageSpec spec;
    skipSpace();
    spec.place = at_ + 1;
    spec.word = word();
    if (spec.word.empty()) {
      fail(at_ == text_.size() ? "a stage is missing; 'fz stages' lists them"
                               : fmt::format("'{}' where a stage was expected", rest()));
    }
    spec.stage = findStageLoosely(spec.word);
    if (spec.stage == nullptr) {
      std::vector<std::string> names;
      for (const StageDescriptor* known : allStages()) {
        names.push_back(snakeName(known->name));
      }
      const std::string hint = didYouMean(spec.word, names);
      failAt(spec.place, fmt::format("no stage '{}'{}", spec.word,
                                     hint.empty() ? "; 'fz stages' lists them" : hint));
    }
    if (take('(') && !take(')')) {
      do {
        spec.arguments.push_back(argument());
      } while (take(','));
      if (!take(')')) {
        fail(at_ == text_.size() ? fmt::format("the bracket of '{}' is not closed", spec.word)
                                 : fmt::format("'{}' where ',' or ')' was expected", rest()));
      }
    }
    return spec;
  }

  StageArgument argument() {
    skipSpace();
    StageArgument argument;
    argument.place = at_ + 1;
    std::string first = word();
    if (first.empty()) {
      fail("a setting is missing, as in block_size=32");
    }
    if (!take('=')) {
      argument.value = std::move(first);
      return argument;
    }
    argument.key = std::move(first);
    skipSpace();
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') {
      argument.value += text_[at_++];
    }
    while (!argument.value.empty() &&
           std::isspace(static_cast<unsigned char>(argument.value.back())) != 0) {
      argument.value.pop_back();
    }
    if (argument.value.empty()) {
      fail(fmt::format("the value of '{}' is missing", argument.key));
    }
    return argument;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const StageDescriptor* findStageLoosely(std::string_view word) {
  const std::string wanted = folded(word);
  for (const StageDescriptor* stage : allStages()) {
    if (folded(stage->name) == wanted ||
        std::any_of(stage->aliases.begin(), stage->aliases.end(),
                    [&](std::string_view alias) { return folded(alias) == wanted; })) {
      return stage;
    }
  }
  return nullptr;
}

std::string snakeName(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool begins_word =
        i > 0 && std::isupper(c) != 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    out += begins_word ? "_" : "";
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

std::vector<StageSpec> parseStages(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace fz::cli
