"""What the test cases of the command line tool share."""

import array
import fractions
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

BINARY = ""
FZGMOD = ""
MAKE_HDF5 = ""  # empty: built without HDF5

OK, USAGE, IO, CORRUPT, BOUND, MEMORY, NO_DEVICE = range(7)


def wave(count, typecode="f"):
    """A smooth field of a type of the array module."""
    return array.array(typecode, (20 + 5 * math.sin(i / 17) + 0.5 * math.cos(i / 3) for i in range(count)))


def npy(values, shape, descr=None, order="False", version=1):
    """A .npy file as bytes, made by hand."""
    descr = descr or {"f": "'<f4'", "d": "'<f8'"}[values.typecode]
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + b"\n" + values.tobytes()


def one(text):
    """The object of --json for a single file."""
    (row,) = json.loads(text)
    return row


def max_error(original, decoded):
    """Exact: every float is a fraction."""
    assert len(original) == len(decoded)
    return max(
        (abs(fractions.Fraction(a) - fractions.Fraction(b)) for a, b in zip(original, decoded)),
        default=fractions.Fraction(0),
    )


def memory_folder():
    """A file system in memory with room to spare, or nothing."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return None
    return "/dev/shm" if room.f_bavail * room.f_frsize > 1 << 30 and os.access("/dev/shm", os.W_OK) else None


class CliCase(unittest.TestCase):
    """A test in a folder of its own, which is the working folder of every process."""

    IN_MEMORY = True  # small files only; every write is synced, and a busy disk takes its time

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fz_cli_", dir=memory_folder() if self.IN_MEMORY else None))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fz(self, *words, code=OK, stdin=b"", **kwargs):
        """Runs the tool and checks its exit code; stdout and stderr come as bytes."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kwargs}
        if "stdin_file" in options:
            options["stdin"] = options.pop("stdin_file")
        else:
            options["input"] = stdin
        done = subprocess.run(
            [os.path.abspath(BINARY), *map(str, words)], cwd=self.folder, check=False, timeout=120, **options
        )
        if options["stderr"] == subprocess.PIPE:
            self.assertEqual(done.returncode, code, (words, done.stderr.decode(errors="replace")))
        else:
            self.assertEqual(done.returncode, code, words)
        return done

    def tool(self, *words, code=0, **kwargs):
        """Runs fzgmod-cli and checks its exit code."""
        done = subprocess.run(
            [os.path.abspath(FZGMOD), *map(str, words)], cwd=self.folder, check=False, timeout=120,
            capture_output=True, **kwargs
        )
        self.assertEqual(done.returncode, code, (words, done.stderr.decode(errors="replace")))
        return done

    def fails(self, code, *words, says="", **kwargs):
        """The tool must refuse with this code, one line that begins with its name, and a reason."""
        message = self.fz(*words, code=code, **kwargs).stderr.decode()
        last = message.strip().splitlines()[-1]
        self.assertTrue(last.startswith("fz: "), message)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, last)
        return message

    def put(self, name, content):
        data = content if isinstance(content, bytes) else content.tobytes()
        (self.folder / name).write_bytes(data)
        return name

    def get(self, name):
        return (self.folder / name).read_bytes()

    def values(self, name, typecode="f"):
        return array.array(typecode, self.get(name))

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def archive(self, name="a.f32", count=3000, typecode="f", *options):
        """Compresses a wave; gives the field and the name of the archive."""
        field = wave(count, typecode)
        self.put(name, field)
        if "-b" not in options:
            options = ("-b", "range:1e-4", *options)
        self.fz("compress", "-q", "-p", "cusz", *options, name)
        return field, name + ".fzm"
