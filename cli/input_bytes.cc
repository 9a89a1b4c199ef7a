#include "input_bytes.h"

#include <csignal>
#include <string_view>
#include <unistd.h>

#include "failure.h"
#include "format/file_io.h"

namespace fz::cli {

namespace {

constexpr std::size_t kValueAlignment = 16;

/// Only what a signal handler may do.
void onBusError(int /*signal*/) {
  constexpr std::string_view kText =
      "fz: a file shrank or could not be read while in use; leave it unchanged and try again\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(static_cast<int>(ExitCode::kIo));
}

}  // namespace

InputBytes::InputBytes(std::vector<std::uint8_t> bytes) {
  const auto owned = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  bytes_ = *owned;
  owner_ = owned;
}

InputBytes InputBytes::map(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  return {file, file->bytes(), true};
}

void InputBytes::dropFront(std::size_t n_bytes) {
  bytes_ = bytes_.subspan(n_bytes);
  if (reinterpret_cast<std::uintptr_t>(bytes_.data()) % kValueAlignment != 0) {
    *this = InputBytes(std::vector<std::uint8_t>(bytes_.begin(), bytes_.end()));
  }
}

void ignoreFileSizeSignal() {
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
}

void catchVanishingFiles() {
  struct sigaction action = {};
  action.sa_handler = &onBusError;
  static_cast<void>(::sigaction(SIGBUS, &action, nullptr));
}

}  // namespace fz::cli
