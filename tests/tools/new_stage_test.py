"""tools/new_stage.py refuses what cannot be a stage, and writes formatted sources for the rest."""

import contextlib
import importlib.util
import io
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("new_stage", ROOT / "tools" / "new_stage.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


class NewStage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def run_tool(self, *words):
        """Exit code and what was said."""
        text = io.StringIO()
        with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text):
            try:
                code = tool.main([*words, "--root", str(self.root)])
            except SystemExit as end:
                code = end.code
        return code, text.getvalue()

    def made(self, path, *words):
        code, text = self.run_tool(path, *words)
        self.assertEqual(code, 0, text)
        return self.root / "modules" / path

    def refused(self, says, *words):
        code, text = self.run_tool(*words)
        self.assertEqual(code, 2, text)
        self.assertIn(says, text)

    def test_ids_are_decimal_or_hexadecimal(self):
        folder = self.made("coders/one", "--id", "0x4000")
        self.assertIn(".id = 16384,", (folder / "descriptor.cc").read_text())

    def test_ids_below_the_free_range_or_beyond_16_bits_are_refused(self):
        for number in ("0", "24", "16383", "65536", "-1"):
            self.refused("16384", "coders/one", f"--id={number}")
        self.refused("not a number", "coders/one", "--id", "many")

    def test_an_id_name_or_folder_is_used_once(self):
        self.made("coders/one", "--id", "16384")
        self.refused("16384 is that of One", "coders/two", "--id", "16384")
        self.refused("stage ONE already", "coders/two", "--id", "16385", "--name", "ONE")
        self.refused("folder one already", "shufflers/one", "--id", "16385", "--name", "Other")

    def test_the_ids_of_this_repository_are_known(self):
        known = tool.known_stages(ROOT)
        self.assertEqual(known[14], "Quantizer")
        self.assertEqual(known[15], "Zigzag")  # one of two stages of a folder

    def test_types_stand_once_and_are_known(self):
        self.refused("twice", "coders/one", "--id", "16384", "--types", "int32,int32")
        self.refused("unknown type i32", "coders/one", "--id", "16384", "--types", "i32")

    def test_names_must_be_usable_in_cpp(self):
        for word in ("switch", "double", "std", "namespace"):
            self.refused("word of C++", f"coders/{word}", "--id", "16384")
        self.refused("snake_case", "coders/One", "--id", "16384")
        self.refused("category", "coder/one", "--id", "16384")
        self.refused("CamelCase", "coders/one", "--id", "16384", "--name", "my coder")

    def test_bytes_get_no_test_for_broken_values(self):
        for number, (types, expected) in enumerate((("uint8", False), ("int8,uint8", False), ("uint8,int16", True))):
            folder = self.made(f"coders/s{number}", "--id", str(16384 + number), "--types", types)
            text = (folder / "tests" / f"s{number}_test.cc").read_text()
            self.assertEqual("NotAMultiple" in text, expected, types)
            self.assertEqual("Stage<std::int16_t>" in text, expected, types)

    def test_rooms_follow_the_options(self):
        always = {"one_stage.h", "codec.h", "stage.cc", "descriptor.cc", "instances.def", "cpu/stage.cc", "tests/one_test.cc", "SPEC.md",
                  "NOTES.md"}
        cuda = {"cuda/stage.cc", "cuda/kernels.h", "cuda/kernels.cu"}
        for options, expected in (([], always), (["--cuda"], always | cuda), (["--fused"], always),
                                  (["--cuda", "--fused"], always | cuda | {"cuda/op/op.cuh"})):
            folder = self.made("transforms/one", "--id", "16384", *options)
            files = {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*") if file.is_file()}
            self.assertEqual(set(files), expected)
            self.assertEqual("cudaPartMaker" in files["descriptor.cc"], "--cuda" in options)
            self.assertEqual("MapOp" in files["one_stage.h"], "--fused" in options)
            self.assertFalse([name for name, text in files.items() if re.search(r"@\w[\w ]*@", text)])
            shutil.rmtree(folder)

    @unittest.skipUnless(shutil.which("clang-format"), "needs clang-format")
    def test_sources_are_formatted(self):
        for number, path in enumerate(("coders/a", "transforms/a_rather_long_name_for_one_stage")):
            folder = self.made(path, "--id", str(16384 + number), "--cuda", "--fused",
                               "--types", "int8,int16,int32,int64,float32,float64")
            files = [str(file) for file in folder.rglob("*") if file.suffix in (".h", ".cc", ".cu", ".cuh")]
            words = ["clang-format", f"--style=file:{ROOT}/.clang-format", "--dry-run", "-Werror", *files]
            done = subprocess.run(words, check=False, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
