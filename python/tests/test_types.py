"""What a type checker sees of the package: public names have types, and mistakes are found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import fz

pytest.importorskip("mypy", reason="mypy is not installed")

EXAMPLE = Path(__file__).resolve().parent / "typing" / "example.py"


@pytest.fixture
def mypy(tmp_path):
    """mypy of this interpreter, which finds the package where it is installed."""

    def run(*words) -> str:
        command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_typed_program_passes_and_its_mistakes_are_found(mypy):
    mypy("--strict", EXAMPLE)


def test_every_public_name_has_a_type(mypy, tmp_path):
    lines = ["import fz", *(f"reveal_type(fz.{name})" for name in fz.__all__)]
    (tmp_path / "names.py").write_text("\n".join(lines))
    seen = re.findall(r'Revealed type is "(.*)"', mypy("names.py"))
    assert len(seen) == len(fz.__all__)
    assert [name for name, type_ in zip(fz.__all__, seen) if type_ == "Any"] == []


def test_the_package_keeps_to_its_own_types(mypy):
    mypy("--ignore-missing-imports", "-p", "fz")
