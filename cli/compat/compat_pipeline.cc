#include "compat/compat_pipeline.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "failure.h"
#include "suggest.h"

namespace fz::cli::compat {

namespace {

std::vector<std::string> splitArrows(std::string_view text) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t arrow = text.find("->");
    std::string word(text.substr(0, arrow));
    std::erase_if(word, [](unsigned char c) { return std::isspace(c) != 0; });
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    words.push_back(std::move(word));
    if (arrow == std::string_view::npos) {
      return words;
    }
    text.remove_prefix(arrow + 2);
  }
}

/// What the stage before leaves: values, 16-bit codes, or bytes.
enum class Carries { kValues, kCodes, kBytes };

class Writer {
 public:
  explicit Writer(const Options& options) : options_(options) {}

  void add(const std::string& word) {
    if (word == "lorenzo" || word == "quantizer") {
      addCodes(word);
    } else if (word == "bitshuffle" || word == "bshuf") {
      const std::size_t width = carries_ == Carries::kCodes ? 2 : getDataTypeSize(options_.type);
      stage("Bitshuffle",
            fmt::format("block_size = {}\nelement_width = {}\n", options_.chunk_bytes, width));
      carries_ = Carries::kBytes;
    } else if (word == "rze") {
      stage("RZE", fmt::format("chunk_size = {}\nlevels = {}\n", options_.chunk_bytes,
                               options_.rze_levels));
      carries_ = Carries::kBytes;
    } else if (word == "diff" || word == "difference") {
      stage("Difference",
            fmt::format("input_type = \"uint16\"\nchunk_size = {}\n", options_.chunk_bytes));
    } else if (word == "rle") {
      stage("RLE", "data_type = \"uint16\"\n");
      carries_ = Carries::kBytes;
    } else if (word == "huffman" || word == "huf") {
      constexpr std::size_t kUsualSymbols = 1024;
      stage("Huffman",
            fmt::format("input_type = \"uint16\"\nbklen = {}\n",
                        carries_ == Carries::kCodes ? 2 * options_.radius : kUsualSymbols));
      carries_ = Carries::kBytes;
    } else if (word != "none") {
      throw Failure(
          ExitCode::kUsage,
          fmt::format("unknown stage '{}'{}", word.empty() ? "(nothing)" : word,
                      didYouMean(word, {"lorenzo", "quantizer", "bitshuffle", "rze", "diff",
                                        "difference", "rle", "huffman", "none"})));
    }
  }

  std::string toml() const {
    if (toml_.empty()) {
      throw Failure(ExitCode::kUsage, "the list of stages is empty");
    }
    return toml_;
  }

 private:
  void addCodes(const std::string& word) {
    const bool is_lorenzo = word == "lorenzo";
    const std::string_view mode = errorBoundModeName(options_.bound_mode);
    stage(is_lorenzo ? "LorenzoQuant" : "Quantizer",
          fmt::format("input_type = \"{}\"\ncode_type = \"uint16\"\nerror_bound = {}\n"
                      "error_bound_mode = \"{}\"\nquant_radius = {}\noutlier_capacity = {}\n"
                      "zigzag_codes = true\n",
                      dataTypeToString(options_.type), fmt::format("{:#}", options_.error_bound),
                      mode, options_.radius, is_lorenzo ? "0.1" : "0.05"));
    carries_ = Carries::kCodes;
    port_ = "codes";
  }

  void stage(const char* type, const std::string& settings) {
    // --profile shows these names.
    const auto n_same = std::count(types_.begin(), types_.end(), type);
    const std::string name = n_same == 0 ? type : fmt::format("{}_{}", type, n_same + 1);
    toml_ += fmt::format("[[stage]]\nname = \"{}\"\ntype = \"{}\"\n{}", name, type, settings);
    if (!types_.empty()) {
      toml_ += fmt::format("inputs = [{{ from = \"{}\", port = \"{}\" }}]\n", last_name_, port_);
    }
    toml_ += "\n";
    types_.emplace_back(type);
    last_name_ = name;
    port_ = "output";
  }

  const Options& options_;
  std::string toml_;
  std::string port_ = "output";
  std::vector<std::string> types_;  // of the stages so far
  std::string last_name_;
  Carries carries_ = Carries::kValues;
};

}  // namespace

std::string stagesToToml(const Options& options) {
  if (!isFloat(options.type)) {
    throw Failure(ExitCode::kUsage,
                  "--stages takes f32 and f64 only; give other types a pipeline with -c");
  }
  Writer writer(options);
  for (const std::string& word : splitArrows(options.stages)) {
    writer.add(word);
  }
  return writer.toml();
}

}  // namespace fz::cli::compat
