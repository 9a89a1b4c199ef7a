#pragma once

/// The tool fzgmod-cli as a function, for programs and tests that run it in-process: arguments as
/// for main(), exit code. Failures are printed, none is thrown. In the library fz::cli.
int fzgmod_cli_main(int argc, char** argv);  // NOLINT(readability-identifier-naming)
