#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>

#include "support/stage_case.h"

// docs/stages.md is made from the descriptors; FZ_UPDATE_DOCS=1 writes it anew.

namespace fz::test {
namespace {

std::string rangeOf(const Param& param) {
  std::ostringstream out;
  if (!param.choices.empty()) {
    for (std::size_t i = 0; i < param.choices.size(); ++i) {
      out << (i == 0 ? "" : ", ") << param.choices[i];
    }
  } else if (param.kind == ParamKind::kBool) {
    out << "true, false";
  } else if (param.kind == ParamKind::kText) {
    out << "text";
  } else {
    const auto number = [&](double v) {
      param.kind == ParamKind::kInt ? out << static_cast<std::int64_t>(v) : out << v;
    };
    number(param.min);
    out << " to ";
    number(param.max);
  }
  return out.str();
}

void describe(const StageDescriptor& d, std::ostream& out) {
  out << "\n## " << d.name << "\n\n"
      << "Id " << d.id << ", " << d.category << ": " << d.summary << ".\n\n";
  if (!d.type_keys.empty()) {
    out << "Types (";
    for (std::size_t i = 0; i < d.type_keys.size(); ++i) {
      out << (i == 0 ? "" : ", ") << "`" << d.type_keys[i].key << "`";
    }
    out << "): ";
    for (std::size_t i = 0; i < d.type_combinations.size(); ++i) {
      out << (i == 0 ? "" : "; ");
      for (std::size_t k = 0; k < d.type_combinations[i].size(); ++k) {
        out << (k == 0 ? "" : "/") << dataTypeToString(d.type_combinations[i][k]);
      }
    }
    out << ". In a file without them: ";
    const std::vector<DataType> types = defaultTypes(d);
    for (std::size_t i = 0; i < types.size(); ++i) {
      out << (i == 0 ? "" : "/") << dataTypeToString(types[i]);
    }
    out << ".\n\n";
  }
  out << "Output ports: ";
  const std::vector<std::string> ports = defaultPorts(d);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    out << (i == 0 ? "" : ", ") << "`" << ports[i] << "`";
  }
  out << ".\n\n";
  if (d.params().rows().empty()) {
    out << "No settings.\n";
    return;
  }
  out << "| key | default | in a file | allowed | what it does |\n|---|---|---|---|---|\n";
  for (const Param& param : d.params().rows()) {
    out << "| `" << param.key << "` | " << toTomlText(param.default_value) << " | "
        << toTomlText(param.config_default.value_or(param.default_value)) << " | " << rangeOf(param)
        << " | " << param.help << " |\n";
  }
}

/// The first line that two texts do not share.
std::string firstDifference(const std::string& committed, const std::string& made) {
  std::istringstream old_lines(committed);
  std::istringstream new_lines(made);
  std::string old_line;
  std::string new_line;
  for (int number = 1;; ++number) {
    const bool has_old = static_cast<bool>(std::getline(old_lines, old_line));
    const bool has_new = static_cast<bool>(std::getline(new_lines, new_line));
    if ((!has_old && !has_new) || has_old != has_new || old_line != new_line) {
      return "line " + std::to_string(number) + " is\n    " + (has_old ? old_line : "(no line)") +
             "\nand should be\n    " + (has_new ? new_line : "(no line)") + "\n";
    }
  }
}

TEST(Docs, StagePageIsWhatTheDescriptorsSay) {
  std::ostringstream page;
  page
      << "# Stages\n\nMade from the stage descriptors; a test keeps it true. \"default\" is what a "
         "new C++ object has, \"in a file\"\nwhat a configuration file means when it leaves the key "
         "out. Ports are those of a new object; settings can leave some out. The bytes of each "
         "stage are in its SPEC.md.\n";
  for (const StageDescriptor* d : allStages()) {
    describe(*d, page);
  }
  const std::string path = FZ_SOURCE_DIR "/docs/stages.md";
  if (std::getenv("FZ_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << page.str();
  }
  std::ifstream in(path);
  const std::string committed((std::istreambuf_iterator<char>(in)),
                              std::istreambuf_iterator<char>());
  EXPECT_TRUE(committed == page.str())
      << firstDifference(committed, page.str())
      << "docs/stages.md is not what the descriptors say; write it anew and commit it:\n"
      << "    FZ_UPDATE_DOCS=1 build/cpu/bin/fz_stage_tests --gtest_filter='Docs.*'";
}

}  // namespace
}  // namespace fz::test
