"""Each rule of tools/check_forbidden.py finds what it is for, and nothing in good code."""

import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_forbidden.py"
spec = importlib.util.spec_from_file_location("check_forbidden", TOOL)
tool = importlib.util.module_from_spec(spec)
sys.modules["check_forbidden"] = tool
spec.loader.exec_module(tool)


class CheckForbidden(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = tool.ROOT
        self.addCleanup(setattr, tool, "ROOT", before)
        tool.ROOT = Path(folder.name).resolve()
        for name in ("include/fz/error.h", "include/pipeline/compressor.h", "src/shared/bits.h",
                     "src/core/require.h", "src/pipeline/plan.h", "modules/coders/a/a_stage.h",
                     "modules/coders/b/b_codec.h"):
            self.problems(name, "#pragma once\n")

    def problems(self, path, text):
        file = tool.ROOT / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        checker = tool.Checker()
        checker.check(path)
        return checker.problems

    def assert_found(self, path, text, word):
        found = self.problems(path, text)
        self.assertTrue(any(word in problem for problem in found), f"{path}: {text!r}: {found}")

    def assert_clean(self, path, text):
        self.assertEqual(self.problems(path, text), [])

    def test_patterns_are_found_outside_their_place(self):
        stage = "modules/coders/a/a_stage.cc"
        self.assert_found(stage, "#ifdef __CUDACC__\n#endif\n", "shared primitives")
        self.assert_clean("src/shared/fp.h", "#ifdef __CUDA_ARCH__\n#endif\n")
        self.assert_found(stage, "void* p = cudaMalloc(&p, 4);\n", "pool")
        self.assert_found(stage, "float y = std::log2(x);\n", "libm")
        self.assert_found(stage, "float y = exp2f(x);\n", "libm")
        self.assert_clean(stage, "float y = fp::log2(x) + catalog(x);\n")
        self.assert_clean("modules/coders/a/a_test.cc", "double y = std::pow(2.0, 3.0);\n")
        self.assert_found(stage, "atomicAdd(&count, 1);\n", "order-free")
        self.assert_clean(stage, "atomicAdd(&count, 1);  // order-free: an integer sum\n")
        self.assert_found(stage, 'std::printf("x");\n', "neither prints")
        self.assert_found(stage, "std::exit(1);\n", "neither prints")
        self.assert_clean(stage, "std::snprintf(text, 4, format);\n")
        self.assert_clean("cli/main.cc", 'std::printf("x");\n')
        self.assert_found(stage, 'throw std::runtime_error("x");\n', "fz::Error")
        self.assert_found("tests/x_test.cc", "EXPECT_LE(error, eb * 1.01);\n", "slack")
        self.assert_found("tests/x_test.cc", "EXPECT_LE(error, 1.001 * bound);\n", "slack")

    def test_comments_do_not_count(self):
        self.assert_clean("src/core/a.cc", "// calls exit(1) never\n/* printf(\n) */ int x;\n")

    def test_includes_run_one_way(self):
        self.assert_found("modules/coders/a/a_stage.cc", '#include "coders/b/b_codec.h"\n',
                          "do not see each other")
        self.assert_clean("modules/coders/a/a_test.cc", '#include "coders/b/b_codec.h"\n')
        self.assert_clean("modules/coders/b/b_cpu.cc", '#include "coders/b/b_codec.h"\n')
        self.assert_found("src/shared/a.h", '#include "core/require.h"\n', "wrong way")
        self.assert_found("include/fz/a.h", '#include "shared/bits.h"\n', "wrong way")
        self.assert_found("include/fz/a.h", '#include "pipeline/compressor.h"\n', "wrong way")
        self.assert_found("src/core/a.cc", '#include "pipeline/plan.h"\n', "wrong way")
        self.assert_found("src/pipeline/a.cc", '#include "coders/a/a_stage.h"\n', "wrong way")
        self.assert_found("src/config/a.cc", '#include "coders/a/a_stage.h"\n', "wrong way")
        self.assert_found("modules/coders/a/a_cpu.cc", '#include "pipeline/plan.h"\n', "wrong way")
        self.assert_clean("src/pipeline/a.cc", '#include "core/require.h"\n')
        self.problems("src/pipeline/frame/b.h", "#pragma once\n")
        self.assert_found("src/pipeline/run/a.cc", '#include "pipeline/frame/b.h"\n', "wrong way")
        self.assert_found("src/pipeline/graph.cc", '#include "pipeline/frame/b.h"\n', "wrong way")
        self.assert_clean("src/pipeline/device/a.cc", '#include "pipeline/frame/b.h"\n')
        self.assert_clean("src/pipeline/pipeline_a.cc", '#include "pipeline/frame/b.h"\n')
        self.assert_clean("cli/a.cc", '#include "coders/a/a_stage.h"\n')
        self.assert_found("include/fz/a.h", "#include <cuda_runtime.h>\n", "CUDA toolkit")

    def test_words_of_file_names_are_counted_without_stages_and_tests(self):
        names = ["modules/coders/a/a_stage.h", "modules/coders/a/cpu/simd_rows.cc", "modules/coders/b/b.cc",
                 "modules/coders/b/cuda/op/rows.cuh", "modules/coders/b/tests/strange_test.cc",
                 "modules/coders/b/SPEC.md", "src/core/error.cc"]
        self.assertEqual(tool.file_words(names), {"simd", "rows"})

    def test_text_is_plain(self):
        self.assert_found("docs/a.md", "na\u00efve\n", "ASCII")
        self.assert_found("docs/a.md", "x \n", "white space")
        self.assert_found("docs/a.md", "x", "newline")
        self.assert_found("docs/a.md", "see /" + "home/me/data\n", "one machine")
        self.assert_clean("docs/a.md", "see build/home/data and ${prefix}/" + "home/x\n")
        self.assert_found("src/core/a.cc", "int x;\n" * 501, "501 lines")
        self.assert_clean("src/core/a.cu", "int x;\n" * 600)
        self.assert_found("src/core/a.cuh", "int x;\n" * 601, "601 lines")


if __name__ == "__main__":
    unittest.main()
