#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fz::cli {

/// Writes to standard error, or nowhere when it takes nothing (closed, a full disk): work goes on
/// and ends with its own exit code without anybody to listen.
void sayText(std::string_view text);

/// The same, formatted.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  sayText(fmt::format(format, std::forward<Args>(args)...));
}

/// Puts something that can be neither read nor written where the caller left standard input, output
/// or error closed. Else the next file opened would get that number, and messages would go into it.
void occupyClosedStreams();

}  // namespace fz::cli
