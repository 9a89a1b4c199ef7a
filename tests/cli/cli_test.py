#!/usr/bin/env python3
"""Tests of the command line tool, driven as a process.

Usage: cli_test.py PATH_TO_FZ [unittest arguments, such as CompressTest or -k npy]
"""

import sys
import unittest

import cli_support

# Imported so that unittest finds their classes here.
from cli_compress_cases import *  # noqa: F401,F403
from cli_decode_cases import *  # noqa: F401,F403
from cli_usage_cases import *  # noqa: F401,F403

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cli_support.BINARY = sys.argv.pop(1)
    unittest.main()
