#!/usr/bin/env python3
"""Promises about processes and files: R9 (kill), R10 (full disks), R14 (what the library may call).

Usage: process_test.py GOAL --fz PATH --library PATH [--release] [--count N] [--seed N]

Prints one line of JSON per goal, as fz_trust does; the exit status is not zero on a failure.
"""

import argparse
import array
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path


class Report:
    def __init__(self):
        self.counts = {}
        self.failures = []

    def add(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def check(self, holds, text):
        if not holds:
            self.failures.append(text)


def field_bytes(n_values):
    """A field that takes a while to compress, the same in every run."""
    rng = random.Random(5)
    value = 0.0
    values = array.array("f")
    for _ in range(n_values):
        value += rng.random() - 0.5
        values.append(value)
    return values.tobytes()


def run(words, **kwargs):
    return subprocess.run(
        [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False, **kwargs
    )


class KillSweep:
    """A tool that is killed leaves the old file, the new one, or none."""

    def __init__(self, options, folder, report):
        self.fz = options.fz
        self.folder = folder
        self.report = report
        self.rng = random.Random(options.seed)
        self.source = folder / "field.f32"
        self.source.write_bytes(field_bytes(300_000))
        self.archive = folder / "whole.fzm"
        run([self.fz, "compress", "-q", "-b", "abs:1e-4", "-o", self.archive, self.source])
        run([self.fz, "decompress", "-q", "-o", folder / "whole.f32", self.archive])
        self.expected = {
            "compress": self.archive.read_bytes(),
            "decompress": (folder / "whole.f32").read_bytes(),
        }

    def command(self, task, target):
        source = self.source if task == "compress" else self.archive
        bound = ["-b", "abs:1e-4"] if task == "compress" else []
        return [self.fz, task, "-q", "-f", *bound, "-o", target, source]

    def seconds_of(self, task):
        start = time.monotonic()
        run(self.command(task, self.folder / "timing.out"))
        return time.monotonic() - start

    def kill_once(self, task, whole_seconds, has_old):
        target = self.folder / "target.out"
        target.unlink(missing_ok=True)
        if has_old:
            target.write_bytes(b"what was there before")
        before = set(os.listdir(self.folder))
        process = subprocess.Popen(
            [str(w) for w in self.command(task, target)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(self.rng.uniform(0, whole_seconds))
        process.kill()
        was_killed = process.wait() == -signal.SIGKILL
        self.report.add(f"{task}: killed" if was_killed else f"{task}: done before")
        found = target.read_bytes() if target.exists() else None
        state = "none" if found is None else "old" if found == b"what was there before" else "new"
        self.report.add(f"file afterwards: {state}")
        self.report.check(state != "new" or found == self.expected[task], f"{task}: a partial file")
        self.report.check(state != "none" or not has_old, f"{task}: the old file is gone")
        for name in set(os.listdir(self.folder)) - before - {target.name}:
            # Only the moment between two names may leave one, and then it is complete.
            self.report.add("temporary files left")
            rest = self.folder / name
            self.report.check(rest.read_bytes() == self.expected[task], f"{task}: a partial {name}")
            rest.unlink()
        return was_killed

    def go(self, n_kills):
        seconds = {task: self.seconds_of(task) for task in self.expected}
        kept = self.source.read_bytes()
        n_killed = 0
        for i in range(4 * n_kills):
            task = ("compress", "decompress")[i % 2]
            n_killed += self.kill_once(task, seconds[task], i % 4 < 2)
            if n_killed == n_kills:
                break
        self.report.check(n_killed == n_kills, f"only {n_killed} kills came in time")
        self.report.check(self.source.read_bytes() == kept, "the source changed")


def kills(options, report):
    with tempfile.TemporaryDirectory(prefix="fz_trust_") as folder:
        KillSweep(options, Path(folder), report).go(options.count or (5000 if options.release else 300))


class AppendSweep:
    """A tool that is killed while it appends chunks leaves what can be read up to the cut."""

    SHAPE = (64, 64, 440)  # x first
    PLANES_OF_CHUNK = 4
    PERIOD = 22  # planes after which values repeat
    FRONT_BYTES = 3 << 19  # more than the tool reads before it has a file

    def __init__(self, options, folder, report):
        self.fz = options.fz
        self.folder = folder
        self.report = report
        self.rng = random.Random(options.seed)
        self.plane_bytes = 4 * self.SHAPE[0] * self.SHAPE[1]
        self.values = field_bytes(self.SHAPE[0] * self.SHAPE[1] * self.PERIOD) * (self.SHAPE[2] // self.PERIOD)
        whole = folder / "whole.fzm"
        self.start(whole).communicate(self.values)
        self.report.check(whole.exists(), "no archive to compare with")
        self.archive = whole.read_bytes()
        self.decoded = self.decode(whole)
        self.ends = self.frame_ends()
        n_chunks = self.SHAPE[2] // self.PLANES_OF_CHUNK
        self.report.check(len(self.ends) == n_chunks, f"{len(self.ends)} frames instead of {n_chunks}")

    def start(self, target):
        words = [self.fz, "compress", "-q", "-f", "-t", "f32", "-b", "abs:1e-4", "-p", "pfpl", "-o", target]
        words += ["-d", "x".join(map(str, self.SHAPE)), "--chunk", f"64x64x{self.PLANES_OF_CHUNK}", "-"]
        return subprocess.Popen(
            [str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def decode(self, archive):
        plain = self.folder / "plain.f32"
        done = run([self.fz, "decompress", "-q", "-f", "-o", plain, archive])
        self.report.check(done.returncode == 0, f"{archive.name}: {done.stderr.decode(errors='replace')}")
        return plain.read_bytes() if done.returncode == 0 else b""

    def frame_ends(self):
        """Where the frames of the whole archive end, from the lengths in their headers."""
        ends, at = [], 0
        while self.archive[at : at + 4] == b"2ZMF":
            payload, header = struct.unpack_from("<QQ", self.archive, at + 16)
            at += payload + header
            ends.append(at)
        return ends

    def feed_and_kill(self, target, part):
        """Feeds some planes and kills; mostly while chunks are being appended. True: it was there."""
        process = self.start(target)
        n_bytes = self.rng.randrange(len(self.values) + 1)
        first = min(n_bytes, self.FRONT_BYTES)
        try:
            process.stdin.write(self.values[:first])
            process.stdin.flush()
            if self.rng.random() < 0.8:
                deadline = time.monotonic() + 0.05
                while not part.exists() and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.001)
            process.stdin.write(self.values[first:n_bytes])
            process.stdin.flush()
            if self.rng.random() < 0.1:
                process.stdin.write(self.values[n_bytes:])
                process.stdin.close()
        except BrokenPipeError:
            self.report.check(False, "the tool ended by itself")
        time.sleep(self.rng.choice((0, self.rng.uniform(0, 0.01))))
        process.kill()
        was_killed = process.wait() == -signal.SIGKILL
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        return was_killed

    def check_part(self, part):
        """What is left of the archive is its begin, and every complete chunk of it comes back."""
        left = part.read_bytes()
        self.report.check(left == self.archive[: len(left)], f"{len(left)} bytes are left that it never had")
        n_chunks = sum(1 for end in self.ends if end <= len(left))
        target = part.with_suffix("")
        before = target.read_bytes() if target.exists() else None
        recovered = self.folder / "recovered.fzm"
        recovered.unlink(missing_ok=True)
        done = run([self.fz, "recover", "-q", "-o", recovered, part])
        self.report.add("recoveries" if n_chunks else "nothing complete")
        if n_chunks == 0:
            self.report.check(done.returncode != 0 and not recovered.exists(), "recovered something from nothing")
            return
        message = done.stderr.decode(errors="replace")
        self.report.check(done.returncode == 0, f"{len(left)} bytes are not recovered: {message}")
        n_bytes = n_chunks * self.PLANES_OF_CHUNK * self.plane_bytes
        self.report.check(self.decode(recovered) == self.decoded[:n_bytes], f"not the values of {n_chunks} chunks")
        self.report.add("chunks recovered", n_chunks)
        after = target.read_bytes() if target.exists() else None
        self.report.check(before == after and part.read_bytes() == left, "recovering changed what was there")

    def kill_once(self, has_old, goes_on):
        target = self.folder / "target.fzm"
        part = self.folder / "target.fzm.part"
        for path in (target, part):
            path.unlink(missing_ok=True)
        if has_old:
            target.write_bytes(b"what was there before")
        before = set(os.listdir(self.folder))
        was_killed = self.feed_and_kill(target, part)
        self.report.add("killed" if was_killed else "done before")
        found = target.read_bytes() if target.exists() else None
        state = "none" if found is None else "old" if found == b"what was there before" else "new"
        self.report.add(f"file afterwards: {state}")
        self.report.check(state != "new" or found == self.archive, "a partial file")
        self.report.check(state != "none" or not has_old, "the old file is gone")
        others = set(os.listdir(self.folder)) - before - {target.name, part.name}
        self.report.check(not others, f"{others} left")
        if part.exists():
            self.report.add("parts left")
            self.check_part(part)
        if goes_on:
            # The name is free for the next run, whatever is left of this one.
            self.start(target).communicate(self.values)
            self.report.check(target.read_bytes() == self.archive, "another archive afterwards")
            self.report.check(not part.exists(), "a part beside the archive")
            self.report.add("runs afterwards")
        return was_killed

    def go(self, n_kills):
        n_killed = 0
        for i in range(4 * n_kills):
            n_killed += self.kill_once(i % 2 == 0, i % 8 == 0)
            if n_killed == n_kills:
                break
        self.report.check(n_killed == n_kills, f"only {n_killed} kills came in time")
        for what in ("parts left", "recoveries", "chunks recovered", "runs afterwards"):
            self.report.check(self.report.counts.get(what, 0) > 0, f"never: {what}")


def kills_of_archives(options, report):
    with tempfile.TemporaryDirectory(prefix="fz_trust_") as folder:
        AppendSweep(options, Path(folder), report).go(options.count or (2000 if options.release else 60))


def limited_size(n_bytes):
    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    return prepare


def full_disks(options, report):
    with tempfile.TemporaryDirectory(prefix="fz_trust_") as name:
        folder = Path(name)
        source = folder / "field.f32"
        source.write_bytes(field_bytes(100_000))
        archive = folder / "whole.fzm"
        run([options.fz, "compress", "-q", "-b", "abs:1e-6", "-o", archive, source])
        tasks = {"compress": ["-b", "abs:1e-6", source], "decompress": [archive]}

        def expect(done, what, code=2):
            report.add("full disks")
            message = done.stderr.decode(errors="replace") if done.stderr else ""
            report.check(done.returncode == code, f"{what}: exit {done.returncode}: {message}")
            report.check(len(message.splitlines()) == 1, f"{what}: not one message: {message!r}")

        for task, rest in tasks.items():
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    [options.fz, task, "-q", "-o", "-", *map(str, rest)],
                    stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
                )
            expect(done, f"{task} to /dev/full")
            for n_bytes in (0, 1, 4096, 65536, 150_000):
                target = folder / "limited.out"
                words = [options.fz, task, "-q", "-o", target, *rest]
                done = run(words, preexec_fn=limited_size(n_bytes), restore_signals=False)
                expect(done, f"{task}, files of at most {n_bytes} bytes")
                report.check(not target.exists(), f"{task}: a file of {n_bytes} bytes was left")
                left = [n for n in os.listdir(folder) if n.endswith(".tmp")]
                report.check(not left, f"{task}: {left} left")
                # The same once more without the limit.
                report.check(run(words).returncode == 0 and target.exists(), f"{task} afterwards")
                target.unlink(missing_ok=True)
        small_disk(options, report, folder, tasks, expect)


def small_disk(options, report, folder, tasks, expect):
    """A file system with room for 128 KiB, where this process may mount one."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk])
    if mounted.returncode != 0:
        report.add("skipped: no file system of our own may be mounted")
        return
    try:
        for task, rest in tasks.items():
            target = disk / "out"
            expect(run([options.fz, task, "-q", "-o", target, *rest]), f"{task} to a small disk")
            report.check(not os.listdir(disk), f"{task}: {os.listdir(disk)} left on the small disk")
            target.write_bytes(b"old")
            expect(run([options.fz, task, "-q", "-f", "-o", target, *rest]), f"{task} over an old file")
            report.check(target.read_bytes() == b"old", f"{task}: the old file is gone")
            target.unlink()
    finally:
        run(["umount", disk])


# What would end, interrupt or talk over the program that uses the library. The log is the one
# place that prints, and only where the program asked for it.
FORBIDDEN = re.compile(
    r"^(_?exit|_Exit|quick_exit|abort|raise|kill|signal|sigaction|__assert_fail|system|setlocale|srand|"
    r"v?f?printf|__v?f?printf_chk|f?puts|f?putc|putchar|_ZSt4cout|_ZSt4cerr|_ZSt4clog|omp_\w+|GOMP_\w+)$"
)
PRINTS = {"log.cc.o": {"fprintf", "fputs", "fputc", "__fprintf_chk", "putchar", "puts"}}


def manners(options, report):
    listing = run(["nm", "-A", "--undefined-only", options.library])
    report.check(listing.returncode == 0, f"nm: {listing.stderr.decode(errors='replace')}")
    for line in listing.stdout.decode().splitlines():
        place, _, symbol = line.rpartition(" ")
        symbol = symbol.split("@")[0]
        member = place.split(":")[1] if place.count(":") > 1 else place
        report.add("symbols")
        # nvcc gives device functions a body for the host that ends the program; nobody can call it.
        is_stub = symbol == "exit" and member.endswith(".cu.o")
        is_allowed = not FORBIDDEN.match(symbol) or is_stub or symbol in PRINTS.get(member, set())
        report.check(is_allowed, f"{member} calls {symbol}")
    report.check(report.counts.get("symbols", 0) > 1000, "nothing was scanned")


GOALS = {
    "R9": ("kill -9 at any moment leaves the old file, the complete new one, or none", kills),
    "R9-archives": (
        "kill -9 while chunks are appended leaves the old file, and a part that is recovered up to the cut",
        kills_of_archives,
    ),
    "R10-files": ("a full disk is one message and exit code 2, and leaves no file", full_disks),
    "R14": ("the library neither ends, interrupts nor talks over its program", manners),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("goals", nargs="+", choices=sorted(GOALS))
    parser.add_argument("--fz", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not shutil.which("nm") and "R14" in options.goals:
        print("process_test: nm is needed", file=sys.stderr)
        return 2
    all_hold = True
    for goal in options.goals:
        claim, work = GOALS[goal]
        report = Report()
        start = time.monotonic()
        work(options, report)
        print(
            json.dumps(
                {
                    "goal": goal,
                    "claim": claim,
                    "seconds": time.monotonic() - start,
                    "counts": report.counts,
                    "failures": report.failures[:20],
                }
            ),
            flush=True,
        )
        all_hold = all_hold and not report.failures
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
