#include "fzgmod_cli.h"

int main(int argc, char** argv) {
  return fzgmod_cli_main(argc, argv);
}
