"""tools/release_check lets a commit pass only when version, changelog, tree and tag are those of a release."""

import contextlib
import importlib.machinery
import importlib.util
import io
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = str(Path(__file__).resolve().parents[2] / "tools" / "release_check")
loader = importlib.machinery.SourceFileLoader("release_check", TOOL)
spec = importlib.util.spec_from_file_location("release_check", TOOL, loader=loader)
tool = importlib.util.module_from_spec(spec)
loader.exec_module(tool)

FILES = {
    "CMakeLists.txt": "project(fz VERSION 0.2.0 LANGUAGES CXX)\n",
    "include/fz.h": "#define FZ_VERSION_MAJOR 0\n#define FZ_VERSION_MINOR 2\n#define FZ_VERSION_PATCH 0\n",
    "pyproject.toml": "regex = 'project\\(fz VERSION (?P<value>[0-9.]+)'\n",
    "docs/c_api.md": "    fz 0.2.0: 4 bytes\n",
    "CHANGELOG.md": "# Changelog\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n* This.\n\n## [0.1.0] - 2026-11-16\n",
}


class ReleaseCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.git("init", "--quiet")
        for name, text in FILES.items():
            self.write(name, text)
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
                       check=True, stdout=subprocess.DEVNULL)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def said(self, *words):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            code = tool.main(list(words), self.root)
        return code, text.getvalue()

    def assert_refused(self, word, *words):
        code, text = self.said(*words)
        self.assertEqual(code, 1, text)
        self.assertIn(word, text)

    def test_a_commit_that_is_ready_passes(self):
        self.assertEqual(self.said()[0], 0)

    def test_the_version_is_the_same_everywhere(self):
        for name, old, new, says in (
            ("include/fz.h", "MINOR 2", "MINOR 1", "is 0.1.0, not 0.2.0"),
            ("docs/c_api.md", "0.2.0", "0.1.0", "shows output of fz 0.1.0"),
            ("pyproject.toml", "VERSION", "RELEASE", "does not read"),
            ("CHANGELOG.md", "[0.2.0]", "[0.3.0]", "first section"),
            ("CMakeLists.txt", "0.2.0", "0.2", "three numbers"),
        ):
            self.write(name, FILES[name].replace(old, new))
            self.assert_refused(says, "--version-only")
            self.write(name, FILES[name])

    def test_the_changelog_has_a_dated_section_with_a_list(self):
        for old, new in ((" - 2026-12-01", " (unreleased)"), ("2026-12-01", "2026-13-01"), (" - 2026-12-01", "")):
            self.write("CHANGELOG.md", FILES["CHANGELOG.md"].replace(old, new, 1))
            self.commit()
            self.assert_refused("has no date")
            self.assertEqual(self.said("--version-only")[0], 0)
        self.write("CHANGELOG.md", FILES["CHANGELOG.md"].replace("* This.\n", ""))
        self.assert_refused("lists nothing")

    def test_everything_is_committed_and_the_tag_is_free(self):
        self.write("new.txt", "x\n")
        self.assert_refused("new.txt")
        self.commit()
        self.assertEqual(self.said()[0], 0)
        self.git("tag", "v0.2.0")
        self.assert_refused("v0.2.0 exists already")


if __name__ == "__main__":
    unittest.main()
