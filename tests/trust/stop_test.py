#!/usr/bin/env python3
"""A run of fz_trust that is stopped keeps what it counted, and says where to go on.

Usage: stop_test.py FZ_TRUST
"""

import json
import re
import signal
import subprocess
import sys
import time

GOAL = "R5-masks"


def figures_of(words, stop_after=None):
    with subprocess.Popen([sys.argv[1], GOAL, *words], stdout=subprocess.PIPE) as program:
        if stop_after is not None:
            time.sleep(stop_after)
            program.send_signal(signal.SIGTERM)
        text = program.communicate(timeout=120)[0].decode()
    return json.loads(text.splitlines()[-1]), program.returncode


def main():
    stopped, status = figures_of(["--count", "1000000000", "--jobs", "2"], stop_after=2)
    assert status == 1, f"a stopped run ended with {status}, as one that holds"
    assert stopped["counts"]["cases"] > 0, "nothing was kept"
    assert len(stopped["failures"]) == 1, stopped["failures"]
    said = re.search(r"--first (\d+) goes on there", stopped["failures"][0])
    assert said, stopped["failures"]
    first = int(said.group(1))
    assert first <= stopped["counts"]["cases"], "it would leave trials out"
    rest, status = figures_of(["--first", str(first), "--count", str(first + 20), "--jobs", "2"])
    assert status == 0 and rest["counts"]["cases"] == 20, rest


if __name__ == "__main__":
    main()
