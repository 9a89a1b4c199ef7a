#include <string>
#include <vector>

#include "commands.h"

int main(int argc, char** argv) {
  return fz::cli::runTool(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
