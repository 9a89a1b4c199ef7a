#include "standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace fz::cli {

void sayText(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stderr) != text.size()) {
    std::clearerr(stderr);
  }
}

void occupyClosedStreams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      // The lowest free number is this one, since those below are open by now. The wrong direction
      // makes every use an error, as it would have been.
      [[maybe_unused]] const int opened =
          open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

}  // namespace fz::cli
