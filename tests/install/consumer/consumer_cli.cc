#include <fzgmod_cli.h>

int main() {
  char name[] = "fzgmod-cli";
  char help[] = "--help";
  char* words[] = {name, help, nullptr};
  return fzgmod_cli_main(2, words);
}
