#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fz/data_type.h"
#include "fz/presets.h"

/// Chains of stages that run as one, beside the presets.
namespace fz::test {

struct FusionChain {
  std::string name;
  std::string toml;
  bool is_fused_in_1d = true;  ///< all of its stages, given data without dims
  bool takes_f64 = true;
};

namespace detail {

inline std::string quantizer(std::string_view code_type, std::string_view settings) {
  return "[[stage]]\nname = \"q\"\ntype = \"Quantizer\"\ninput_type = \"float32\"\ncode_type = \"" +
         std::string(code_type) + "\"\n" + std::string(settings) + "\n";
}

inline std::string lorenzoQuant(std::string_view settings) {
  return "[[stage]]\nname = \"q\"\ntype = \"LorenzoQuant\"\ninput_type = \"float32\"\n"
         "code_type = \"uint16\"\nerror_bound = 1e-3\n" +
         std::string(settings) + "\n";
}

inline std::string stage(std::string_view name,
                         std::string_view type,
                         std::string_view settings,
                         std::string_view from,
                         bool is_port = false) {
  return "[[stage]]\nname = \"" + std::string(name) + "\"\ntype = \"" + std::string(type) + "\"\n" +
         std::string(settings) + "\ninputs = [{ from = \"" + std::string(from) + "\"" +
         (is_port ? ", port = \"codes\"" : "") + " }]\n";
}

}  // namespace detail

inline std::vector<FusionChain> fusionChains() {
  using namespace detail;  // NOLINT(google-build-using-namespace)
  const std::string linear =
      "error_bound = 1e-3\nerror_bound_mode = \"ABS\"\nlinear_mode = true\nlinear_policy = \"Guarantee\"";
  const std::string wrap =
      "error_bound = 1e-3\nerror_bound_mode = \"NOA\"\nlinear_mode = true\nlinear_policy = \"Wrap\"";
  const std::string lists =
      "error_bound = 1e-3\nerror_bound_mode = \"ABS\"\nquant_radius = 512\noutlier_capacity = 0.01";
  const std::string rel =
      "error_bound = 1e-3\nerror_bound_mode = \"REL\"\nquant_radius = 1073741824";
  const std::string inplace =
      "error_bound = 1e-3\nerror_bound_mode = \"NOA\"\nzigzag_codes = true\ninplace_outliers = true\nquant_radius = 1024";
  const std::string int32 = "data_type = \"int32\"";
  const std::string shuffle4 = "element_width = 4\nblock_size = 16384";
  std::vector<FusionChain> chains;
  for (const Preset& preset : allPresets()) {
    const std::string name(preset.name);
    const bool is_fused = name != "cusz" && name != "quantizer_lorenzo_bitpack" &&
                          name != "lorenzo_bitpack" && name != "best" && name != "auto" &&
                          name != "balanced";
    chains.push_back({name, std::string(preset.toml), is_fused, true});
  }
  chains.push_back(
      {"linear to int16 bit planes",
       quantizer("uint16", wrap) +
           stage("c", "AdaptiveBitpack", "input_type = \"int16\"\nblock_size = 100", "q", true)});
  chains.push_back(
      {"linear, blocks that do not fit each other",
       quantizer("uint32", linear) + stage("d", "Lorenzo", int32 + "\nblock_size = 48", "q", true) +
           stage("c", "AdaptiveBitpack", "input_type = \"int32\"\nblock_size = 7", "d")});
  chains.push_back(
      {"tiles of an odd shape",
       quantizer("uint32", linear) +
           stage("d", "TiledLorenzo", int32 + "\ntile_x = 5\ntile_y = 3\ntile_z = 2", "q", true) +
           stage("c", "AdaptiveBitpack", "input_type = \"int32\"\noutlier_selection = true", "d")});
  chains.push_back({"in place to bytes",
                    quantizer("uint32", inplace) + stage("s", "Bitshuffle", shuffle4, "q", true) +
                        stage("c", "RZE", "chunk_size = 4096\nlevels = 2", "s"),
                    true, false});
  chains.push_back({"lists to bytes", quantizer("uint16", lists) +
                                          stage("s", "Bitshuffle", "element_width = 2", "q", true) +
                                          stage("c", "RZE", "levels = 3", "s")});
  chains.push_back({"lists to planes", quantizer("uint16", lists + "\nzigzag_codes = true") +
                                           stage("c", "BitplaneRZE", "", "q", true)});
  chains.push_back({"mask, lists to bytes",
                    "[[stage]]\nname = \"m\"\ntype = \"Mask\"\ninput_type = \"float32\"\n" +
                        stage("q", "Quantizer",
                              "input_type = \"float32\"\ncode_type = \"uint32\"\n" + lists, "m") +
                        stage("s", "Bitshuffle", shuffle4, "q", true) +
                        stage("c", "RZE", "levels = 3", "s"),
                    true, false});
  chains.push_back(
      {"relative, one stage less", quantizer("uint32", rel) + stage("c", "RZE", "", "q", true)});
  chains.push_back(
      {"prediction to bytes",
       lorenzoQuant("zigzag_codes = true\nquant_radius = 64") +
           stage("s", "Bitshuffle", "element_width = 2\nblock_size = 4096", "q", true) +
           stage("c", "RZE", "", "s")});
  chains.push_back(
      {"maps",
       quantizer("uint32", linear) +
           stage("z", "Zigzag", "input_type = \"int32\"\noutput_type = \"uint32\"", "q", true) +
           stage("s", "Bitshuffle", shuffle4, "z") + stage("c", "RZE", "chunk_size = 8192", "s")});
  chains.push_back(
      {"no coder",
       quantizer("uint32", linear) + stage("d", "TiledLorenzo", int32, "q", true) +
           stage("n", "Negabinary", "input_type = \"int32\"\noutput_type = \"uint32\"", "d")});
  chains.push_back({"no coder, bytes", quantizer("uint32", linear) +
                                           stage("d", "Difference",
                                                 "input_type = \"int32\"\noutput_type = "
                                                 "\"uint32\"\nchunk_size = 4096",
                                                 "q", true) +
                                           stage("s", "Bitshuffle", shuffle4, "d")});
  chains.push_back({"prediction to ANS",
                    lorenzoQuant("quant_radius = 1024") +
                        stage("c", "BlockANS", "input_type = \"uint16\"", "q", true),
                    false, true});
  chains.push_back({"linear differences to ANS",
                    quantizer("uint32", linear) +
                        stage("d", "Lorenzo", int32 + "\naxes = \"xz\"", "q", true) +
                        stage("c", "BlockANS", "input_type = \"int32\"\nchunk = 65536", "d"),
                    false, true});
  return chains;
}

}  // namespace fz::test
