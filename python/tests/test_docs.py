"""Every example in docstrings and documents runs and prints what is written there."""

import doctest
import importlib
import subprocess
import sys

import pytest

MODULES = ["fz", "fz._api", "fz._bounds", "fz._pipeline", "fz.errors", "fz.numcodecs", "fz.zarr"]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_show_what_happens(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("name", ["python.md", "tutorial.md"])
def test_documents_show_what_happens(name, repository):
    script = repository / "tools" / "run_document.py"
    subprocess.run([sys.executable, script, repository / "docs" / name], check=True)


def test_public_names_have_docstrings():
    import fz

    for name in fz.__all__:
        assert name == "__version__" or getattr(fz, name).__doc__


def test_the_package_says_that_it_is_typed():
    from importlib.resources import files

    assert (files("fz") / "py.typed").is_file() and (files("fz") / "_fz.pyi").is_file()
