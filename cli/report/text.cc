#include "report/text.h"

#include <cmath>
#include <fmt/format.h>

namespace fz::report {

namespace {

/// Bytes of the UTF-8 character that begins here: 0 where none does. Overlong forms, surrogates and
/// numbers above U+10FFFF are none.
std::size_t utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 && first <= 0xdf ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  const unsigned second = byte(1);
  const bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return is_wrong ? 0 : length;
}

}  // namespace

std::string escapeHtml(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t length = utf8Length(text.substr(at));
    if (length != 1) {
      // Names of files are bytes; bytes that are not characters would make the whole page invalid.
      out += length == 0 ? "&#65533;" : text.substr(at, length);
      at += length == 0 ? 0 : length - 1;
      continue;
    }
    const char c = text[at];
    const auto code = static_cast<unsigned char>(c);
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += code < 0x20 || code == 0x7f ? fmt::format("\\x{:02x}", code) : std::string(1, c);
    }
  }
  return out;
}

std::string nameHtml(std::string_view name) {
  return "<bdi class=\"name\">" + escapeHtml(name) + "</bdi>";
}

std::string exactNumber(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "infinite" : "-infinite";
  }
  return fmt::format("{}", value);
}

std::string powerOfTen(int exponent) {
  constexpr std::array<int, 10> kRaised = {8304, 185, 178, 179, 8308, 8309, 8310, 8311, 8312, 8313};
  std::string text = "10";
  for (const char c : fmt::format("{}", exponent)) {
    text += fmt::format("&#{};", c == '-' ? 8315 : kRaised[static_cast<std::size_t>(c - '0')]);
  }
  return text;
}

std::string roundNumber(double value, int digits) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "NaN" : value > 0 ? "&#8734;" : "&#8722;&#8734;";
  }
  std::string text = fmt::format("{:.{}g}", value, digits);
  const std::size_t e = text.find('e');
  std::string tail;
  if (e != std::string::npos) {
    tail = "&#8239;&#215;&#8239;" + powerOfTen(std::stoi(text.substr(e + 1)));
    text.resize(e);
  }
  if (text.starts_with('-')) {
    text.replace(0, 1, "&#8722;");
  }
  return text + tail;
}

std::string groupedNumber(std::uint64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    text += i > 0 && (digits.size() - i) % 3 == 0 ? "&#8239;" : "";
    text += digits[i];
  }
  return text;
}

std::string roundBytes(std::uint64_t n_bytes) {
  constexpr std::array<const char*, 7> kUnits = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(n_bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) {
    value /= 1000.0;
  }
  return unit == 0 ? fmt::format("{}&#160;bytes", n_bytes)
                   : fmt::format("{:.3g}&#160;{}", value, kUnits[unit]);
}

std::string shapeHtml(const std::array<std::size_t, 3>& dims) {
  std::string text = fmt::format("{}", dims[0]);
  if (dims[1] > 1 || dims[2] > 1) {
    text += fmt::format(" &#215; {}", dims[1]);
  }
  return dims[2] > 1 ? text + fmt::format(" &#215; {}", dims[2]) : text;
}

}  // namespace fz::report
