"""Every example in docstrings and documents runs and prints what is written there."""

import ast
import doctest
import importlib
import re
import subprocess
import sys
from importlib.resources import files

import numpy as np
import pytest
from conftest import wave

MODULES = [
    "fz", "fz._api", "fz._archive", "fz._bounds", "fz._pipeline", "fz._writer", "fz.errors",
    "fz._files", "fz._inspect", "fz.numcodecs", "fz.xarray", "fz.zarr",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_show_what_happens(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("name", ["archives.md", "python.md", "tutorial.md"])
def test_documents_show_what_happens(name, repository):
    script = repository / "tools" / "run_document.py"
    subprocess.run([sys.executable, script, repository / "docs" / name], check=True)


@pytest.mark.parametrize("name", ["python.md", "tutorial.md"])
def test_the_python_of_a_document_runs_as_one_script(name, repository, tmp_path):
    text = (repository / "docs" / name).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    make_field = repository / "examples" / "python" / "make_field.py"
    subprocess.run([sys.executable, make_field, tmp_path / "sst.nc"], check=True)
    (tmp_path / "walk.py").write_text("import matplotlib\nmatplotlib.use('Agg')\n" + "\n".join(blocks))
    subprocess.run([sys.executable, "walk.py"], check=True, cwd=tmp_path)


def test_the_readme_runs_as_it_stands(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (repository / "README.md").read_text(), re.DOTALL)
    assert blocks and "import h5py" in blocks[1]  # test_hdf5.py has that one's calls
    field = wave((20, 30))
    # Another process: here other tests have imported what the text must import itself.
    np.save("field.npy", field)
    begin = "import numpy\narray = original = numpy.load('field.npy')\n"
    end = "\nassert fz.verify(frame, original).n_violations == 0 and zarr.open('t.zarr').shape == (20, 30)\n"
    subprocess.run([sys.executable, "-c", begin + blocks[0] + end], check=True)


def test_public_names_have_docstrings():
    import fz

    for name in fz.__all__:
        assert name == "__version__" or getattr(fz, name).__doc__


def test_stubs_name_what_the_extension_has():
    from fz import _fz

    stubs = ast.parse((files("fz") / "_fz.pyi").read_text())
    named = {row.name for row in stubs.body if isinstance(row, (ast.ClassDef, ast.FunctionDef))}
    real = {name for name in vars(_fz) if not name.startswith("_") and name != "has_cuda"}
    assert real <= named and (named == real or not _fz.has_cuda)


def test_the_package_says_that_it_is_typed():
    assert (files("fz") / "py.typed").is_file() and (files("fz") / "_fz.pyi").is_file()
