#include "fzgmod_cli.h"
#include "input_bytes.h"
#include "standard_streams.h"

int main(int argc, char** argv) {
  // Here and not in the function, which may run inside a program with signal handlers of its own.
  fz::cli::occupyClosedStreams();
  fz::cli::catchVanishingFiles();
  fz::cli::ignoreFileSizeSignal();
  return fzgmod_cli_main(argc, argv);
}
