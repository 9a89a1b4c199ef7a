"""tools/check_docs.py fails on a document that names what does not exist, and on nothing else."""

import importlib.util
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
spec = importlib.util.spec_from_file_location("check_docs", TOOLS / "check_docs.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

FILES = {
    "Makefile": "test:  ## all\ntest-long:\n",
    "cli/main.cc": 'root.add_subcommand(\n "compress", "text"); add("--no-fallback");\n',
    "include/fz/stream.h": "class StreamKind; void openStream(); constexpr int kMax = 1; // FZ_CUDA\n",
    "cmake/all_stages.h.in": "\n",
    "modules/coders/rze/cuda/rze_op.cuh": "\n",
    "modules/coders/rze/cpu/encode.cc": "int n_bytes;\n",
    "docs/gpu.md": "# On a GPU\n",
}


class CheckDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def problems(self, text, path="docs/a.md"):
        self.write(path, text)
        checker = tool.Checker(tool.Tree(self.root))
        checker.check(path)
        return checker.errors

    def assert_found(self, text, word, **where):
        found = self.problems(text, **where)
        self.assertTrue(any(word in problem for problem in found), f"{text!r}: {found}")

    def assert_clean(self, text, **where):
        self.assertEqual(self.problems(text, **where), [], text)

    def test_links_lead_somewhere(self):
        self.assert_clean("See [GPU](gpu.md), [more](gpu.md#on-a-gpu), [out](https://example.org/x).\n")
        self.assert_found("See [GPU](gone.md).\n", "no such file")
        self.assert_found("See [GPU](gpu.md#nowhere).\n", "no heading")
        self.assert_clean("# Own\n\nSee [above](#own).\n")

    def test_files_exist(self):
        self.assert_clean("`include/fz/stream.h`, `fz/stream.h`, `modules/coders/`, `rze_op.cuh`\n")
        self.assert_clean("`*_op.cuh`, `<stage>_op.cuh`, `modules/*/*`, `my_coder_op.cuh`, `build/x.h`\n")
        self.assert_clean("`fz/all_stages.h`\n")  # generated
        self.assert_clean("The loop is in `cpu/encode.cc`.\n", path="modules/coders/rze/SPEC.md")
        for gone in ("include/fz/gone.h", "fz/gone.h", "*_gone.h", "modules/coders/gone", "gone.py"):
            self.assert_found(f"See `{gone}` here.\n", f"no file {gone}")

    def test_names_occur_in_the_sources(self):
        self.assert_clean("`openStream()`, `fz::openStream`, `StreamKind`, `kMax`, `n_bytes`, `-DFZ_CUDA=ON`\n")
        self.assert_clean("`cudaMalloc`, `std::bad_alloc`, `ValueError`, `word`, `Word`, `my_function()`\n")
        for gone in ("closeStream()", "closeStream", "fz::Stream::closeStream", "StreamSort", "kLeast", "n_bits"):
            self.assert_found(f"See `{gone}`.\n", "does not occur")
        self.assert_found("Set `FZ_GONE=1`.\n", "FZ_GONE")

    def test_commands_exist(self):
        self.assert_clean("`make test`, `make PRESET=tsan test-long`, `fz compress --no-fallback`, `fz NAME`\n")
        self.assert_found("`make gone`\n", "no target gone")
        self.assert_found("`fz gone`\n", "no command gone")
        self.assert_found("`fz compress --gone`\n", "no option --gone")

    def test_blocks_of_code_name_what_exists(self):
        self.assert_clean("    make test\n    modules/coders/my_coder\n")
        self.assert_found("Run\n\n    make gone\n", "no target gone")
        self.assert_found("```cpp\n#include \"fz/gone.h\"\n```\n", "no file fz/gone.h")
        self.assert_found("```\nmodules/coders/gone/x.cc\n```\n", "no file modules/coders/gone/x.cc")

    def test_notes_of_a_commit_may_name_what_is_gone(self):
        self.assert_clean("Tried in commit 7d4fd7c: `closeStream()`.\n", path="modules/coders/rze/NOTES.md")
        self.assert_found("Now: `closeStream()`.\n", "does not occur", path="modules/coders/rze/NOTES.md")

    def test_long_paragraphs_and_items_are_errors(self):
        for text in ("word " * 121, "* " + "word " * 120):
            self.assert_found(text + "\n", "at most 120")
            self.assert_found(text + "\n", "at most 120", path="README.md")
            self.assert_clean(text + "\n", path="modules/coders/rze/NOTES.md")
        self.assert_clean("word " * 70 + "\n\n" + "word " * 70 + "\n")
        self.assert_clean("| a | " + "word " * 121 + "|\n")
        self.assert_clean("    " + "word " * 121 + "\n")


class PerformancePage(unittest.TestCase):
    """The page and its results, copied, with one of them changed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copytree(TOOLS.parent / "bench/results", self.root / "bench/results")
        (self.root / "docs").mkdir()
        self.page = self.root / tool.performance_tables.PAGE
        self.page.write_text((TOOLS.parent / tool.performance_tables.PAGE).read_text())

    def test_matches_the_results(self):
        self.assertTrue(tool.performance_tables.is_current(self.root))

    def test_a_changed_figure_is_noticed_on_either_side(self):
        results = self.root / "bench/results/gpu.json"
        kept = json.loads(results.read_text())
        figure = round(kept["stages"][0]["encode_gbs"])
        self.page.write_text(self.page.read_text().replace(f"|{figure} (", f"|{figure + 1} (", 1))
        self.assertFalse(tool.performance_tables.is_current(self.root))
        kept["stages"][0]["encode_gbs"] = figure + 1
        results.write_text(tool.performance_tables.dump(kept))
        self.assertTrue(tool.performance_tables.is_current(self.root))

    def test_results_are_written_row_by_row_as_they_are_kept(self):
        for file in (self.root / "bench/results").glob("*.json"):
            if file.stem != "goals":
                self.assertEqual(tool.performance_tables.dump(json.loads(file.read_text())), file.read_text())

    def test_it_stays_short(self):
        checker = tool.Checker(tool.Tree(self.root))
        self.page.write_text(self.page.read_text() + "a\n\n" * 4000)
        checker.check(tool.performance_tables.PAGE)
        self.assertTrue(any("must stay under 10000" in problem for problem in checker.errors))


class MissingValuesPage(unittest.TestCase):
    def test_a_changed_figure_is_noticed(self):
        pages = tool.missing_values_tables
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in (pages.PAGE, pages.RESULTS):
                (root / name).parent.mkdir(parents=True)
                shutil.copy(TOOLS.parent / name, root / name)
            self.assertTrue(pages.is_current(root))
            figures = json.loads((root / pages.RESULTS).read_text())
            figures["presets"][0]["bytes"] *= 2
            (root / pages.RESULTS).write_text(json.dumps(figures))
            self.assertFalse(pages.is_current(root))
            checker = tool.Checker(tool.Tree(root))
            checker.check(pages.PAGE)
            self.assertTrue(any("tools/missing_values --write" in problem for problem in checker.errors))


if __name__ == "__main__":
    unittest.main()
