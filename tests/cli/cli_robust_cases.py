"""Cases of large files, memory, progress, and what a kill leaves behind."""

import os
import pty
import resource
import signal
import subprocess
import time
import unittest

import cli_support
from cli_support import IO, MEMORY, OK, USAGE, CliCase, wave, one

__all__ = ["MemoryTest", "ProgressTest", "KillTest", "LinkTest"]

MIB = 1 << 20


def data_limit(n_bytes):
    """Limits what a process may allocate; files that it maps do not count."""

    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))

    return limited


class MemoryTest(CliCase):
    IN_MEMORY = False

    def sparse(self, name, n_bytes):
        with open(self.folder / name, "wb") as file:
            file.truncate(n_bytes)
        return name

    @unittest.skipIf(os.environ.get("FZ_SANITIZED") == "thread", "the thread sanitizer leaves no room to map 4 TiB")
    def test_large_files_are_refused_before_they_are_read(self):
        self.sparse("big.f32", 4 << 30)
        start = time.monotonic()
        self.fails(
            MEMORY, "compress", "-p", "cuszp", "-b", "abs:1e-3", "--max-memory", "1G", "--chunk", "none", "big.f32",
            says=["4294967296 bytes", "--max-memory allows 1.07 GB", "--chunk 16M"],
        )
        try:
            self.sparse("huge.f32", 1 << 42)
        except OSError as error:
            raise unittest.SkipTest(f"no sparse file of 4 TiB here: {error}")
        self.fails(MEMORY, "compress", "-p", "cuszp", "-b", "abs:1", "--chunk=none", "huge.f32", says=["this machine has", "--max-memory"])
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(self.names(), ["big.f32", "huge.f32"])

    def test_what_a_stage_cannot_take_is_refused_at_once_too(self):
        self.sparse("big.f32", 4 << 30)
        self.fails(
            MEMORY, "compress", "-p", "pfpl", "-b", "abs:1e-3", "--chunk=none", "big.f32",
            says=["RZE: input must be at most 4294967295", "-p cuszp2", "--chunk 64M"],
        )

    def test_verify_counts(self):
        self.put("a.f32", wave(250000))
        words = ("compress", "-f", "-p", "pfpl", "-b", "abs:1e-3", "--chunk=none", "--max-memory", "1500k", "a.f32")
        self.fz(*words)
        self.fails(MEMORY, *words, "--verify", says="--verify")

    def test_the_limit_holds_while_it_works(self):
        """Ninety percent outliers: more than any estimate without the data can know."""
        field = wave(250000)
        for i in range(0, len(field), 1):
            field[i] = 2.0**100 if i % 10 else field[i]
        self.put("a.f32", field)
        words = ("compress", "-f", "-p", "speed", "-b", "abs:1e-3", "--chunk=none", "--max-memory", "1700k", "a.f32")
        message = self.fails(MEMORY, *words, says=["exceed the limit", "raise --max-memory"])
        self.assertNotIn("archive", message)

    def test_neither_input_nor_result_is_held_in_memory(self):
        try:
            self.fz("--version", preexec_fn=data_limit(64 * MIB))
        except AssertionError:
            raise unittest.SkipTest("this build needs more memory than the test leaves it")
        n_bytes = 192 * MIB
        self.sparse("big.f32", n_bytes)
        words = ("-T", "1", "-b", "abs:1e-3")
        # The estimate for cuszp is one copy for the frame at its largest; two would not fit.
        self.fz("compress", "-q", "-p", "cuszp", *words, "big.f32", preexec_fn=data_limit(n_bytes + 100 * MIB))
        self.fz("decompress", "-qT1", "-o", "out.f32", "big.f32.fzm", preexec_fn=data_limit(96 * MIB))
        self.assertEqual(os.path.getsize(self.folder / "out.f32"), n_bytes)
        with open(self.folder / "out.f32", "rb") as file:
            self.assertTrue(all(not any(part) for part in iter(lambda: file.read(MIB), b"")))

    def test_chunks_keep_the_limit_for_pipes_and_files(self):
        n_bytes = 192 * MIB
        self.sparse("big.f32", n_bytes)
        words = ("compress", "-q", "-T1", "-t", "f32", "-b", "abs:1e-3", "--max-memory", "16M")
        try:
            self.fz("--version", preexec_fn=data_limit(64 * MIB))
        except AssertionError:
            raise unittest.SkipTest("this build needs more memory than the test leaves it")
        self.fz(*words, "big.f32", preexec_fn=data_limit(80 * MIB))
        with open(self.folder / "big.f32", "rb") as file:
            self.fz(*words, "-o", "piped.fzm", "-", stdin_file=file, preexec_fn=data_limit(80 * MIB))
        for name in ("big.f32.fzm", "piped.fzm"):
            self.fz("decompress", "-qT1", "-o", name + ".f32", "--max-memory", "16M", name, preexec_fn=data_limit(80 * MIB))
            self.assertEqual(os.path.getsize(self.folder / (name + ".f32")), n_bytes)

    def test_mapped_npy_results_have_their_header(self):
        self.sparse("big.f32", 80 * MIB)
        self.fz("compress", "-q", "-p", "cuszp", "-b", "abs:1e-3", "-d", "1024x20480", "big.f32")
        self.fz("decompress", "-q", "-o", "out.npy", "big.f32.fzm")
        self.assertEqual(os.path.getsize(self.folder / "out.npy"), 80 * MIB + 128)
        self.fz("verify", "-q", "big.f32.fzm", "out.npy")

    def test_few_threads_are_no_reason_to_hang(self):
        def limited(n_bytes):
            return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))}

        least = 300 << 20
        try:
            self.fz("--version", **limited(least))
        except AssertionError:
            raise unittest.SkipTest("this build needs more address space than the test leaves it")
        self.put("a.f32", wave(3000))
        words = ("compress", "-fqp", "cusz", "-b", "range:1e-4", "-T", "64", "a.f32")
        # Threads take 8 MiB each until there are no more; what is left for the values is by chance
        # enough or not, with limits that differ by a part of that.
        n_done = 0
        for n_bytes in range(least, least + (16 << 20), 3 << 20):
            done = subprocess.run(
                [os.path.abspath(cli_support.BINARY), *words], cwd=self.folder, check=False, timeout=120,
                capture_output=True, **limited(n_bytes)
            )
            self.assertIn(done.returncode, (OK, MEMORY), done.stderr)
            n_done += done.returncode == OK
        self.assertGreater(n_done, 0)
        self.fz("test", "a.f32.fzm")

    def test_out_of_memory_has_its_code(self):
        limit = 1 << 30

        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        try:
            self.fz("--version", preexec_fn=limited)
        except AssertionError:
            raise unittest.SkipTest("this build needs more address space than the test leaves it")
        with open(self.folder / "big.f32", "wb") as file:
            file.truncate(8 << 30)
        self.fails(MEMORY, "compress", "-p", "cusz", "-b", "range:1e-4", "-T", "1", "big.f32", preexec_fn=limited, says="memory")


class ProgressTest(CliCase):
    def test_always(self):
        self.put("a.f32", wave(3000))
        lines = self.fz("compress", "--progress", "always", "--verify", "a.f32").stderr.decode().splitlines()
        for what in ("compressing 100 % of 12.0 kB", "decoding 100 % of 12.0 kB", "checking 100 % of 12.0 kB"):
            self.assertTrue(any(line.startswith("a.f32: " + what) for line in lines), lines)
        self.assertIn(b"decompressing 100 %", self.fz("decompress", "-fq", "--progress=always", "a.f32.fzm").stderr)
        self.assertIn(b"testing 100 %", self.fz("test", "--progress=always", "a.f32.fzm").stderr)
        self.assertIn(b"checking 100 %", self.fz("verify", "--progress=always", "a.f32.fzm", "a.f32").stderr)
        self.assertIn(b"measuring 100 %", self.fz("bench", "-n2", "--progress=always", "a.f32").stderr)
        piped = self.fz("compress", "-t", "f32", "--progress=always", "-o", "b.fzm", "-", stdin=self.get("a.f32"))
        self.assertIn(b"standard input: reading 12.0 kB", piped.stderr)

    def test_not_without_a_terminal_and_never_when_told(self):
        self.put("a.f32", wave(3000))
        for words in ((), ("--progress", "never"), ("--progress", "auto")):
            self.assertNotIn(b"%", self.fz("compress", "-f", *words, "a.f32").stderr)
        self.fails(USAGE, "compress", "--progress", "sometimes", "a.f32", says="auto, always or never")

    def on_terminal(self, *words, feed=()):
        """Runs fz with a terminal as standard error, and feeds its standard input slowly."""
        try:
            leader, follower = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had: {error}")
        start = time.monotonic()
        process = subprocess.Popen(
            [os.path.abspath(cli_support.BINARY), *words], cwd=self.folder, stderr=follower,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"},
        )
        os.close(follower)
        for part, seconds in feed:
            process.stdin.write(part)
            process.stdin.flush()
            time.sleep(seconds)
        process.stdin.close()
        text = b""
        try:
            while part := os.read(leader, 65536):
                text += part
        except OSError:
            pass  # the other side is closed
        os.close(leader)
        self.assertEqual(process.wait(), OK)
        return text.decode(), time.monotonic() - start

    def test_long_work_on_a_terminal_has_a_line_that_goes_away(self):
        text, seconds = self.on_terminal("compress", "-t", "f32", "-", feed=[(bytes(40000), 0.5), (bytes(40000), 0.7)])
        updates = text.count("\rstandard input: reading")
        self.assertGreaterEqual(updates, 2)
        self.assertLessEqual(updates, 10 * seconds + 1)
        self.assertRegex(text, r"reading 80\.0 kB, [0-9.]+ kB/s")
        self.assertIn("\r\x1b[K", text.split("reading")[-1])

    def test_short_work_has_none(self):
        self.put("a.f32", wave(300))
        text, _ = self.on_terminal("compress", "a.f32")
        self.assertNotIn("\x1b[K", text)


class KillTest(CliCase):
    IN_MEMORY = False

    def test_a_kill_leaves_no_half_file(self):
        """Killed at many moments: the final name has the old file or the whole new one."""
        self.put("a.f32", wave(300000))
        self.fz("compress", "-q", "-o", "whole.fzm", "-b", "abs:1e-3", "a.f32")
        whole = self.get("whole.fzm")
        self.put("out.fzm", b"old")
        words = [os.path.abspath(cli_support.BINARY), "compress", "-fq", "-b", "abs:1e-3", "-o", "out.fzm", "a.f32"]
        killed = 0
        for i in range(40):
            process = subprocess.Popen(words, cwd=self.folder)
            time.sleep(0.001 * i)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            self.assertIn(self.get("out.fzm"), (b"old", whole))
        self.assertGreater(killed, 5)
        # What is left, if anything, is in nobody's way.
        self.fz("compress", "-fq", "-b", "abs:1e-3", "-o", "out.fzm", "a.f32")
        self.assertEqual(self.get("out.fzm"), whole)

    def test_a_kill_while_writing_leaves_nothing(self):
        """The reader of a pipe holds the tool in the middle of its work."""
        self.put("a.f32", wave(300000))
        os.mkfifo(self.folder / "in")
        words = [os.path.abspath(cli_support.BINARY), "compress", "-q", "-o", "out.fzm", "in"]
        process = subprocess.Popen(words, cwd=self.folder)
        with open(self.folder / "in", "wb") as pipe:
            pipe.write(self.get("a.f32"))
            process.kill()
            process.wait()
        self.assertEqual(self.names(), ["a.f32", "in"])

    def test_a_full_disk_leaves_nothing(self):
        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        self.put("a.f32", wave(300000))
        self.fails(IO, "compress", "a.f32", preexec_fn=limited, says="cannot write")
        self.assertEqual(self.names(), ["a.f32"])

    def test_a_file_that_shrinks_is_an_error_and_no_crash(self):
        with open(self.folder / "a.f32", "wb") as file:
            file.truncate(256 * MIB)
        words = [os.path.abspath(cli_support.BINARY), "compress", "-fq", "-p", "cuszp", "-b", "abs:1", "-o", "out.fzm", "a.f32"]
        process = subprocess.Popen(words, cwd=self.folder, stderr=subprocess.PIPE)
        time.sleep(0.03)
        os.truncate(self.folder / "a.f32", 0)
        message = process.communicate()[1]
        self.assertIn(process.returncode, (OK, IO, USAGE), message)
        if process.returncode == IO:
            self.assertIn(b"shrank", message)
            self.assertNotIn("out.fzm", self.names())


class LinkTest(CliCase):
    def test_a_link_to_no_file_yet_stays_a_link(self):
        self.put("a.f32", wave(30))
        (self.folder / "sub").mkdir()
        (self.folder / "first.fzm").symlink_to("sub/second.fzm")
        (self.folder / "sub/second.fzm").symlink_to("real.fzm")
        self.fz("compress", "-q", "-o", "first.fzm", "a.f32")
        self.assertTrue((self.folder / "first.fzm").is_symlink())
        self.assertTrue((self.folder / "sub/second.fzm").is_symlink())
        self.fz("test", "sub/real.fzm")
        self.fails(IO, "compress", "-o", "first.fzm", "a.f32", says="use -f")
        (self.folder / "circle.fzm").symlink_to("circle.fzm")
        self.fails(IO, "compress", "-f", "-o", "circle.fzm", "a.f32", says="broken link")
        self.assertTrue((self.folder / "circle.fzm").is_symlink())
