"""Completion in a real zsh, with keys typed on a terminal."""

import os
import pty
import re
import select
import shutil
import time
import unittest

import cli_support
from cli_support import CliCase, wave

__all__ = ["ZshTest"]

PROMPT = "ready> "


class Zsh:
    """An interactive zsh without any start-up file."""

    def __init__(self, folder, environment):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        self.text = ""

    def close(self):
        os.close(self.terminal)  # the shell ends with its terminal
        os.waitpid(self.pid, 0)

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def read(self, is_enough, seconds=20):
        """Reads until the test is met, and a little longer; what came is free of control codes."""
        raw, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.2)[0]:
                raw += os.read(self.terminal, 65536)
            elif is_enough(self.plain(raw)):
                return self.plain(raw)
        raise AssertionError(f"zsh said {raw!r}")

    @staticmethod
    def plain(raw):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\r]", "", raw.decode(errors="replace"))


@unittest.skipUnless(shutil.which("zsh"), "no zsh here")
class ZshTest(CliCase):
    def setUp(self):
        super().setUp()
        binaries = self.folder / "bin"
        functions = self.folder / "functions"
        binaries.mkdir()
        functions.mkdir()
        os.symlink(os.path.abspath(cli_support.BINARY), binaries / "fz")
        (functions / "_fz").write_bytes(self.fz("generate", "zsh").stdout)
        self.put("field.f32", wave(3))
        environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "TERM": "dumb", "HOME": str(self.folder)}
        try:
            self.zsh = Zsh(self.folder, environment)
        except OSError as error:  # a container without /dev/pts
            self.skipTest(f"no terminal: {error}")
        self.addCleanup(self.zsh.close)
        self.zsh.type(
            f"PROMPT='{PROMPT[:3]}'\"{PROMPT[3:]}\"; fpath=({functions} $fpath); autoload -Uz compinit; "
            f"compinit -u -d {self.folder}/dump; LISTMAX=500; unsetopt beep prompt_sp; bindkey -e\n"
        )
        self.zsh.read(lambda text: PROMPT in text)

    def complete(self, line, *expected):
        """What the terminal shows after the line and a tab."""
        self.zsh.type(f"\x15{line}\t")
        try:
            return self.zsh.read(lambda text: all(word in text for word in expected), 10)
        finally:
            self.zsh.type("\x15")

    def test_it_loads(self):
        self.zsh.type("autoload +X _fz && print loaded ${_comps[fz]}\n")
        self.zsh.read(lambda text: "loaded _fz\n" in text)

    def test_commands_options_values_and_files_are_completed(self):
        self.complete("fz comp", "fz compress ")
        self.complete("fz compress --verif", "--verify ")
        self.complete("fz compress --ver", "--verify", "--verbose")
        self.complete("fz compress -p cuszp3_", "cuszp3_fixed", "cuszp3_outlier")
        self.complete("fz compress -b ran", "range:")
        self.complete("fz stages Huf", "Huffman ")
        self.complete("fz test --progress al", "always ")
        self.complete("fz compress -q fie", "field.f32 ")
        self.complete("fz generate ba", "bash ")

    def test_the_texts_say_what_options_do(self):
        shown = self.complete("fz compress --max", "--max-memory")
        self.assertNotIn("error", shown)
        self.complete("fz ", "Check archives", "List the presets")
