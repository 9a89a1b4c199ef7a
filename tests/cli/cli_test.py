#!/usr/bin/env python3
"""Tests of the command line tools, driven as processes.

Usage: cli_test.py PATH_TO_FZ [--fzgmod PATH] [--make-hdf5 PATH] [--topic NAME]
                   [unittest arguments, such as CompressTest or -k npy]
"""

import argparse
import importlib
import sys
import unittest

import cli_support

TOPICS = ("compress", "chunks", "target", "decode", "usage", "stages", "bench", "convert", "handover", "robust", "caution", "front", "compat", "zsh")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--fzgmod", default="")
    parser.add_argument("--make-hdf5", default="")
    parser.add_argument("--topic", choices=TOPICS)
    options, rest = parser.parse_known_args()
    cli_support.BINARY = options.binary
    cli_support.FZGMOD = options.fzgmod
    cli_support.MAKE_HDF5 = options.make_hdf5
    for topic in [options.topic] if options.topic else TOPICS:
        module = importlib.import_module(f"cli_{topic}_cases")
        for name in module.__all__:
            globals()[name] = getattr(module, name)  # where unittest looks for them
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
