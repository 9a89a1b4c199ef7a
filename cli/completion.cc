// Completions for bash, zsh and fish.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "fz/stage_descriptor.h"
#include "manual.h"
#include "pipeline_options.h"

namespace fz::cli {

namespace {

std::vector<const CLI::App*> commandsOf(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> namesOf(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  return names;
}

/// Words that an option takes; empty when any text or a file may follow.
std::string valuesOf(const CLI::App& app, const std::string& option) {
  std::string words;
  const auto add = [&](std::string_view word) {
    words += fmt::format("{}{}", words.empty() ? "" : " ", word);
  };
  if (option == "--backend") {
    return "auto cpu cuda";
  }
  if (option == "--progress") {
    return "auto always never";
  }
  if (option == "--type" || option == "-t") {
    return "f32 f64";
  }
  if (option == "--preset" || option == "-p" || option == "--show") {
    for (const std::string& name : presetNames()) {
      add(name);
    }
    if (app.get_name() == "bench") {
      add("all");
    }
  } else if (option == "--bound" || option == "-b") {
    return app.get_name() == "verify" ? "abs: rel: range:"
                                      : "abs: rel: range: psnr: ratio: lossless";
  } else if (option.empty() && app.get_name() == "presets") {
    for (const std::string& name : presetNames()) {
      add(name);
    }
  } else if (option.empty() && app.get_name() == "stages") {
    for (const StageDescriptor* stage : allStages()) {
      add(stage->name);
    }
  } else if (option.empty() && app.get_name() == "generate") {
    return "bash zsh fish man fzgmod-man";
  }
  return words;
}

bool takesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// For zsh's _arguments: brackets, colons and quotes have meanings there.
std::string zshText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') {
      out += '\\';
    }
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

/// In single quotes, where only a backslash and the quote itself have a meaning.
std::string fishText(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "'";
}

}  // namespace

std::string bashCompletion(const CLI::App& root) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : commandsOf(root)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string words;
    std::string values;
    for (const CLI::Option* option : command->get_options()) {
      std::string pattern;
      for (const std::string& name : namesOf(*option)) {
        words += (words.empty() ? "" : " ") + name;
        pattern += (pattern.empty() ? "" : "|") + name;
      }
      const std::string known = pattern.empty() ? "" : valuesOf(*command, namesOf(*option).back());
      if (!known.empty() && takesValue(*option)) {
        values += fmt::format("        {}) words='{}'; plain=1 ;;\n", pattern, known);
      } else if (!pattern.empty() && takesValue(*option)) {
        values += fmt::format("        {}) return ;;\n", pattern);
      }
    }
    cases += fmt::format(
        "    {})\n      options='{}'\n      positionals='{}'\n      case $previous in\n{}        *) ;;\n"
        "      esac\n      ;;\n",
        command->get_name(), words, valuesOf(*command, ""), values);
  }
  return fmt::format(R"(# bash completion of fz, printed by 'fz generate bash'.
_fz() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local options= words= positionals= plain=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}    *) return ;;
  esac
  if [ -n "$plain" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [ "${{current#-}}" != "$current" ]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ -n "$positionals" ]; then
    COMPREPLY=($(compgen -W "$positionals" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o default -F _fz fz
)",
                     names, cases);
}

std::string zshCompletion(const CLI::App& root) {
  std::string names;
  std::string cases;
  for (const CLI::App* command : commandsOf(root)) {
    names += fmt::format("    '{}:{}'\n", command->get_name(), zshText(command->get_description()));
    std::string lines;
    for (const CLI::Option* option : command->get_options()) {
      const std::vector<std::string> spellings = namesOf(*option);
      std::string all;
      for (const std::string& name : spellings) {
        all += (all.empty() ? "" : " ") + name;
      }
      for (const std::string& name : spellings) {
        const std::string known = valuesOf(*command, spellings.back());
        std::string value;
        if (takesValue(*option)) {
          value = fmt::format(":{}:{}", zshText(option->get_type_name()),
                              known.empty() ? "_files" : fmt::format("({})", zshText(known)));
        }
        lines += fmt::format("        '({}){}[{}]{}' \\\n", all, name,
                             zshText(option->get_description()), value);
      }
    }
    const std::string known = valuesOf(*command, "");
    lines += fmt::format("        '*:{}:{}'\n", known.empty() ? "file" : "name",
                         known.empty() ? "_files" : fmt::format("({})", known));
    cases +=
        fmt::format("    {})\n      _arguments -s \\\n{}      ;;\n", command->get_name(), lines);
  }
  return fmt::format(R"(#compdef fz
# zsh completion of fz, printed by 'fz generate zsh'.
_fz() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=${{words[2]}}
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_fz "$@"
)",
                     names, cases);
}

std::string fishCompletion(const CLI::App& root) {
  std::string lines;
  for (const CLI::App* command : commandsOf(root)) {
    const std::string& name = command->get_name();
    lines += fmt::format("complete -c fz -n __fish_use_subcommand -f -a {} -d {}\n", name,
                         fishText(command->get_description()));
    const std::string here =
        fmt::format("complete -c fz -n '__fish_seen_subcommand_from {}'", name);
    for (const CLI::Option* option : command->get_options()) {
      std::string spellings;
      for (const std::string& letter : option->get_snames()) {
        spellings += " -s " + letter;
      }
      for (const std::string& word : option->get_lnames()) {
        spellings += " -l " + word;
      }
      if (spellings.empty()) {
        continue;
      }
      const std::string known = valuesOf(*command, namesOf(*option).back());
      const std::string value = !takesValue(*option) ? ""
                                : known.empty()      ? " -r"
                                                     : fmt::format(" -x -a {}", fishText(known));
      lines += fmt::format("{}{}{} -d {}\n", here, spellings, value,
                           fishText(option->get_description()));
    }
    if (const std::string known = valuesOf(*command, ""); !known.empty()) {
      lines += fmt::format("{} -f -a {}\n", here, fishText(known));
    }
  }
  return fmt::format("# fish completion of fz, printed by 'fz generate fish'.\n{}", lines);
}

}  // namespace fz::cli
